//! An event on disk.

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::{Shown, Stored, Unreadable, from_bytes, shown, to_bytes};
use crate::object::{CORE_GROUP, EventType, ObjectReference, Time};
use crate::pool::EventRow;
use crate::view::Resource;

#[derive(Serialize, Deserialize)]
struct EventV1 {
    uid: u128,
    pool_uid: u128,
    name: String,
    namespace: String,
    regarding: ReferenceV1,
    warning: bool,
    reason: String,
    cause: String,
    message: String,
    count: u32,
    first_ms: i64,
    last_ms: i64,
}

#[derive(Serialize, Deserialize)]
struct ReferenceV1 {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    uid: String,
}

impl From<&EventRow> for EventV1 {
    fn from(live: &EventRow) -> Self {
        let ObjectReference { api_version, kind, namespace, name, uid } = live.regarding.clone();
        Self {
            uid: live.uid.0,
            pool_uid: live.pool_uid.0,
            name: live.name.clone(),
            namespace: live.namespace.clone(),
            regarding: ReferenceV1 { api_version, kind, namespace, name, uid },
            warning: live.kind == EventType::Warning,
            reason: live.reason.clone(),
            cause: live.cause.clone(),
            message: live.message.clone(),
            count: live.count,
            first_ms: live.first.millis(),
            last_ms: live.last.millis(),
        }
    }
}

impl From<EventV1> for EventRow {
    fn from(stored: EventV1) -> Self {
        let ReferenceV1 { api_version, kind, namespace, name, uid } = stored.regarding;
        Self {
            uid: Ulid(stored.uid),
            pool_uid: Ulid(stored.pool_uid),
            name: stored.name,
            namespace: stored.namespace,
            regarding: ObjectReference { api_version, kind, namespace, name, uid },
            kind: if stored.warning { EventType::Warning } else { EventType::Normal },
            reason: stored.reason,
            cause: stored.cause,
            message: stored.message,
            count: stored.count,
            first: Time::from_millis(stored.first_ms),
            last: Time::from_millis(stored.last_ms),
        }
    }
}

impl Stored for EventRow {
    const SHOWN: Shown = Shown { group: CORE_GROUP, plural: "events", kind: "Event" };
    const NEWEST_VERSION: u8 = 1;

    fn encode(&self) -> Vec<u8> {
        to_bytes(&EventV1::from(self))
    }

    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable> {
        match type_version {
            1 => Ok(from_bytes::<EventV1>(payload)?.into()),
            found => Err(Unreadable::UnknownType { found, newest: Self::NEWEST_VERSION }),
        }
    }

    fn uid(&self) -> Ulid {
        self.uid
    }

    fn present(&self, version: u64) -> Option<Resource> {
        let event = Self::present(self);
        Some(shown(&Self::SHOWN, &event.metadata, &event, version))
    }
}

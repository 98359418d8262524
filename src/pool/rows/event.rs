//! Something a person should know of. Repeats are counted in one row.

use ulid::Ulid;

use crate::object::{Event, EventType, Metadata, ObjectReference, Time};

/// An event as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    pub uid: Ulid,
    pub pool_uid: Ulid,
    pub name: String,
    pub namespace: String,
    pub regarding: ObjectReference,
    pub kind: EventType,
    /// One CamelCase word.
    pub reason: String,
    /// What repeats have in common: events of one regarding, reason and cause are one row.
    pub cause: String,
    /// The latest occurrence in one sentence.
    pub message: String,
    pub count: u32,
    pub first: Time,
    pub last: Time,
}

impl EventRow {
    /// The object as the API shows it.
    pub fn present(&self) -> Event {
        Event {
            metadata: Metadata {
                name: self.name.clone(),
                namespace: Some(self.namespace.clone()),
                uid: Some(self.uid),
                creation_timestamp: Some(self.first.whole_seconds()),
                ..Metadata::default()
            },
            regarding: self.regarding.clone(),
            r#type: self.kind,
            reason: self.reason.clone(),
            message: self.message.clone(),
            count: self.count,
            first_timestamp: self.first,
            last_timestamp: self.last,
        }
    }
}

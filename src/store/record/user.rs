//! User on disk.

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::common::MetadataV1;
use super::{Shown, Stored, Unreadable, from_bytes, shown, to_bytes, uid_of};
use crate::object::{CORE_GROUP, User, UserSpec};
use crate::view::Resource;

#[derive(Serialize, Deserialize)]
struct UserV1 {
    metadata: MetadataV1,
    display_name: String,
    disabled: bool,
    local_user: Option<String>,
}

impl From<&User> for UserV1 {
    fn from(live: &User) -> Self {
        Self {
            metadata: (&live.metadata).into(),
            display_name: live.spec.display_name.clone(),
            disabled: live.spec.disabled,
            local_user: live.spec.local_user.clone(),
        }
    }
}

impl From<UserV1> for User {
    fn from(stored: UserV1) -> Self {
        Self {
            metadata: stored.metadata.into(),
            spec: UserSpec {
                display_name: stored.display_name,
                disabled: stored.disabled,
                local_user: stored.local_user,
            },
        }
    }
}

impl Stored for User {
    const SHOWN: Shown = Shown { group: CORE_GROUP, plural: "users", kind: "User" };
    const NEWEST_VERSION: u8 = 1;

    fn encode(&self) -> Vec<u8> {
        to_bytes(&UserV1::from(self))
    }

    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable> {
        match type_version {
            1 => Ok(from_bytes::<UserV1>(payload)?.into()),
            found => Err(Unreadable::UnknownType { found, newest: Self::NEWEST_VERSION }),
        }
    }

    fn uid(&self) -> Ulid {
        uid_of(&self.metadata)
    }

    fn present(&self, version: u64) -> Option<Resource> {
        Some(shown(&Self::SHOWN, &self.metadata, self, version))
    }
}

//! Device on disk.

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::common::MetadataV1;
use super::{Shown, Stored, Unreadable, from_bytes, shown, to_bytes, uid_of};
use crate::object::{CORE_GROUP, Device, DeviceSpec};
use crate::view::Resource;

#[derive(Serialize, Deserialize)]
struct DeviceV1 {
    metadata: MetadataV1,
    owner: String,
    public_key: String,
}

impl From<&Device> for DeviceV1 {
    fn from(live: &Device) -> Self {
        Self {
            metadata: (&live.metadata).into(),
            owner: live.spec.owner.clone(),
            public_key: live.spec.public_key.clone(),
        }
    }
}

impl From<DeviceV1> for Device {
    fn from(stored: DeviceV1) -> Self {
        Self {
            metadata: stored.metadata.into(),
            spec: DeviceSpec { owner: stored.owner, public_key: stored.public_key },
        }
    }
}

impl Stored for Device {
    const SHOWN: Shown = Shown { group: CORE_GROUP, plural: "devices", kind: "Device" };
    const NEWEST_VERSION: u8 = 1;

    fn encode(&self) -> Vec<u8> {
        to_bytes(&DeviceV1::from(self))
    }

    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable> {
        match type_version {
            1 => Ok(from_bytes::<DeviceV1>(payload)?.into()),
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

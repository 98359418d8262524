//! Namespace on disk.

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::common::{MetadataV1, SubjectV1};
use super::{Shown, Stored, Unreadable, from_bytes, shown, to_bytes, uid_of};
use crate::object::{CORE_GROUP, Namespace, NamespaceSpec, Quota};
use crate::view::Resource;

#[derive(Serialize, Deserialize)]
struct NamespaceV1 {
    metadata: MetadataV1,
    admins: Vec<SubjectV1>,
    workstations_max: Option<u32>,
}

impl From<&Namespace> for NamespaceV1 {
    fn from(live: &Namespace) -> Self {
        Self {
            metadata: (&live.metadata).into(),
            admins: live.spec.admins.iter().map(Into::into).collect(),
            workstations_max: live.spec.quota.workstations,
        }
    }
}

impl From<NamespaceV1> for Namespace {
    fn from(stored: NamespaceV1) -> Self {
        Self {
            metadata: stored.metadata.into(),
            spec: NamespaceSpec {
                admins: stored.admins.into_iter().map(Into::into).collect(),
                quota: Quota { workstations: stored.workstations_max },
            },
        }
    }
}

impl Stored for Namespace {
    const SHOWN: Shown = Shown { group: CORE_GROUP, plural: "namespaces", kind: "Namespace" };
    const NEWEST_VERSION: u8 = 1;

    fn encode(&self) -> Vec<u8> {
        to_bytes(&NamespaceV1::from(self))
    }

    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable> {
        match type_version {
            1 => Ok(from_bytes::<NamespaceV1>(payload)?.into()),
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

//! Frozen types that several kinds share. A change here is a new type, as everywhere.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::machine::AgentInfo;
use crate::object::{Metadata, OwnerReference, SshAccess, Subject, SubjectKind, Time};
use crate::pool::Bond;

#[derive(Serialize, Deserialize)]
pub(super) struct MetadataV1 {
    name: String,
    generate_name: Option<String>,
    namespace: Option<String>,
    uid: Option<u128>,
    generation: i64,
    created_ms: Option<i64>,
    deleted_ms: Option<i64>,
    deletion_grace_period_seconds: Option<i64>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    finalizers: Vec<String>,
    owner_references: Vec<OwnerReferenceV1>,
}

impl MetadataV1 {
    /// When the object was created.
    pub(super) fn created_ms(&self) -> i64 {
        self.created_ms.unwrap_or_default()
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct OwnerReferenceV1 {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    controller: Option<bool>,
    block_owner_deletion: Option<bool>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SubjectV1 {
    kind: SubjectKindV1,
    name: String,
    namespace: Option<String>,
}

#[derive(Serialize, Deserialize)]
enum SubjectKindV1 {
    User,
    ServiceAccount,
}

impl From<&Metadata> for MetadataV1 {
    /// The resource version is the envelope's.
    fn from(live: &Metadata) -> Self {
        Self {
            name: live.name.clone(),
            generate_name: live.generate_name.clone(),
            namespace: live.namespace.clone(),
            uid: live.uid.map(|uid| uid.0),
            generation: live.generation,
            created_ms: live.creation_timestamp.map(Time::millis),
            deleted_ms: live.deletion_timestamp.map(Time::millis),
            deletion_grace_period_seconds: live.deletion_grace_period_seconds,
            labels: live.labels.clone(),
            annotations: live.annotations.clone(),
            finalizers: live.finalizers.clone(),
            owner_references: live.owner_references.iter().map(Into::into).collect(),
        }
    }
}

impl From<MetadataV1> for Metadata {
    fn from(stored: MetadataV1) -> Self {
        Self {
            name: stored.name,
            generate_name: stored.generate_name,
            namespace: stored.namespace,
            uid: stored.uid.map(Ulid),
            resource_version: None,
            generation: stored.generation,
            creation_timestamp: stored.created_ms.map(Time::from_millis),
            deletion_timestamp: stored.deleted_ms.map(Time::from_millis),
            deletion_grace_period_seconds: stored.deletion_grace_period_seconds,
            labels: stored.labels,
            annotations: stored.annotations,
            finalizers: stored.finalizers,
            owner_references: stored.owner_references.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<&OwnerReference> for OwnerReferenceV1 {
    fn from(live: &OwnerReference) -> Self {
        Self {
            api_version: live.api_version.clone(),
            kind: live.kind.clone(),
            name: live.name.clone(),
            uid: live.uid.clone(),
            controller: live.controller,
            block_owner_deletion: live.block_owner_deletion,
        }
    }
}

impl From<OwnerReferenceV1> for OwnerReference {
    fn from(stored: OwnerReferenceV1) -> Self {
        Self {
            api_version: stored.api_version,
            kind: stored.kind,
            name: stored.name,
            uid: stored.uid,
            controller: stored.controller,
            block_owner_deletion: stored.block_owner_deletion,
        }
    }
}

impl From<&Subject> for SubjectV1 {
    fn from(live: &Subject) -> Self {
        let kind = match live.kind {
            SubjectKind::User => SubjectKindV1::User,
            SubjectKind::ServiceAccount => SubjectKindV1::ServiceAccount,
        };
        Self { kind, name: live.name.clone(), namespace: live.namespace.clone() }
    }
}

impl From<SubjectV1> for Subject {
    fn from(stored: SubjectV1) -> Self {
        let kind = match stored.kind {
            SubjectKindV1::User => SubjectKind::User,
            SubjectKindV1::ServiceAccount => SubjectKind::ServiceAccount,
        };
        Self { kind, name: stored.name, namespace: stored.namespace }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct BondV1 {
    uid: u128,
    name: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SshAccessV1 {
    user: String,
    command: String,
    proxy: String,
    host_keys: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct AgentV1 {
    version: String,
    capabilities: Vec<String>,
    login_user: String,
    host_keys: Vec<String>,
    image: String,
}

impl From<&Bond> for BondV1 {
    fn from(live: &Bond) -> Self {
        Self { uid: live.uid.0, name: live.name.clone() }
    }
}

impl From<BondV1> for Bond {
    fn from(stored: BondV1) -> Self {
        Self { uid: Ulid(stored.uid), name: stored.name }
    }
}

impl From<&SshAccess> for SshAccessV1 {
    fn from(live: &SshAccess) -> Self {
        let SshAccess { user, command, proxy, host_keys } = live.clone();
        Self { user, command, proxy, host_keys }
    }
}

impl From<SshAccessV1> for SshAccess {
    fn from(stored: SshAccessV1) -> Self {
        let SshAccessV1 { user, command, proxy, host_keys } = stored;
        Self { user, command, proxy, host_keys }
    }
}

impl From<&AgentInfo> for AgentV1 {
    fn from(live: &AgentInfo) -> Self {
        let AgentInfo { version, capabilities, login_user, host_keys, image } = live.clone();
        Self { version, capabilities, login_user, host_keys, image }
    }
}

impl From<AgentV1> for AgentInfo {
    fn from(stored: AgentV1) -> Self {
        let AgentV1 { version, capabilities, login_user, host_keys, image } = stored;
        Self { version, capabilities, login_user, host_keys, image }
    }
}

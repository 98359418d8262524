//! Objects for this room's tests.

use serde_json::json;
use ulid::Ulid;

use super::{Key, Resource};
use crate::object::{Time, WORKSTATIONS_GROUP};

pub(super) const GROUP: &str = WORKSTATIONS_GROUP;

/// Some object of some kind. Its uid follows from its name.
pub(super) fn thing(plural: &'static str, namespace: &str, name: &str, version: u64) -> Resource {
    let key = Key { group: GROUP, plural, namespace: namespace.into(), name: name.into() };
    let uid = Ulid(u128::from(crc32fast::hash(format!("{plural}/{namespace}/{name}").as_bytes())));
    let value =
        json!({"metadata": {"name": name, "namespace": namespace, "resourceVersion": version.to_string()}});
    Resource { key, uid, version, value }
}

/// A lease that waits for a member of `pool` since `created_ms`.
pub(super) fn waiting_lease(uid: u128, pool: Ulid, created_ms: i64, version: u64) -> Resource {
    let name = format!("lease-{uid}");
    let key =
        Key { group: GROUP, plural: "workstationpoolleases", namespace: "local".into(), name: name.clone() };
    let value = json!({
        "metadata": {
            "name": name, "namespace": "local", "uid": Ulid(uid).to_string(),
            "creationTimestamp": Time::from_millis(created_ms), "resourceVersion": version.to_string(),
        },
        "spec": {"workstationPoolRef": {"name": "pool"}, "state": "Needed"},
        "status": {"phase": "Pending", "poolUID": pool.to_string()},
    });
    Resource { key, uid: Ulid(uid), version, value }
}

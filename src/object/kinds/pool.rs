//! Pools: what `get` shows of them, and what their owner may declare.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, column, complete, subject, subject_name, wide, workstation};
use crate::object::check::{forbidden, invalid};
use crate::object::{
    Cell, FieldError, Kind, NameRule, SERVER_PREFIX, VERSION, WORKSTATIONS_GROUP, WorkstationPool, metadata,
    schema,
};

/// WorkstationPool, as the API serves it.
pub static KIND: Kind = Kind {
    group: WORKSTATIONS_GROUP,
    version: VERSION,
    kind: "WorkstationPool",
    plural: "workstationpools",
    singular: "workstationpool",
    short_names: &["wsp"],
    cli_names: &[],
    categories: &["ringleader"],
    namespaced: true,
    has_status: true,
    // A member's name is its pool's, a dash and eight digits, within the 63 of a label.
    name_rule: NameRule::Label { max_len: 54 },
    columns: &[
        column("Phase", "string", "Where the pool stands.", Cell::At("/status/phase")),
        column("Capacity", "string", "Members there are, of those there may be.", Cell::Of(capacity)),
        column("Idle", "integer", "Members that wait for a lease.", Cell::Of(idle)),
        column("Leased", "integer", "Members that are lent out.", Cell::At("/status/members/leased")),
        column("Pending", "integer", "Leases that wait for a member.", Cell::At("/status/leases/pending")),
        wide("Owner", "string", "Who every member belongs to.", Cell::Of(owner)),
        wide("Template Hash", "string", "The present template.", Cell::At("/status/templateHash")),
        wide("Message", "string", "What the pool waits for.", Cell::At("/status/message")),
        AGE,
    ],
    schema: || &SCHEMA,
    check,
    complete: complete::<WorkstationPool>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<WorkstationPool>);

fn capacity(pool: &Value) -> Value {
    let count = |field: &str| pool.pointer(&format!("/status/capacity/{field}")).and_then(Value::as_u64);
    match (count("members"), count("max")) {
        (Some(members), Some(max)) => format!("{members}/{max}").into(),
        _ => Value::Null,
    }
}

fn idle(pool: &Value) -> Value {
    let count = |field: &str| pool.pointer(&format!("/status/members/{field}")).and_then(Value::as_u64);
    match (count("idleRunning"), count("idleStopped")) {
        (Some(running), Some(stopped)) => (running + stopped).into(),
        _ => Value::Null,
    }
}

fn owner(pool: &Value) -> Value {
    subject_name(&pool["status"]["owner"])
}

fn check(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let spec = &new["spec"];
    let mut errors = subject::check(spec.get("owner"), "spec.owner");
    errors.extend(floors(spec));
    errors.extend(template_metadata(&spec["template"]["metadata"]));
    errors.extend(template_spec(&spec["template"]["spec"]));
    errors
}

/// Both floors together fit into the pool (rule W2).
fn floors(spec: &Value) -> Option<FieldError> {
    let max = spec["size"]["max"].as_u64()?;
    let floor = |name: &str| spec["warm"][name].as_u64().unwrap_or(0);
    let both = floor("running").saturating_add(floor("stopped"));
    let why = format!("running + stopped may not exceed size.max, which is {max}");
    (both > max).then(|| invalid("spec.warm", &both.into(), &why))
}

fn template_metadata(template: &Value) -> Vec<FieldError> {
    let path = |map: &str| format!("spec.template.metadata.{map}");
    let mut errors = metadata::labels(template.get("labels"), &path("labels"));
    errors.extend(metadata::annotations(template.get("annotations"), &path("annotations")));
    for map in ["labels", "annotations"] {
        let keys = template[map].as_object().into_iter().flatten().map(|(key, _)| key);
        let ours = keys.filter(|key| key.starts_with(SERVER_PREFIX));
        errors.extend(ours.map(|key| metadata::server_only(&path(map), key)));
    }
    errors
}

fn template_spec(template: &Value) -> Vec<FieldError> {
    let path = "spec.template.spec";
    let mut errors = workstation::spec(template, path);
    for (field, _) in template.as_object().into_iter().flatten() {
        let refused = ["cordoned", "stopped", "lifecycle", "ttl", "ttlAction"].contains(&field.as_str());
        if refused || field.ends_with("Nonce") {
            let why = "not in a template: the pool decides when a member runs and how long it lives";
            errors.push(forbidden(format!("{path}.{field}"), why));
        }
    }
    errors
}

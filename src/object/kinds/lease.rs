//! Leases: what `get` shows of them, and what their holder may ask for.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, column, complete, subject_name, wide};
use crate::object::check::invalid;
use crate::object::{
    Cell, FieldError, FieldReason, Kind, NameRule, VERSION, WORKSTATIONS_GROUP, WorkstationPoolLease,
    public_key, schema,
};

/// WorkstationPoolLease, as the API serves it.
pub static KIND: Kind = Kind {
    group: WORKSTATIONS_GROUP,
    version: VERSION,
    kind: "WorkstationPoolLease",
    plural: "workstationpoolleases",
    singular: "workstationpoollease",
    short_names: &["wspl"],
    cli_names: &[],
    categories: &["ringleader"],
    namespaced: true,
    has_status: true,
    name_rule: NameRule::Label { max_len: 63 },
    columns: &[
        column("Holder", "string", "Who asked for it.", Cell::Of(holder)),
        column("Pool", "string", "The pool it is served by.", Cell::At("/spec/workstationPoolRef/name")),
        column("Phase", "string", "How far it is.", Cell::At("/status/phase")),
        column("Member", "string", "The member it is bound to.", Cell::At("/status/workstationName")),
        // No date: those are shown as ages, and this one lies ahead.
        column("Expires", "string", "When it ends by itself.", Cell::At("/spec/expiresAt")),
        wide("State", "string", "What its holder wants.", Cell::At("/spec/state")),
        wide("Queue", "integer", "Its place among those that wait.", Cell::At("/status/queuePosition")),
        wide("Message", "string", "What it waits for, or why it failed.", Cell::At("/status/message")),
        AGE,
    ],
    schema: || &SCHEMA,
    check,
    complete: complete::<WorkstationPoolLease>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<WorkstationPoolLease>);

fn holder(lease: &Value) -> Value {
    subject_name(&lease["status"]["holder"])
}

fn check(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = authorized_keys(&new["spec"]);
    if let Some(old) = old {
        errors.extend(set_once(new, old));
    }
    errors
}

fn authorized_keys(spec: &Value) -> Vec<FieldError> {
    let lines = spec.get("authorizedKeys").and_then(Value::as_array).into_iter().flatten();
    let mut errors = Vec::new();
    for (index, line) in lines.enumerate() {
        if let Some(Err(why)) = line.as_str().map(public_key::check) {
            errors.push(FieldError::new(format!("spec.authorizedKeys[{index}]"), FieldReason::Invalid, why));
        }
    }
    errors
}

/// Whose lease it is, and of which pool, is settled when it is created (rule L1).
fn set_once(new: &Value, old: &Value) -> Vec<FieldError> {
    let differs = |field: &&str| {
        let stored = &old["status"][*field];
        !stored.is_null() && new["status"][*field] != *stored
    };
    let changed = ["holder", "poolUID"].into_iter().filter(differs);
    changed
        .map(|field| invalid(format!("status.{field}"), &new["status"][field], "field is immutable"))
        .collect()
}

//! Devices: the machines of a person, by their SSH keys.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, complete, wide};
use crate::object::check::invalid;
use crate::object::{
    CORE_GROUP, Cell, Device, FieldError, FieldReason, Kind, NameRule, VERSION, public_key, schema,
};

/// Device, as the API serves it.
pub static KIND: Kind = Kind {
    group: CORE_GROUP,
    version: VERSION,
    kind: "Device",
    plural: "devices",
    singular: "device",
    short_names: &[],
    cli_names: &[],
    categories: &["ringleader"],
    namespaced: false,
    has_status: false,
    name_rule: NameRule::Subdomain,
    columns: &[wide("Owner", "string", "The user whose device it is.", Cell::At("/spec/owner")), AGE],
    schema: || &SCHEMA,
    check,
    complete: complete::<Device>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<Device>);

fn check(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let text = |pointer| new.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut errors = Vec::new();
    if let Some(owner) = text("/spec/owner") {
        let broken = NameRule::Subdomain.broken(owner);
        errors.extend(broken.iter().map(|why| invalid("spec.owner", &owner.into(), why)));
    }
    if let Some(Err(why)) = text("/spec/publicKey").map(public_key::check) {
        errors.push(FieldError::new("spec.publicKey", FieldReason::Invalid, why));
    }
    errors
}

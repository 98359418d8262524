//! Devices: cluster-wide.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, complete};
use crate::object::{CORE_GROUP, Column, Device, FieldError, Kind, NameRule, VERSION, schema};

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
    columns: COLUMNS,
    schema: || &SCHEMA,
    check,
    complete: complete::<Device>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<Device>);

const COLUMNS: &[Column] = &[AGE];

fn check(_new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}

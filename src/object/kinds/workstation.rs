//! Workstations.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, complete};
use crate::object::{Column, FieldError, Kind, NameRule, VERSION, WORKSTATIONS_GROUP, Workstation, schema};

/// Workstation, as the API serves it.
pub static KIND: Kind = Kind {
    group: WORKSTATIONS_GROUP,
    version: VERSION,
    kind: "Workstation",
    plural: "workstations",
    singular: "workstation",
    short_names: &["ws"],
    cli_names: &[],
    categories: &["ringleader"],
    namespaced: true,
    has_status: true,
    name_rule: NameRule::Label { max_len: 63 },
    columns: COLUMNS,
    schema: || &SCHEMA,
    check,
    complete: complete::<Workstation>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<Workstation>);

const COLUMNS: &[Column] = &[AGE];

fn check(_new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}

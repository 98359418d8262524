//! Pools.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, complete};
use crate::object::{
    Column, FieldError, Kind, NameRule, VERSION, WORKSTATIONS_GROUP, WorkstationPool, schema,
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
    name_rule: NameRule::Label { max_len: 54 },
    columns: COLUMNS,
    schema: || &SCHEMA,
    check,
    complete: complete::<WorkstationPool>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<WorkstationPool>);

const COLUMNS: &[Column] = &[AGE];

fn check(_new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}

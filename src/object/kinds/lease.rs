//! Leases.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, complete};
use crate::object::{
    Column, FieldError, Kind, NameRule, VERSION, WORKSTATIONS_GROUP, WorkstationPoolLease, schema,
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
    columns: COLUMNS,
    schema: || &SCHEMA,
    check,
    complete: complete::<WorkstationPoolLease>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<WorkstationPoolLease>);

const COLUMNS: &[Column] = &[AGE];

fn check(_new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}

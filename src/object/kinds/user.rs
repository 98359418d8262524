//! Users: cluster-wide.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, complete};
use crate::object::{CORE_GROUP, Column, FieldError, Kind, NameRule, User, VERSION, schema};

/// User, as the API serves it.
pub static KIND: Kind = Kind {
    group: CORE_GROUP,
    version: VERSION,
    kind: "User",
    plural: "users",
    singular: "user",
    short_names: &[],
    cli_names: &[],
    categories: &["ringleader"],
    namespaced: false,
    has_status: false,
    name_rule: NameRule::Subdomain,
    columns: COLUMNS,
    schema: || &SCHEMA,
    check,
    complete: complete::<User>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<User>);

const COLUMNS: &[Column] = &[AGE];

fn check(_new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}

//! Users: the people a daemon knows.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, complete, wide};
use crate::object::{CORE_GROUP, Cell, FieldError, Kind, NameRule, User, VERSION, schema};

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
    columns: &[
        wide("Display Name", "string", "Their name for people.", Cell::At("/spec/displayName")),
        wide("Disabled", "boolean", "Whether they may do nothing.", Cell::At("/spec/disabled")),
        AGE,
    ],
    schema: || &SCHEMA,
    check,
    complete: complete::<User>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<User>);

fn check(_new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    // The schema says it all.
    Vec::new()
}

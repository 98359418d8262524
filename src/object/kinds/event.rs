//! Events: written by the server, one a thing that happened.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, complete};
use crate::object::{CORE_GROUP, Column, Event, FieldError, Kind, NameRule, VERSION, schema};

/// Event, as the API serves it.
pub static KIND: Kind = Kind {
    group: CORE_GROUP,
    version: VERSION,
    kind: "Event",
    plural: "events",
    singular: "event",
    short_names: &[],
    cli_names: &[],
    categories: &["ringleader"],
    namespaced: true,
    has_status: false,
    name_rule: NameRule::Subdomain,
    columns: COLUMNS,
    schema: || &SCHEMA,
    check,
    complete: complete::<Event>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<Event>);

const COLUMNS: &[Column] = &[AGE];

fn check(_new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}

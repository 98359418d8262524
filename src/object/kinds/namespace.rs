//! Namespaces: cluster-wide.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, complete};
use crate::object::{CORE_GROUP, Column, FieldError, Kind, NameRule, Namespace, VERSION, schema};

/// Namespace, as the API serves it.
pub static KIND: Kind = Kind {
    group: CORE_GROUP,
    version: VERSION,
    kind: "Namespace",
    plural: "namespaces",
    singular: "namespace",
    short_names: &[],
    cli_names: &["ns"],
    categories: &["ringleader"],
    namespaced: false,
    has_status: false,
    name_rule: NameRule::Subdomain,
    columns: COLUMNS,
    schema: || &SCHEMA,
    check,
    complete: complete::<Namespace>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<Namespace>);

const COLUMNS: &[Column] = &[AGE];

fn check(_new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    Vec::new()
}

//! Namespaces: who administers them, and how much they may hold.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, complete, subject};
use crate::object::{CORE_GROUP, FieldError, Kind, NameRule, Namespace, VERSION, schema};

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
    columns: &[AGE],
    schema: || &SCHEMA,
    check,
    complete: complete::<Namespace>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<Namespace>);

fn check(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let admins = new.pointer("/spec/admins").and_then(Value::as_array);
    let admins = admins.into_iter().flatten().enumerate();
    admins.flat_map(|(index, admin)| subject::check(Some(admin), &format!("spec.admins[{index}]"))).collect()
}

//! Events: what happened to an object, counted where it happened again.

use std::sync::LazyLock;

use serde_json::Value;

use super::{AGE, column, complete, wide};
use crate::object::{CORE_GROUP, Cell, Event, FieldError, Kind, NameRule, VERSION, schema};

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
    columns: &[
        column("Last Seen", "date", "When it last happened.", Cell::At("/lastTimestamp")),
        column("Type", "string", "Normal, or Warning: a person should look.", Cell::At("/type")),
        column("Reason", "string", "What happened, in one word.", Cell::At("/reason")),
        column("Object", "string", "What it happened to.", Cell::Of(object)),
        column("Message", "string", "What happened, in one sentence.", Cell::At("/message")),
        wide("Count", "integer", "How often it happened.", Cell::At("/count")),
        AGE,
    ],
    schema: || &SCHEMA,
    check,
    complete: complete::<Event>,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(schema::of::<Event>);

/// `workstationpool/agents-linux`.
fn object(event: &Value) -> Value {
    let field = |name: &str| event.pointer(&format!("/regarding/{name}")).and_then(Value::as_str);
    match (field("kind"), field("name")) {
        (Some(kind), Some(name)) => format!("{}/{name}", kind.to_lowercase()).into(),
        _ => Value::Null,
    }
}

fn check(_new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    // The schema says it all.
    Vec::new()
}

//! Takes out of an object what its schema does not know, naming each field it took.

use serde_json::Value;

use super::schema::ANY_FIELDS;
use super::suggest::nearest;
use super::{FieldError, FieldReason};

/// Removes every unknown field, and every field that is `null`: absent and null mean the same
/// in an object of ours. Returns the unknown ones by their full path.
pub fn prune(schema: &Value, object: &mut Value) -> Vec<FieldError> {
    let mut unknown = Vec::new();
    below(schema, object, "", &mut unknown);
    unknown
}

fn below(schema: &Value, value: &mut Value, path: &str, unknown: &mut Vec<FieldError>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                below(&schema["items"], item, &format!("{path}[{index}]"), unknown);
            }
        }
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            if let Some(known) = schema.get("properties").and_then(Value::as_object) {
                fields.retain(|name, _| {
                    let keep = known.contains_key(name);
                    if !keep {
                        unknown.push(unknown_field(&join(path, name), name, known.keys()));
                    }
                    keep
                });
                for (name, field) in fields {
                    below(&known[name], field, &join(path, name), unknown);
                }
            } else {
                // A map, or an object with free fields.
                let schema =
                    if schema[ANY_FIELDS] == true { schema } else { &schema["additionalProperties"] };
                for (name, field) in fields {
                    below(schema, field, &join(path, name), unknown);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The entry for a field that is not in the schema, with the known field it may have meant.
pub fn unknown_field<'a>(path: &str, name: &str, known: impl IntoIterator<Item = &'a String>) -> FieldError {
    let message = match nearest(name, known.into_iter().map(String::as_str)) {
        Some(meant) => format!("unknown field; did you mean {meant:?}?"),
        None => "unknown field".to_owned(),
    };
    FieldError::new(path, FieldReason::Unknown, message)
}

/// The path of `name` below `path`.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

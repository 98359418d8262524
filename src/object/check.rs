//! Checks an object against its schema: every wrong field in one answer, each with its cure.

use serde_json::{Map, Number, Value};

use super::prune::join;
use super::schema::{ANY_FIELDS, LONGEST, SHORTEST};
use super::{FieldError, FieldReason, Span, Time, cure};

/// Every field of `object` that its schema refuses. Unknown fields are not looked at: `prune`
/// has taken them out.
pub fn check(schema: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    any(schema, object, "", &mut errors);
    errors
}

fn any(schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let expected = schema["type"].as_str().unwrap_or_default();
    match (expected, value) {
        ("object", Value::Object(fields)) => object(schema, fields, path, errors),
        ("array", Value::Array(items)) => list(schema, items, path, errors),
        ("string", Value::String(text)) => string(schema, text, path, errors),
        ("integer", Value::Number(number)) if number.is_i64() || number.is_u64() => {
            range(schema, number, path, errors);
        }
        ("number", Value::Number(number)) => range(schema, number, path, errors),
        ("boolean", Value::Bool(_)) | ("", _) => {}
        _ => errors.push(FieldError::new(path, FieldReason::TypeInvalid, cure::wrong_type(schema, value))),
    }
}

fn object(schema: &Value, fields: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(required) {
            errors.push(required_value(join(path, required)));
        }
    }
    for (name, value) in fields {
        let below = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
        if below.is_object() && schema[ANY_FIELDS] != true {
            any(below, value, &join(path, name), errors);
        }
    }
}

fn list(schema: &Value, items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    if let Some(most) = schema["maxItems"].as_u64()
        && items.len() as u64 > most
    {
        let message = format!("Too many: {}: must have at most {most} items", items.len());
        errors.push(FieldError::new(path, FieldReason::TooMany, message));
    }
    let identities: Vec<Value> = items.iter().map(|item| identity(schema, item)).collect();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        any(&schema["items"], item, &path, errors);
        let identity = &identities[index];
        if !identity.is_null() && identities[..index].contains(identity) {
            let message = format!("Duplicate value: {}", cure::shown(identity));
            errors.push(FieldError::new(path, FieldReason::Duplicate, message));
        }
    }
}

/// What tells an item from the others of its list; null where two may be alike.
fn identity(schema: &Value, item: &Value) -> Value {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => item.clone(),
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            let named: Map<String, Value> = keys
                .filter_map(Value::as_str)
                .filter_map(|key| Some((key.to_owned(), item.get(key)?.clone())))
                .collect();
            if named.is_empty() { Value::Null } else { Value::Object(named) }
        }
        _ => Value::Null,
    }
}

fn string(schema: &Value, text: &str, path: &str, errors: &mut Vec<FieldError>) {
    if text.is_empty() && schema["minLength"].as_u64().is_some_and(|least| least > 0) {
        errors.push(required_value(path));
    } else if let Some(choices) = schema["enum"].as_array() {
        if !choices.iter().any(|choice| choice == text) {
            errors.push(unsupported(path, text, choices.iter().filter_map(Value::as_str)));
        }
    } else if let Err(why) = format(schema, text) {
        errors.push(invalid(path, &text.into(), &why));
    }
}

fn format(schema: &Value, text: &str) -> Result<(), String> {
    match schema["format"].as_str() {
        Some("duration") => duration(schema, text),
        Some("date-time") => Time::parse(text)
            .map(|_| ())
            .map_err(|_| "must be an RFC 3339 time such as 2026-10-20T18:00:00Z".to_owned()),
        Some("ulid") => text.parse::<ulid::Ulid>().map(|_| ()).map_err(|_| "must be a ULID".to_owned()),
        _ => Ok(()),
    }
}

fn duration(schema: &Value, text: &str) -> Result<(), String> {
    let span: Span = text.parse().map_err(|_| cure::A_DURATION.to_owned())?;
    let bound = |keyword: &str| schema[keyword].as_str().and_then(|bound| bound.parse::<Span>().ok());
    let (shortest, longest) = (bound(SHORTEST), bound(LONGEST));
    let short = shortest.as_ref().is_some_and(|bound| span.millis() < bound.millis());
    let long = longest.as_ref().is_some_and(|bound| span.millis() > bound.millis());
    if short || long { Err(must_be(shortest, longest)) } else { Ok(()) }
}

fn range(schema: &Value, number: &Number, path: &str, errors: &mut Vec<FieldError>) {
    let value = number.as_f64().unwrap_or(f64::NAN);
    let bound = |keyword: &str| schema[keyword].as_f64();
    let outside = bound("minimum").is_some_and(|least| value < least)
        || bound("maximum").is_some_and(|most| value > most);
    if outside {
        let most = schema.get("maximum").filter(|most| **most != i64::MAX);
        let why = must_be(schema.get("minimum"), most);
        errors.push(invalid(path, &Value::Number(number.clone()), &why));
    }
}

fn must_be<T: std::fmt::Display>(least: Option<T>, most: Option<T>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("must be from {least} to {most}"),
        (Some(least), None) => format!("must be at least {least}"),
        (None, Some(most)) => format!("must be at most {most}"),
        (None, None) => "is out of range".to_owned(),
    }
}

/// A field that must be there.
pub fn required_value(path: impl Into<String>) -> FieldError {
    FieldError::new(path, FieldReason::Required, "Required value")
}

/// A value that is wrong, and what it must be instead.
pub fn invalid(path: impl Into<String>, value: &Value, why: &str) -> FieldError {
    FieldError::new(path, FieldReason::Invalid, format!("Invalid value: {}: {why}", cure::shown(value)))
}

/// A word that is none of the supported ones.
pub fn unsupported<'a>(
    path: impl Into<String>,
    given: &str,
    supported: impl IntoIterator<Item = &'a str>,
) -> FieldError {
    let supported: Vec<String> = supported.into_iter().map(|word| format!("{word:?}")).collect();
    let message = format!(
        "Unsupported value: {}: supported values: {}",
        cure::shown(&given.into()),
        supported.join(", ")
    );
    FieldError::new(path, FieldReason::NotSupported, message)
}

/// A field that may not be set here.
pub fn forbidden(path: impl Into<String>, why: &str) -> FieldError {
    FieldError::new(path, FieldReason::Forbidden, format!("Forbidden: {why}"))
}

//! Words for a value of the wrong type: what was meant, and what to write instead.

use serde_json::Value;

use super::FieldError;
use super::schema::TYPE_NAME;

/// What a duration looks like.
pub const A_DURATION: &str = "must be a duration: write a number and a unit, such as 90s, 10m, 1h30m or 7d";

/// The start of the message for an `image` of the wrong type. Only a provider knows which images it
/// carries: `name_carried_images` adds them.
const AN_IMAGE: &str = "expected {distribution, version}";

/// No longer text is repeated in a message: whoever wrote it knows it, and it may be a secret
/// that was put in the wrong place.
const LONGEST_SHOWN: usize = 63;

/// The message for a value that is not of the schema's type.
pub fn wrong_type(schema: &Value, value: &Value) -> String {
    if schema[TYPE_NAME] == "Image" {
        return image(value);
    }
    format!("Invalid value: {}: {}", shown(value), must_be(schema, value))
}

/// Adds to every message about an `image` of the wrong type which ones there are: only a provider
/// knows, and it is never asked about an image it cannot read.
pub fn name_carried_images(errors: &mut [FieldError], carried: &[String]) {
    let carried = if carried.is_empty() { "none".to_owned() } else { carried.join(", ") };
    for error in errors.iter_mut().filter(|error| error.message.starts_with(AN_IMAGE)) {
        error.message.push_str("; this daemon carries: ");
        error.message.push_str(&carried);
    }
}

/// A value as a message shows it: itself where it is short, else what sort of value it is.
pub fn shown(value: &Value) -> String {
    let text = match value {
        Value::Array(_) => return "a list".into(),
        // The identity of a list item is shown whole; anything bigger is not worth repeating.
        Value::Object(fields) if fields.values().any(|field| field.is_object() || field.is_array()) => {
            return "an object".into();
        }
        Value::String(text) if text.contains(char::is_control) => return "a text of several lines".into(),
        _ => value.to_string(),
    };
    let length = text.chars().count();
    if length <= LONGEST_SHOWN + 2 { text } else { format!("({length} characters)") }
}

fn must_be(schema: &Value, value: &Value) -> String {
    match schema["type"].as_str().unwrap_or_default() {
        "integer" => number("an integer", value, |text| text.parse::<i64>().is_ok()),
        "number" => number("a number", value, |text| text.parse::<f64>().is_ok_and(f64::is_finite)),
        "boolean" => "must be true or false".into(),
        "string" => string(schema, value),
        "array" => "must be a list".into(),
        "object" => object(schema, value),
        _ => "is of the wrong type".into(),
    }
}

fn number(what: &str, value: &Value, is_one: fn(&str) -> bool) -> String {
    match value {
        Value::String(text) if is_one(text) => format!("must be {what}: write {text}"),
        _ => format!("must be {what}"),
    }
}

fn string(schema: &Value, value: &Value) -> String {
    if schema["format"] == "duration" {
        return A_DURATION.into();
    }
    if value.is_number() || value.is_boolean() {
        return "must be a text: put it in quotes".into();
    }
    "must be a text".into()
}

fn object(schema: &Value, value: &Value) -> String {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match (required.as_slice(), value) {
        ([], _) => "must be an object".into(),
        ([field], Value::String(text)) if is_plain(text) => {
            format!("must be an object: write {{{field}: {text}}}")
        }
        (fields, _) => format!("must be an object with {}", fields.join(" and ")),
    }
}

fn image(value: &Value) -> String {
    let Some((distribution, version)) = value.as_str().and_then(|text| text.split_once([':', ' '])) else {
        return AN_IMAGE.to_owned();
    };
    if is_plain(distribution) && is_plain(version) {
        format!("{AN_IMAGE}: write {{distribution: {distribution}, version: {version:?}}}")
    } else {
        AN_IMAGE.to_owned()
    }
}

/// Whether a text can be shown in a cure as it is.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.len() <= LONGEST_SHOWN && text.chars().all(plain)
}

//! Structural schemas, generated from the types: what checks, prunes and documents every object.
//!
//! The shape is the one Kubernetes asks of a custom resource: every reference inlined, one `type`
//! everywhere, no `$schema`, no titles, no unions. `null` means "absent" in every object of ours
//! (see `prune`), so nothing is nullable.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// A schema that accepts an object with any fields.
pub const ANY_FIELDS: &str = "x-kubernetes-preserve-unknown-fields";

/// The shortest and the longest duration a field takes, as durations.
pub const SHORTEST: &str = "x-ringleader-minimum";
pub const LONGEST: &str = "x-ringleader-maximum";
/// The name of a type whose misuse has a cure of its own.
pub const TYPE_NAME: &str = "x-ringleader-type";

/// The schema of a whole object of type `T`, `apiVersion` and `kind` included.
#[must_use]
pub fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let mut all = Map::new();
        all.insert("apiVersion".into(), json!({"type": "string", "description": "The group and version."}));
        all.insert("kind".into(), json!({"type": "string", "description": "The kind."}));
        all.append(fields);
        if let Some(status) = all.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("default");
        }
        *fields = all;
    }
    schema
}

/// Brings one generated schema, and all below it, into structural form.
fn tidy(schema: &mut Value) {
    // `true` is schemars' word for "anything", the schema of a value in a free-form map.
    if *schema == Value::Bool(true) {
        *schema = json!({ANY_FIELDS: true});
    }
    let Some(keywords) = schema.as_object_mut() else { return };
    for noise in ["$schema", "title"] {
        keywords.remove(noise);
    }
    drop_null(keywords);
    flatten_variants(keywords);
    bound_integers(keywords);
    if keywords.get("default").is_some_and(Value::is_null) {
        keywords.remove("default");
    }
    if keywords.get("additionalProperties") == Some(&Value::Bool(true)) {
        keywords.remove("additionalProperties");
        keywords.insert(ANY_FIELDS.into(), Value::Bool(true));
    }
    if keywords.get("type").is_some_and(|name| name == "array") {
        keywords.entry("x-kubernetes-list-type").or_insert("atomic".into());
    }
    if let Some(fields) = keywords.get_mut("properties").and_then(Value::as_object_mut) {
        fields.values_mut().for_each(tidy);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(schema) = keywords.get_mut(below) {
            tidy(schema);
        }
    }
}

/// `Option<T>` becomes `T`: absent and null are the same to us.
fn drop_null(keywords: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = keywords.get("type") {
        let real = types.iter().find(|name| *name != "null").cloned();
        keywords.insert("type".into(), real.unwrap_or_else(|| "null".into()));
    }
    if let Some(Value::Array(choices)) = keywords.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    let Some(Value::Array(choices)) = keywords.remove("anyOf") else { return };
    let real = choices.into_iter().find(|choice| choice["type"] != "null");
    if let Some(Value::Object(real)) = real {
        // The field's own description, already there, says more than its type's.
        for (keyword, value) in real {
            keywords.entry(keyword).or_insert(value);
        }
    }
}

/// A Rust enum whose variants have docs comes as `oneOf` constants: make it a plain `enum` and keep
/// the docs in its description.
fn flatten_variants(keywords: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = keywords.remove("oneOf") else { return };
    let mut names = Vec::new();
    let mut docs = Vec::new();
    for variant in &variants {
        let own: Vec<Value> = match (variant.get("const"), variant.get("enum")) {
            (Some(name), _) => vec![name.clone()],
            (None, Some(Value::Array(names))) => names.clone(),
            (None, _) => Vec::new(),
        };
        if let (Some(doc), [Value::String(name)]) =
            (variant.get("description").and_then(Value::as_str), own.as_slice())
        {
            docs.push(format!("{name}: {doc}"));
        }
        names.extend(own);
    }
    if !docs.is_empty() {
        let before = keywords.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{before} {}", docs.join(" "));
        keywords.insert("description".into(), text.trim().into());
    }
    keywords.insert("type".into(), "string".into());
    keywords.insert("enum".into(), Value::Array(names));
}

/// Rust's integer widths become bounds, so that whatever passes the schema fits the type.
fn bound_integers(keywords: &mut Map<String, Value>) {
    let (least, most) = match keywords.get("format").and_then(Value::as_str) {
        Some("uint32") => (0, i64::from(u32::MAX)),
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => return,
    };
    keywords.insert("format".into(), "int64".into());
    keywords.entry("minimum").or_insert(least.into());
    keywords.entry("maximum").or_insert(most.into());
}

//! The rules of `metadata` on a write: what a writer may say, and what only the server says.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::check::{forbidden, invalid, required_value};
use super::names::{broken_key, broken_label_value};
use super::{FieldError, FieldReason, Kind, SERVER_PREFIX, Tick};

/// Fields that the server writes and a writer's words for are passed over.
const SERVER_FIELDS: [&str; 6] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// The most bytes that all annotations of an object may take.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// How many random characters are appended to a `generateName`.
const SUFFIX_LEN: usize = 5;
/// Letters and digits that make no words and are not taken for one another.
const SUFFIX_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// On a create: takes out what the server will write itself.
pub fn drop_server_fields(object: &mut Value) {
    let Some(metadata) = fields_mut(object) else { return };
    for field in SERVER_FIELDS {
        metadata.shift_remove(field);
    }
    if let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|finalizer| !is_ours(finalizer));
    }
}

/// On an update: what only the server writes stays as it is in `old`, whatever the writer left out
/// or changed. Labels and annotations of ours that were changed are left for `check` to refuse.
pub fn keep_server_fields(new: &mut Value, old: &Value) {
    let stored = fields(old).cloned().unwrap_or_default();
    let Some(metadata) = fields_mut(new) else { return };
    for field in ["name", "namespace"].into_iter().chain(SERVER_FIELDS) {
        match stored.get(field) {
            Some(value) => drop(metadata.insert(field.into(), value.clone())),
            None => drop(metadata.shift_remove(field)),
        }
    }
    for map in ["labels", "annotations"] {
        let ours = stored.get(map).and_then(Value::as_object).into_iter().flatten();
        for (key, value) in ours.filter(|(key, _)| key.starts_with(SERVER_PREFIX)) {
            let entries = metadata.entry(map).or_insert_with(|| Value::Object(Map::new()));
            if let Some(entries) = entries.as_object_mut() {
                entries.entry(key).or_insert_with(|| value.clone());
            }
        }
    }
    let stored = stored.get("finalizers").and_then(Value::as_array).into_iter().flatten();
    let ours: Vec<Value> = stored.filter(|finalizer| is_ours(finalizer)).cloned().collect();
    let finalizers = metadata.entry("finalizers").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(finalizers) = finalizers.as_array_mut() {
        finalizers.retain(|finalizer| !is_ours(finalizer));
        finalizers.splice(0..0, ours);
    }
}

/// On a create: settles namespace and name, made from `generateName` where there is none.
pub fn name(kind: &Kind, object: &mut Value, namespace: Option<&str>, tick: &Tick) -> Vec<FieldError> {
    let Some(metadata) = fields_mut(object) else { return Vec::new() };
    let mut errors = Vec::new();
    if kind.namespaced {
        match namespace {
            Some(namespace) => drop(metadata.insert("namespace".into(), namespace.into())),
            None => errors.push(required_value("metadata.namespace")),
        }
    } else {
        metadata.shift_remove("namespace");
    }
    let given = |field: &str| metadata.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (field, name) = match (given("name"), given("generateName")) {
        (Some(name), _) => ("metadata.name", name.to_owned()),
        (None, Some(prefix)) => ("metadata.generateName", generated(prefix, kind.name_rule.longest(), tick)),
        (None, None) => {
            let why = "Required value: name or generateName is required";
            errors.push(FieldError::new("metadata.name", FieldReason::Required, why));
            return errors;
        }
    };
    let wrong = kind.name_rule.broken(&name);
    errors.extend(wrong.iter().map(|why| invalid(field, &name.as_str().into(), why)));
    metadata.insert("name".into(), name.into());
    errors
}

fn generated(prefix: &str, longest: usize, tick: &Tick) -> String {
    let mut name: String = prefix.chars().take(longest.saturating_sub(SUFFIX_LEN)).collect();
    // Not the bits of the uid, which everybody can read.
    let mut random = tick.random(1);
    for _ in 0..SUFFIX_LEN {
        let letters = SUFFIX_LETTERS.len() as u128;
        let letter = usize::try_from(random % letters).unwrap_or(0);
        name.push(char::from(SUFFIX_LETTERS[letter]));
        random /= letters;
    }
    name
}

/// What a writer may not say in metadata.
pub fn check(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = labels(new.pointer("/metadata/labels"), "metadata.labels");
    errors.extend(annotations(new.pointer("/metadata/annotations"), "metadata.annotations"));
    for map in ["labels", "annotations"] {
        errors.extend(server_entries(map, new, old));
    }
    errors.extend(finalizers(new, old));
    errors.extend(owner_references(new));
    errors
}

/// Kubernetes' rules for a map of labels.
pub fn labels(labels: Option<&Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(broken_key(key).iter().map(|why| invalid(path, &key.as_str().into(), why)));
        let broken = broken_label_value(value.as_str().unwrap_or_default());
        errors.extend(broken.iter().map(|why| invalid(path, value, why)));
    }
    errors
}

/// Kubernetes' rules for a map of annotations.
pub fn annotations(annotations: Option<&Value>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut bytes = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(
            broken_key(&key.to_lowercase()).iter().map(|why| invalid(path, &key.as_str().into(), why)),
        );
        bytes += key.len() + value.as_str().map_or(0, str::len);
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        let message = format!("Too long: may not be more than {ANNOTATIONS_BYTES_MAX} bytes");
        errors.push(FieldError::new(path, FieldReason::TooLong, message));
    }
    errors
}

/// Labels and annotations of ours may be sent back as they are, and nothing else.
fn server_entries(map: &str, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let entries = |object: &Value| fields(object)?.get(map)?.as_object().cloned();
    let stored = old.and_then(entries).unwrap_or_default();
    let written = entries(new).unwrap_or_default();
    let ours = written.iter().filter(|(key, _)| key.starts_with(SERVER_PREFIX));
    let changed = ours.filter(|(key, value)| stored.get(*key) != Some(value));
    changed.map(|(key, _)| server_only(&format!("metadata.{map}"), key)).collect()
}

/// A key that only the server may write.
pub fn server_only(path: &str, key: &str) -> FieldError {
    forbidden(path, &format!("{key}: keys under {SERVER_PREFIX} are written by the server alone"))
}

fn finalizers(new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let path = "metadata.finalizers";
    let mut errors = Vec::new();
    for finalizer in finalizers_of(new) {
        errors.extend(broken_key(finalizer).iter().map(|why| invalid(path, &finalizer.into(), why)));
    }
    let Some(old) = old.filter(|old| old.pointer("/metadata/deletionTimestamp").is_some()) else {
        return errors;
    };
    let stored: BTreeSet<&str> = finalizers_of(old).collect();
    let added: Vec<String> = finalizers_of(new)
        .filter(|finalizer| !stored.contains(finalizer))
        .map(|added| format!("{added:?}"))
        .collect();
    if !added.is_empty() {
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        errors.push(forbidden(path, &why));
    }
    errors
}

fn owner_references(new: &Value) -> Vec<FieldError> {
    let references = new.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let mut errors = Vec::new();
    for (index, reference) in references.into_iter().flatten().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if reference.get(field).is_none_or(|value| *value == "") {
                errors.push(required_value(format!("metadata.ownerReferences[{index}].{field}")));
            }
        }
    }
    errors
}

/// What is allowed and yet unwise, once, on the write that brings it.
pub fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let stored: BTreeSet<&str> = old.into_iter().flat_map(finalizers_of).collect();
    let bare = finalizers_of(new).filter(|finalizer| !finalizer.contains('/') && !stored.contains(finalizer));
    bare.map(|finalizer| {
        format!(
            "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name to avoid accidental \
             conflicts with other finalizer writers"
        )
    })
    .collect()
}

/// Gives a new object its uid, its time of creation and its first generation.
pub fn stamp(object: &mut Value, tick: &Tick) {
    let Some(metadata) = fields_mut(object) else { return };
    metadata.insert("uid".into(), tick.ulid(0).to_string().into());
    metadata.insert("creationTimestamp".into(), tick.wall.whole_seconds().to_string().into());
    metadata.insert("generation".into(), 1.into());
}

/// The spec has changed.
pub fn raise_generation(object: &mut Value) {
    let Some(metadata) = fields_mut(object) else { return };
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or(0);
    metadata.insert("generation".into(), generation.saturating_add(1).into());
}

fn finalizers_of(object: &Value) -> impl Iterator<Item = &str> {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().filter_map(Value::as_str)
}

fn is_ours(finalizer: &Value) -> bool {
    finalizer.as_str().is_some_and(|name| name.starts_with(SERVER_PREFIX))
}

fn fields(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.as_object()
}

fn fields_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}

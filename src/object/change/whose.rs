//! Whose object a write is about: kind, name, namespace and uid must be those of the address it was
//! sent to.

use serde_json::{Map, Value};

use super::{Mutation, Rejected};
use crate::object::Kind;
use crate::object::check::invalid;

/// An object that is of this kind, says so, and carries nothing that this server does not keep.
pub fn envelope(kind: &Kind, body: Value) -> Result<Value, Rejected> {
    let Value::Object(mut fields) = body else {
        return Err(Rejected::BadRequest("the body must be an object".into()));
    };
    let api_version = kind.api_version();
    match fields.get("apiVersion") {
        Some(given) if *given != api_version.as_str() => {
            let given = given.as_str().unwrap_or_default();
            return Err(Rejected::BadRequest(format!(
                "the API version in the data ({given}) does not match the expected API version ({api_version})"
            )));
        }
        _ => fields.insert("apiVersion".into(), api_version.into()),
    };
    match fields.get("kind") {
        Some(given) if *given != kind.kind => {
            let wrong = invalid("kind", given, &format!("must be {}", kind.kind));
            return Err(Rejected::Invalid(vec![wrong]));
        }
        _ => fields.insert("kind".into(), kind.kind.into()),
    };
    if fields.get("metadata").is_none_or(Value::is_null) {
        fields.insert("metadata".into(), Value::Object(Map::new()));
    }
    let mut object = Value::Object(fields);
    for ignored in ["managedFields", "selfLink"] {
        remove_field(&mut object, "metadata", ignored);
    }
    Ok(object)
}

pub fn same_name(wanted: &Value, old: &Value) -> Result<(), Rejected> {
    let stored = text(old, "/metadata/name").unwrap_or_default();
    match wanted.pointer("/metadata/name") {
        None | Some(Value::Null) => Ok(()),
        Some(name) if name == stored => Ok(()),
        Some(name) => Err(Rejected::BadRequest(format!(
            "the name of the object ({}) does not match the name on the URL ({stored})",
            name.as_str().unwrap_or_default()
        ))),
    }
}

/// Of a cluster-wide object a namespace is dropped, as Kubernetes does.
pub fn same_namespace(wanted: &Value, namespace: Option<&str>) -> Result<(), Rejected> {
    match (text(wanted, "/metadata/namespace"), namespace) {
        (Some(given), Some(namespace)) if !given.is_empty() && given != namespace => {
            Err(Rejected::BadRequest(
                "the namespace of the provided object does not match the namespace sent on the request"
                    .into(),
            ))
        }
        _ => Ok(()),
    }
}

/// A uid in a PUT is a precondition; a patch may not change it.
pub fn same_uid(mutation: &Mutation, wanted: &Value, old: &Value) -> Result<(), Rejected> {
    let stored = text(old, "/metadata/uid").unwrap_or_default();
    match (wanted.pointer("/metadata/uid"), mutation) {
        (None, _) => Ok(()),
        (Some(uid), _) if is_unset(uid) || uid == stored => Ok(()),
        (Some(uid), Mutation::Replace(_)) => Err(Rejected::Conflict(format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {stored}",
            uid.as_str().unwrap_or_default()
        ))),
        (Some(uid), Mutation::MergePatch(_)) => {
            Err(Rejected::Invalid(vec![invalid("metadata.uid", uid, "field is immutable")]))
        }
    }
}

pub fn remove_field(object: &mut Value, parent: &str, name: &str) {
    if let Some(fields) = object.get_mut(parent).and_then(Value::as_object_mut) {
        fields.shift_remove(name);
    }
}

pub fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

/// Null, and the zero values that Go clients send for what they leave out.
pub fn is_unset(value: &Value) -> bool {
    value.is_null() || *value == "" || *value == "0"
}

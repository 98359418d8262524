//! The kinds as the API serves them: names, columns and the rules their schemas cannot say.
//!
//! One file a kind. A new kind adds its file, its type and one line in `registry`.

mod device;
mod event;
mod lease;
mod namespace;
mod pool;
mod subject;
mod user;
mod workstation;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Cell, Column, Registry, Subject};

/// Every kind this version serves, what others refer to first.
#[must_use]
pub fn registry() -> Registry {
    Registry::new(vec![
        &namespace::KIND,
        &user::KIND,
        &device::KIND,
        &workstation::KIND,
        &pool::KIND,
        &lease::KIND,
        &event::KIND,
    ])
}

/// Last in every table.
const AGE: Column = column("Age", "date", "When it was created.", Cell::At("/metadata/creationTimestamp"));

/// A column that is always shown.
const fn column(name: &'static str, r#type: &'static str, description: &'static str, cell: Cell) -> Column {
    Column { name, r#type, priority: 0, description, cell }
}

/// A column of `-o wide`.
const fn wide(name: &'static str, r#type: &'static str, description: &'static str, cell: Cell) -> Column {
    Column { name, r#type, priority: 1, description, cell }
}

/// Reads an object as its type and writes it again: every default is there then, and the order of
/// the fields is the type's.
fn complete<T: Serialize + DeserializeOwned>(object: Value) -> Result<Value, serde_json::Error> {
    let mut whole = Map::new();
    for field in ["apiVersion", "kind"] {
        if let Some(value) = object.get(field) {
            whole.insert(field.into(), value.clone());
        }
    }
    if let Value::Object(mut fields) = serde_json::to_value(serde_json::from_value::<T>(object)?)? {
        whole.append(&mut fields);
    }
    Ok(Value::Object(whole))
}

/// A subject in one word, as people write it.
fn subject_name(subject: &Value) -> Value {
    Subject::deserialize(subject).map_or(Value::Null, |subject| subject.to_string().into())
}

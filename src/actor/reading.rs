//! A write as it came in, judged by Kubernetes' rules against the present object.
//!
//! What is left for the core is what only the core can know. The same for every kind and owner.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::doors::{Refusal, Verb, Write};
use crate::object::{Admitted, FieldError, Rejected, Tick, admit_create, admit_update, other_uid};
use crate::store::Record;

/// What a write asks for, once its object has been judged.
#[derive(Debug)]
pub enum Judged {
    /// A new object, whole.
    Create(Value),
    /// The object as it would stand after the write.
    Update(Value),
    Delete,
}

/// A judged write, and what goes with the answer.
#[derive(Debug)]
pub struct Judgement {
    pub judged: Judged,
    pub warnings: Vec<String>,
    pub expected_version: Option<u64>,
}

/// The present object a write is about.
pub struct Present {
    pub uid: ulid::Ulid,
    pub value: Value,
}

/// Judges `write`; `old` is the present object with its name, if there is one.
///
/// # Errors
/// When the write cannot be taken, whatever the object's owner would say.
pub fn judge(write: &Write, old: Option<&Present>, tick: &Tick) -> Result<Judgement, Refusal> {
    let admitted = |judged: fn(Value) -> Judged, admitted: Admitted| Judgement {
        judged: judged(admitted.value),
        warnings: admitted.warnings,
        expected_version: admitted.expected_version,
    };
    match &write.verb {
        Verb::Create { body } => {
            let object = admit_create(
                write.kind,
                body.clone(),
                write.namespace.as_deref(),
                tick,
                write.field_validation,
            )?;
            Ok(admitted(Judged::Create, object))
        }
        Verb::Update { mutation, part, .. } => {
            let old = old.ok_or(Refusal::NotFound)?;
            let object = admit_update(write.kind, &old.value, mutation, *part, write.field_validation)?;
            Ok(admitted(Judged::Update, object))
        }
        Verb::Delete { uid, resource_version, .. } => {
            let old = old.ok_or(Refusal::NotFound)?;
            if let Some(uid) = uid.filter(|uid| *uid != old.uid) {
                return Err(Refusal::Conflict(other_uid(&uid.to_string(), old.uid)));
            }
            Ok(Judgement {
                judged: Judged::Delete,
                warnings: Vec::new(),
                expected_version: *resource_version,
            })
        }
    }
}

/// An admitted object as its type.
///
/// # Errors
/// When its schema let something through that its type does not take: a defect, told as a refusal.
pub fn typed<T: DeserializeOwned>(value: Value) -> Result<T, Refusal> {
    serde_json::from_value(value).map_err(|error| Refusal::BadRequest(error.to_string()))
}

/// A record of a kind that is always shown, as the API shows it.
///
/// # Panics
/// For a pool that is gone: its owner asks for its presence first.
#[must_use]
pub fn shown(record: Record) -> (ulid::Ulid, Value) {
    let resource = record.present(0).expect("only a pool that is gone is not shown");
    (resource.uid, resource.value)
}

/// One wrong field as a refusal.
#[must_use]
pub fn invalid(error: FieldError) -> Refusal {
    Refusal::Invalid(vec![error])
}

impl From<Rejected> for Refusal {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::Invalid(errors) => Self::Invalid(errors),
            Rejected::BadRequest(why) => Self::BadRequest(why),
            Rejected::Conflict(why) => Self::Conflict(why),
        }
    }
}

impl Verb {
    /// The name of the object it is about; of a creation the one in its body.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Create { body } => {
                body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
            }
            Self::Update { name, .. } | Self::Delete { name, .. } => name,
        }
    }
}

//! How a write changes an object: Kubernetes' rules, the same for every kind.
//!
//! ```text
//! body or patch → whose object is it → prune → server's fields → checks → complete → generation
//! ```
//!
//! Pure: the owner of the object calls these with the object as it is, and stores the result.

mod whose;

use serde_json::{Map, Value};

use self::whose::{envelope, is_unset, remove_field, same_name, same_namespace, same_uid, text};
use super::check::{check, invalid};
use super::prune::prune;
use super::{FieldError, FieldReason, Kind, Tick, metadata};

/// How an update says what it changes. The owner applies it to the present object, so that no
/// reader's stale copy decides.
#[derive(Clone, Debug)]
pub enum Mutation {
    /// PUT: the whole object; its `metadata.resourceVersion` is a precondition.
    Replace(Value),
    /// RFC 7396; a `metadata.resourceVersion` in it is a precondition.
    MergePatch(Value),
}

/// Which part of the object an update may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but status.
    Main,
    /// Status alone.
    Status,
}

/// What becomes of fields the schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Dropped in silence.
    Ignore,
    /// Dropped, with a warning each.
    #[default]
    Warn,
    /// Refused, all of them in one answer.
    Strict,
}

/// A write that may be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Admitted {
    /// The whole object as it will be, defaults filled in, without `metadata.resourceVersion`.
    pub value: Value,
    pub warnings: Vec<String>,
    /// The version the writer saw; another one now is a conflict (`MODIFIED`).
    pub expected_version: Option<u64>,
    /// False when the object already is so: nothing is to be written, and no event is due.
    pub changed: bool,
}

/// Why a write may not be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Every field that is wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<FieldError>),
    /// The request is about another object than the one it was sent to, or about none.
    #[error("{0}")]
    BadRequest(String),
    /// The object is no longer the one the writer saw.
    #[error("{0}")]
    Conflict(String),
}

/// The words for a write that carries another version than the object's.
pub const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// What a delete is told that was meant for an object with another uid, in Kubernetes' words.
#[must_use]
pub fn other_uid(expected: &str, found: ulid::Ulid) -> String {
    format!(
        "the UID in the precondition ({expected}) does not match the UID in record ({found}). The object might \
         have been deleted and then recreated"
    )
}

/// What a delete is told that was meant for another version, in Kubernetes' words.
#[must_use]
pub fn other_version(expected: u64, found: u64) -> String {
    format!(
        "the ResourceVersion in the precondition ({expected}) does not match the ResourceVersion in record \
         ({found}). The object might have been modified"
    )
}

/// Judges a POST: the object to store, with its name, uid, creation time and first generation.
///
/// # Errors
/// Everything that is wrong with the body, in one answer.
pub fn admit_create(
    kind: &Kind,
    body: Value,
    namespace: Option<&str>,
    tick: &Tick,
    validation: FieldValidation,
) -> Result<Admitted, Rejected> {
    let mut object = envelope(kind, body)?;
    same_namespace(&object, namespace)?;
    if object.pointer("/metadata/resourceVersion").is_some_and(|version| !is_unset(version)) {
        return Err(Rejected::BadRequest(
            "resourceVersion should not be set on objects to be created".into(),
        ));
    }
    let mut verdict = Verdict::after_pruning(kind, &mut object, validation);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    metadata::drop_server_fields(&mut object);
    verdict.errors.extend(check((kind.schema)(), &object));
    verdict.errors.extend(metadata::name(kind, &mut object, namespace, tick));
    verdict.errors.extend(metadata::check(&object, None));
    verdict.errors.extend((kind.check)(&object, None));
    metadata::stamp(&mut object, tick);
    let value = verdict.conclude(kind, object)?;
    let warnings = verdict.warnings(&value, None);
    Ok(Admitted { value, warnings, expected_version: None, changed: true })
}

/// Judges a PUT or PATCH of `old`, the stored object: the object as it will be.
///
/// # Errors
/// Everything that is wrong with the object that would result, in one answer.
pub fn admit_update(
    kind: &Kind,
    old: &Value,
    mutation: &Mutation,
    part: Part,
    validation: FieldValidation,
) -> Result<Admitted, Rejected> {
    let mut old = old.clone();
    remove_field(&mut old, "metadata", "resourceVersion");
    let wanted = match mutation {
        Mutation::Replace(body) => body.clone(),
        Mutation::MergePatch(patch) if patch.is_object() => merged(&old, patch),
        Mutation::MergePatch(_) => {
            return Err(Rejected::BadRequest("a merge patch must be an object".into()));
        }
    };
    let mut wanted = envelope(kind, wanted)?;
    same_name(&wanted, &old)?;
    same_namespace(&wanted, text(&old, "/metadata/namespace"))?;
    let expected_version = mutation.expected_version()?;
    same_uid(mutation, &wanted, &old)?;

    let mut verdict = Verdict::after_pruning(kind, &mut wanted, validation);
    let mut new = match part {
        Part::Main => with_field_of(wanted, &old, "status"),
        Part::Status => with_field_of(old.clone(), &wanted, "status"),
    };
    metadata::keep_server_fields(&mut new, &old);
    verdict.errors.extend(check((kind.schema)(), &new));
    verdict.errors.extend(metadata::check(&new, Some(&old)));
    verdict.errors.extend((kind.check)(&new, Some(&old)));
    let mut value = verdict.conclude(kind, new)?;
    if content(&value) != content(&old) {
        metadata::raise_generation(&mut value);
    }
    let warnings = verdict.warnings(&value, Some(&old));
    let changed = value != old;
    Ok(Admitted { value, warnings, expected_version, changed })
}

impl Mutation {
    /// The version the writer saw. A PUT must name it; a patch may.
    ///
    /// # Errors
    /// When it is missing from a PUT, or no version at all.
    pub fn expected_version(&self) -> Result<Option<u64>, Rejected> {
        let (Self::Replace(body) | Self::MergePatch(body)) = self;
        let given = body.pointer("/metadata/resourceVersion").filter(|version| !is_unset(version));
        let wrong =
            |value: &Value, why| Rejected::Invalid(vec![invalid("metadata.resourceVersion", value, why)]);
        match (given, self) {
            (Some(version), _) => version
                .as_str()
                .and_then(|digits| digits.parse().ok())
                .map(Some)
                .ok_or_else(|| wrong(version, "must be a decimal number, as the server wrote it")),
            (None, Self::Replace(_)) => Err(wrong(&0.into(), "must be specified for an update")),
            (None, Self::MergePatch(_)) => Ok(None),
        }
    }
}

/// What was found so far.
struct Verdict {
    errors: Vec<FieldError>,
    warnings: Vec<String>,
}

impl Verdict {
    fn after_pruning(kind: &Kind, object: &mut Value, validation: FieldValidation) -> Self {
        let unknown = prune((kind.schema)(), object);
        match validation {
            FieldValidation::Ignore => Self { errors: Vec::new(), warnings: Vec::new() },
            FieldValidation::Warn => {
                let warnings =
                    unknown.iter().map(|field| format!("unknown field {:?}", field.path)).collect();
                Self { errors: Vec::new(), warnings }
            }
            FieldValidation::Strict => Self { errors: unknown, warnings: Vec::new() },
        }
    }

    /// The object with its defaults, if nothing was wrong.
    fn conclude(&mut self, kind: &Kind, object: Value) -> Result<Value, Rejected> {
        if !self.errors.is_empty() {
            return Err(Rejected::Invalid(std::mem::take(&mut self.errors)));
        }
        (kind.complete)(object).map_err(|error| {
            // The schema comes from the type, so this says that the two have come apart.
            Rejected::Invalid(vec![FieldError::new("", FieldReason::Invalid, error.to_string())])
        })
    }

    fn warnings(self, new: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = self.warnings;
        warnings.extend(metadata::warnings(new, old));
        warnings
    }
}

/// RFC 7396.
fn merged(target: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut fields = target.as_object().cloned().unwrap_or_default();
    for (name, change) in changes {
        if change.is_null() {
            fields.shift_remove(name);
        } else {
            let field = fields.entry(name.clone()).or_insert(Value::Null);
            *field = merged(field, change);
        }
    }
    Value::Object(fields)
}

/// `object` with the field `name` of `other` in place of its own.
fn with_field_of(mut object: Value, other: &Value, name: &str) -> Value {
    if let Some(fields) = object.as_object_mut() {
        match other.get(name) {
            Some(field) => drop(fields.insert(name.into(), field.clone())),
            None => drop(fields.shift_remove(name)),
        }
    }
    object
}

/// What `generation` counts the changes of: all but metadata and status.
fn content(object: &Value) -> Map<String, Value> {
    let mut fields = object.as_object().cloned().unwrap_or_default();
    fields.retain(|name, _| name != "metadata" && name != "status");
    fields
}

//! How a write changes an object: Kubernetes' rules, the same for every kind.

use serde_json::Value;

/// How an update says what it changes. The owner applies it to the present object, so that no
/// reader's stale copy decides.
#[derive(Clone, Debug)]
pub enum Mutation {
    /// PUT: the whole object; a `metadata.resourceVersion` in it is a precondition.
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

//! One object as the API serves it.

use serde_json::Value;
use ulid::Ulid;

use crate::object::Kind;

/// An object's address: kind (by plural and group), namespace (empty for cluster-wide) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub group: &'static str,
    pub plural: &'static str,
    pub namespace: String,
    pub name: String,
}

impl Key {
    /// The address of `name` of `kind`.
    #[must_use]
    pub fn new(kind: &Kind, namespace: Option<&str>, name: &str) -> Self {
        Self {
            group: kind.group,
            plural: kind.plural,
            namespace: namespace.unwrap_or_default().to_owned(),
            name: name.to_owned(),
        }
    }
}

/// One object as the API serves it: immutable, complete (apiVersion, kind, metadata with
/// resourceVersion, spec, status).
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    pub key: Key,
    pub uid: Ulid,
    /// Of the write that made this state.
    pub version: u64,
    pub value: Value,
}

impl Resource {
    /// The same state under another version.
    #[must_use]
    pub fn with_version(mut self, version: u64) -> Self {
        self.version = version;
        if let Some(metadata) = self.value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), Value::from(version.to_string()));
        }
        self
    }
}

//! Who acts, owns and holds.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What sort of subject.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum SubjectKind {
    #[default]
    User,
    ServiceAccount,
}

/// A person or a service account.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    pub kind: SubjectKind,
    #[schemars(length(min = 1))]
    pub name: String,
    /// Of a service account: where it lives. Absent means the namespace of the object that names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl Subject {
    /// The user `name`.
    #[must_use]
    pub fn user(name: impl Into<String>) -> Self {
        Self { kind: SubjectKind::User, name: name.into(), namespace: None }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, &self.namespace) {
            (SubjectKind::User, _) => f.write_str(&self.name),
            (SubjectKind::ServiceAccount, Some(namespace)) => {
                write!(f, "serviceaccount:{namespace}:{}", self.name)
            }
            (SubjectKind::ServiceAccount, None) => write!(f, "serviceaccount:{}", self.name),
        }
    }
}

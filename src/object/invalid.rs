//! What is wrong with an object: one entry a field, so that one answer reports all of them.

use std::fmt;

/// Kubernetes' names for what can be wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldReason {
    Required,
    Invalid,
    NotSupported,
    Duplicate,
    Forbidden,
    TypeInvalid,
    TooLong,
    TooMany,
    NotFound,
    /// Not a field of the schema (`fieldValidation`).
    Unknown,
}

impl FieldReason {
    /// The word of Kubernetes' `Status.details.causes[].reason`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid | Self::Unknown => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
        }
    }
}

/// One field that is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The full path, such as `spec.warm.running` or `spec.authorizedKeys[2]`.
    pub path: String,
    pub reason: FieldReason,
    /// What is wrong and what to write instead; no value that may be a secret.
    pub message: String,
}

impl FieldError {
    /// An entry for `path`.
    #[must_use]
    pub fn new(path: impl Into<String>, reason: FieldReason, message: impl Into<String>) -> Self {
        Self { path: path.into(), reason, message: message.into() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

//! The rules of a subject, wherever one is named.

use serde_json::Value;

use crate::object::check::{forbidden, invalid};
use crate::object::{FieldError, NameRule};

/// What is wrong with the subject at `path`, if there is one.
pub fn check(subject: Option<&Value>, path: &str) -> Vec<FieldError> {
    let field = |name: &str| subject.and_then(|subject| subject.get(name)).and_then(Value::as_str);
    let mut errors = Vec::new();
    if let (Some("User"), Some(_)) = (field("kind"), field("namespace")) {
        errors.push(forbidden(format!("{path}.namespace"), "users belong to no namespace: leave it out"));
    }
    for name in ["name", "namespace"] {
        if let Some(text) = field(name).filter(|text| !text.is_empty()) {
            let broken = NameRule::Subdomain.broken(text);
            let path = format!("{path}.{name}");
            errors.extend(broken.iter().map(|why| invalid(&path, &text.into(), why)));
        }
    }
    errors
}

//! Field selectors, as they stand in a query: `metadata.name=a,spec.paused!=true`.

use serde_json::Value;

/// Which fields an object must have: `metadata.name=a,spec.paused!=true`. The empty one selects
/// everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    /// The field's path, as a JSON pointer.
    pointer: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Reads the form a query and `--field-selector` take: a path of field names, then `=`, `==` or
    /// `!=`, then a value.
    ///
    /// # Errors
    /// The term that is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let terms = text.split(',').map(str::trim).filter(|term| !term.is_empty());
        Ok(Self { requirements: terms.map(FieldRequirement::parse).collect::<Result<_, _>>()? })
    }

    /// Whether the object's fields are what is asked for. A field it does not have counts as empty.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        self.requirements.iter().all(|requirement| {
            let written = match object.pointer(&requirement.pointer) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            (written == requirement.value) == requirement.equal
        })
    }
}

impl FieldRequirement {
    fn parse(term: &str) -> Result<Self, String> {
        let (path, value, equal) = match (term.split_once("!="), term.split_once('=')) {
            (Some((path, value)), _) => (path, value, false),
            (None, Some((path, value))) => (path, value.strip_prefix('=').unwrap_or(value), true),
            (None, None) => {
                return Err(format!("invalid field selector {term:?}: write field=value or field!=value"));
            }
        };
        let named = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric())
        };
        if path.trim().split('.').all(named) {
            let pointer = format!("/{}", path.trim().replace('.', "/"));
            Ok(Self { pointer, value: value.trim().to_owned(), equal })
        } else {
            Err(format!("field label not supported: {}", path.trim()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_compared_by_their_text() {
        let object =
            json!({"metadata": {"name": "a", "namespace": "local"}, "spec": {"paused": true, "n": 3}});
        let selects = |text: &str| FieldSelector::parse(text).expect("a selector").matches(&object);
        for yes in [
            "",
            "metadata.name=a",
            "metadata.name==a",
            "metadata.namespace!=b",
            "spec.paused=true",
            "spec.n=3",
            "metadata.name=a,spec.n!=4",
            "status.phase=",
            "status.phase!=Ready",
        ] {
            assert!(selects(yes), "{yes}");
        }
        for no in ["metadata.name=b", "metadata.name!=a", "status.phase=Ready", "metadata.name=a,spec.n=4"] {
            assert!(!selects(no), "{no}");
        }
    }

    #[test]
    fn a_field_selector_that_names_no_field_is_refused() {
        let told = |selector: &str| FieldSelector::parse(selector).expect_err("this is no selector");
        assert_eq!(told("name"), "invalid field selector \"name\": write field=value or field!=value");
        assert_eq!(told("metadata.labels[0]=a"), "field label not supported: metadata.labels[0]");
        assert_eq!(told("=a"), "field label not supported: ");
        assert_eq!(told("a..b=c"), "field label not supported: a..b");
    }
}

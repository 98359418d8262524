//! Label and field selectors, as they stand in a query: `app=ci,tier in (a, b),!old`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::names::{broken_key, broken_label_value};

/// Which labels an object must carry. The empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    /// Present with one of these values.
    In(Vec<String>),
    /// Absent, or present with none of these values.
    NotIn(Vec<String>),
}

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        let among = |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::In(values) => among(values),
            Self::NotIn(values) => !among(values),
        }
    }
}

impl LabelSelector {
    /// Reads the form a query and `-l` take.
    ///
    /// # Errors
    /// Where the text stops making sense, and what was expected there.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: tokens(text), next: 0 };
        let mut requirements = Vec::new();
        while !parser.at_end() {
            requirements.push(parser.requirement()?);
            if !parser.at_end() {
                parser.expect(&[","])?;
                if parser.at_end() {
                    return Err("found '', expected: identifier after ','".into());
                }
            }
        }
        Ok(Self { requirements })
    }

    /// Whether an object carries what is asked for.
    #[must_use]
    pub fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        self.test(|key| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str))
    }

    /// Whether a set of labels is what is asked for.
    #[must_use]
    pub fn matches_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.test(|key| labels.get(key).map(String::as_str))
    }

    fn test<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.test.holds(label(&requirement.key)))
    }
}

/// The words and signs of a selector.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let sign = matches!(c, '=' | '!' | ',' | '(' | ')' | '<' | '>');
        if (sign || c.is_whitespace()) && !word.is_empty() {
            tokens.push(std::mem::take(&mut word));
        }
        if sign {
            let mut sign = String::from(c);
            if matches!(c, '=' | '!') && chars.next_if_eq(&'=').is_some() {
                sign.push('=');
            }
            tokens.push(sign);
        } else if !c.is_whitespace() {
            word.push(c);
        }
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    tokens
}

struct Parser {
    tokens: Vec<String>,
    next: usize,
}

impl Parser {
    fn at_end(&self) -> bool {
        self.next == self.tokens.len()
    }

    fn peek(&self) -> &str {
        self.tokens.get(self.next).map_or("", String::as_str)
    }

    fn take(&mut self) -> String {
        let token = self.peek().to_owned();
        self.next = self.tokens.len().min(self.next + 1);
        token
    }

    fn expect(&mut self, expected: &[&str]) -> Result<String, String> {
        let token = self.take();
        if expected.contains(&token.as_str()) {
            return Ok(token);
        }
        Err(format!("found '{token}', expected: {}", expected.join(", ")))
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == "!";
        if absent {
            self.take();
        }
        let key = self.take();
        if let Some(why) = broken_key(&key).first() {
            return Err(format!("key: Invalid value: {key:?}: {why}"));
        }
        let test = match self.peek() {
            "" | "," if absent => Test::Absent,
            "" | "," => Test::Exists,
            _ if absent => return Err(format!("found '{}', expected: ',' after '!{key}'", self.peek())),
            _ => self.test()?,
        };
        Ok(Requirement { key, test })
    }

    fn test(&mut self) -> Result<Test, String> {
        match self.expect(&["in", "notin", "=", "==", "!="])?.as_str() {
            "in" => Ok(Test::In(self.values()?)),
            "notin" => Ok(Test::NotIn(self.values()?)),
            "!=" => Ok(Test::NotIn(vec![self.value()?])),
            _ => Ok(Test::In(vec![self.value()?])),
        }
    }

    /// `(a, b)`.
    fn values(&mut self) -> Result<Vec<String>, String> {
        self.expect(&["("])?;
        let mut values = vec![self.value()?];
        while self.expect(&[",", ")"])? == "," {
            values.push(self.value()?);
        }
        Ok(values)
    }

    /// A value may be empty: `app=` asks for a label without a value.
    fn value(&mut self) -> Result<String, String> {
        let value = if matches!(self.peek(), "," | ")") { String::new() } else { self.take() };
        match broken_label_value(&value).first() {
            Some(why) => Err(format!("values: Invalid value: {value:?}: {why}")),
            None => Ok(value),
        }
    }
}

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

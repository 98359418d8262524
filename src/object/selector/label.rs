//! Label selectors, as they stand in a query: `app=ci,tier in (a, b),!old`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::object::names::{broken_key, broken_label_value};

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(selector: &str, labels: &Value) -> bool {
        let selector = LabelSelector::parse(selector).expect("a selector");
        selector.matches(&json!({"metadata": {"name": "a", "labels": labels}}))
    }

    #[test]
    fn labels_are_compared_as_kubernetes_does() {
        let ci = json!({"app": "ci", "tier": "a", "empty": ""});
        for yes in [
            "",
            "app",
            "app=ci",
            "app==ci",
            "app = ci",
            "app!=cd",
            "gone!=ci",
            "!gone",
            "! gone",
            "app in (cd, ci)",
            "app in(ci)",
            "app notin (cd,ce)",
            "gone notin (ci)",
            "app=ci,tier in (a,b),!gone",
            "empty=",
            "empty in ()",
            "example.com/x notin (y)",
        ] {
            assert!(selects(yes, &ci), "{yes}");
        }
        for no in [
            "gone",
            "app=cd",
            "app!=ci",
            "!app",
            "app in (cd)",
            "app notin (ci)",
            "app=",
            "gone=",
            "app,gone",
        ] {
            assert!(!selects(no, &ci), "{no}");
        }
        assert!(!selects("app", &Value::Null));
        assert!(selects("!app", &Value::Null));
    }

    #[test]
    fn a_selector_that_makes_no_sense_says_where() {
        let told = |selector: &str| LabelSelector::parse(selector).expect_err("this is no selector");
        assert_eq!(told("a b c"), "found 'b', expected: in, notin, =, ==, !=");
        assert_eq!(told("a in b"), "found 'b', expected: (");
        assert_eq!(told("a in (b"), "found '', expected: ,, )");
        assert_eq!(told("a,"), "found '', expected: identifier after ','");
        assert!(told("a=b c").starts_with("found 'c', expected: ,"));
        assert!(told("-a=b").starts_with("key: Invalid value: \"-a\": name part must consist of"));
        assert!(told("a=b!").starts_with("found '!', expected: ,"));
        assert!(told("=").starts_with("key: Invalid value: \"=\""));
        assert!(told("!a=b").starts_with("found '=', expected: ',' after '!a'"));
    }

    #[test]
    fn a_parsed_selector_can_be_asked_about_bare_labels() {
        let labels = BTreeMap::from([("app".to_owned(), "ci".to_owned())]);
        assert!(LabelSelector::parse("app=ci").expect("a selector").matches_labels(&labels));
        assert!(LabelSelector::default().matches_labels(&labels));
    }
}

//! What names, labels and annotations may look like: Kubernetes' rules, in Kubernetes' words.

use super::NameRule;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
     must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
     '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
     validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const SUBDOMAIN_LONGEST: usize = 253;
const LABEL_LONGEST: usize = 63;

impl NameRule {
    /// The most characters a name may have.
    #[must_use]
    pub const fn longest(self) -> usize {
        match self {
            Self::Label { max_len } => max_len,
            Self::Subdomain => SUBDOMAIN_LONGEST,
        }
    }

    /// What is wrong with a name, each in its own sentence.
    #[must_use]
    pub fn broken(self, name: &str) -> Vec<String> {
        let mut wrong = too_long(name, self.longest());
        let (well_formed, words) = match self {
            Self::Label { .. } => (is_label(name), LABEL),
            Self::Subdomain => (name.split('.').all(is_label), SUBDOMAIN),
        };
        if !well_formed {
            wrong.push(words.to_owned());
        }
        wrong
    }
}

/// What is wrong with the key of a label or annotation.
pub fn broken_key(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            return vec![format!(
                "a qualified name {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    let mut wrong = Vec::new();
    match prefix {
        Some("") => wrong.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            wrong.extend(NameRule::Subdomain.broken(prefix).iter().map(|why| format!("prefix part {why}")));
        }
        None => {}
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    wrong.extend(too_long(name, LABEL_LONGEST).iter().map(|why| format!("name part {why}")));
    if !is_word(name) {
        wrong.push(format!("name part {QUALIFIED}"));
    }
    wrong
}

/// What is wrong with the value of a label.
pub fn broken_label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, LABEL_LONGEST);
    if !value.is_empty() && !is_word(value) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

fn too_long(text: &str, longest: usize) -> Vec<String> {
    if text.len() > longest { vec![format!("must be no more than {longest} characters")] } else { Vec::new() }
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    ends_well(text, inner) && text.bytes().all(|byte| inner(byte) || byte == b'-')
}

fn is_word(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric();
    ends_well(text, inner) && text.bytes().all(|byte| inner(byte) || matches!(byte, b'-' | b'_' | b'.'))
}

fn ends_well(text: &str, inner: impl Fn(u8) -> bool) -> bool {
    text.bytes().next().is_some_and(&inner) && text.bytes().next_back().is_some_and(&inner)
}

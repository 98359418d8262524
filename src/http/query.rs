//! The query of a request, read as leniently as Kubernetes does, and the options of reads and
//! writes that stand in it.

use crate::object::{FieldError, FieldReason, FieldValidation};

use super::status::Status;

/// The parameters of a request, in order. A stray `&` is nobody's parameter; unknown ones are
/// for others to read.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands behind the `?`.
    pub fn parse(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self(pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(decode_pair).collect())
    }

    /// The first value of `name`, if it is there and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values(name).find(|value| !value.is_empty())
    }

    /// Whether the switch `name` is on: a bare `watch` is, and so is everything but `0` and `false`.
    pub fn switch(&self, name: &str) -> Option<bool> {
        self.values(name).next().map(|value| !matches!(value, "0" | "false" | "False" | "f" | "F"))
    }

    /// The parameter as a number; what is none is refused by name.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        let parse = |value: &str| {
            value.parse().map_err(|_| {
                Status::bad_request(format!("{name}: Invalid value: {value:?}: must be a whole number"))
            })
        };
        self.get(name).map(parse).transpose()
    }

    /// `resourceVersion`.
    pub fn resource_version(&self) -> Result<Option<u64>, Status> {
        let parse = |value: &str| {
            value.parse().map_err(|_| {
                Status::bad_request(format!(
                    "invalid resource version: resourceVersion: Invalid value: {value:?}: must be the decimal \
                     number that an earlier answer gave"
                ))
            })
        };
        self.get("resourceVersion").map(parse).transpose()
    }

    fn values<'q, 'n>(&'q self, name: &'n str) -> impl Iterator<Item = &'q str> + use<'q, 'n> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The options that every write understands.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    pub dry_run: bool,
    pub field_validation: FieldValidation,
}

impl WriteOptions {
    /// Reads them; `options` is what Kubernetes calls this verb's, such as `CreateOptions`.
    /// `fieldManager` is taken and not yet kept.
    pub fn read(query: &Query, options: &'static str) -> Result<Self, Status> {
        let field_validation = match query.get("fieldValidation") {
            None => FieldValidation::default(),
            Some("Ignore") => FieldValidation::Ignore,
            Some("Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let message = format!(
                    "Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
                );
                return Err(unsupported(options, "fieldValidation", message));
            }
        };
        let dry_run = dry_run(&query.values("dryRun").collect::<Vec<_>>(), options)?;
        Ok(Self { dry_run, field_validation })
    }
}

/// Whether nothing may be written: the one known stage is `All`.
pub fn dry_run(stages: &[&str], options: &'static str) -> Result<bool, Status> {
    if stages.iter().all(|stage| *stage == "All") {
        return Ok(!stages.is_empty());
    }
    let message = format!("Unsupported value: {stages:?}: supported values: \"All\"");
    Err(unsupported(options, "dryRun", message))
}

/// 422 for an option with a value that does not exist.
pub fn unsupported(options: &'static str, field: &str, message: String) -> Status {
    Status::invalid_option(options, &FieldError::new(field, FieldReason::NotSupported, message))
}

fn decode_pair((key, value): (&str, &str)) -> (String, String) {
    (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))
}

/// Undoes percent encoding; what is not a valid escape stands for itself.
pub fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = (*first == b'%').then(|| tail.get(..2)).flatten().and_then(hex_byte);
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    Some(digit(*digits.first()?)? * 16 + digit(*digits.get(1)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_ampersand_and_unknown_parameters_are_tolerated() {
        let query = Query::parse(Some("&limit=500&watch&color=red&labelSelector=a%3Db%2Cc+in+(d)"));
        assert_eq!(query.get("limit"), Some("500"));
        assert_eq!(query.switch("watch"), Some(true));
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert_eq!(query.switch("sendInitialEvents"), None);
    }

    #[test]
    fn a_broken_escape_stands_for_itself() {
        assert_eq!(decode("100%"), "100%");
        assert_eq!(decode("%zz%41"), "%zzA");
    }

    #[test]
    fn a_switch_is_off_only_when_it_says_so() {
        assert_eq!(Query::parse(Some("watch=0")).switch("watch"), Some(false));
        assert_eq!(Query::parse(Some("watch=false")).switch("watch"), Some(false));
        assert_eq!(Query::parse(Some("watch=1")).switch("watch"), Some(true));
    }

    #[test]
    fn dry_run_knows_one_stage() {
        assert!(!WriteOptions::read(&Query::parse(None), "CreateOptions").unwrap().dry_run);
        assert!(WriteOptions::read(&Query::parse(Some("dryRun=All")), "CreateOptions").unwrap().dry_run);
        let refused = WriteOptions::read(&Query::parse(Some("dryRun=foo")), "CreateOptions").unwrap_err();
        assert_eq!(
            refused.body()["message"],
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"foo\"]: supported values: \"All\""
        );
    }
}

//! In which form a request comes and its answer goes. Tables and metadata-only forms (`as=…`) will
//! be shapes beside the encoding here, chosen by the same walk; today they are passed over, and
//! clients fall back to the plain object that stands further on in their list.

use hyper::StatusCode;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use serde::Serialize;

use super::reply::{self, JSON, Reply};
use super::status::Status;

const YAML: &str = "application/yaml";
const OFFERED: &str = "application/json, application/yaml";

/// How an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Yaml,
}

/// One entry of an `Accept` list, or a `Content-Type`: its type and parameters.
#[derive(Clone, Copy, Debug)]
pub struct MediaType<'a> {
    name: &'a str,
    parameters: &'a str,
}

impl Encoding {
    /// The first acceptable form, in the order of the client's list. No list takes anything.
    pub fn accepted(headers: &HeaderMap) -> Result<Self, Status> {
        first_accepted(headers, Self::of).ok_or_else(|| Status::not_acceptable(OFFERED))
    }

    /// The form of a request body. Without a header it is JSON.
    pub fn of_body(headers: &HeaderMap) -> Result<Self, Status> {
        match content_type(headers) {
            None => Ok(Self::Json),
            Some(media_type) => {
                Self::named(media_type.name).ok_or_else(|| Status::unsupported_media_type(OFFERED))
            }
        }
    }

    /// The answer with `value` in this form.
    pub fn reply(self, code: StatusCode, value: &impl Serialize) -> Reply {
        match self {
            Self::Json => reply::json(code, value),
            Self::Yaml => {
                let text = serde_saphyr::to_string(value).expect("our answers are JSON values");
                reply::bytes(code, YAML, text)
            }
        }
    }

    fn of(media_type: MediaType<'_>) -> Option<Self> {
        if media_type.parameter("as").is_some() {
            return None;
        }
        match media_type.name {
            "*/*" | "application/*" => Some(Self::Json),
            name => Self::named(name),
        }
    }

    fn named(name: &str) -> Option<Self> {
        match name {
            JSON => Some(Self::Json),
            YAML | "application/x-yaml" | "text/yaml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// Walks the `Accept` list in order and takes what `choose` takes first; without a list it is asked
/// for `*/*`.
pub fn first_accepted<T>(headers: &HeaderMap, choose: impl Fn(MediaType<'_>) -> Option<T>) -> Option<T> {
    let mut ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    if ranges.peek().is_none() {
        return choose(MediaType::parse("*/*"));
    }
    ranges.flat_map(|list| list.split(',')).map(MediaType::parse).find_map(choose)
}

/// The `Content-Type`, if there is one.
pub fn content_type(headers: &HeaderMap) -> Option<MediaType<'_>> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(MediaType::parse(value)).filter(|media_type| !media_type.name.is_empty())
}

impl<'a> MediaType<'a> {
    fn parse(text: &'a str) -> Self {
        let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
        Self { name: name.trim(), parameters }
    }

    /// The type without its parameters.
    pub fn name(self) -> &'a str {
        self.name
    }

    /// The parameter `name`, unquoted.
    pub fn parameter(self, name: &str) -> Option<&'a str> {
        let pairs = self.parameters.split(';').filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(key, value)| (key.trim(), value.trim().trim_matches('"')))
            .find(|(key, _)| *key == name)
            .map(|(_, v)| v)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(list: &str) -> Result<Encoding, Status> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, list.parse().unwrap());
        Encoding::accepted(&headers)
    }

    #[test]
    fn the_first_acceptable_form_of_the_list_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        for list in [
            "*/*",
            "application/vnd.kubernetes.protobuf,application/json",
            table,
            "application/json, */*;q=0.8",
        ] {
            assert_eq!(accepted(list).unwrap(), Encoding::Json, "{list}");
        }
        assert_eq!(accepted("application/yaml, application/json").unwrap(), Encoding::Yaml);
        assert_eq!(Encoding::accepted(&HeaderMap::new()).unwrap(), Encoding::Json);
    }

    #[test]
    fn what_nobody_here_writes_is_not_acceptable() {
        for list in [
            "text/html",
            "application/vnd.kubernetes.protobuf",
            "application/json;as=Table;v=v1;g=meta.k8s.io",
        ] {
            assert_eq!(accepted(list).unwrap_err().code, StatusCode::NOT_ACCEPTABLE, "{list}");
        }
    }
}

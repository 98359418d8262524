//! Request bodies: read within bounds, decoded from JSON or YAML, with every key that stands twice
//! noted, since which of the two was meant nobody knows.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::negotiate::Encoding;
use super::status::Status;

/// How many doubled keys are told of. One is enough to refuse; the rest is courtesy.
const DUPLICATES_MAX: usize = 32;

/// Reads a whole body.
pub async fn read(body: Incoming, max_bytes: usize, within: Duration) -> Result<Bytes, Status> {
    let collected = tokio::time::timeout(within, Limited::new(body, max_bytes).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Status::too_large(max_bytes)),
        Ok(Err(_)) => Err(Status::bad_request("the body of the request broke off")),
        Err(_) => Err(Status::request_timeout()),
    }
}

/// What a body says.
#[derive(Debug)]
pub struct Decoded {
    pub value: Value,
    /// The path of every key that stands twice in its object; the last one counts.
    pub duplicates: Vec<String>,
}

impl Decoded {
    /// Decodes a body. The error says what is wrong and where, and repeats nothing of the body,
    /// which may hold secrets.
    pub fn from(encoding: Encoding, body: &[u8]) -> Result<Self, String> {
        match encoding {
            Encoding::Json => serde_json::from_slice(body).map_err(|e| format!("json parse error: {e}")),
            Encoding::Yaml => {
                let options = serde_saphyr::options! {
                    duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
                    with_snippet: false,
                    // Only `true` and `false`: a pool may be called `y` or `no`.
                    strict_booleans: true,
                };
                serde_saphyr::from_slice_with_options(body, options)
                    .map_err(|e| format!("yaml parse error: {e}"))
            }
        }
    }

    fn plain(value: impl Into<Value>) -> Self {
        Self { value: value.into(), duplicates: Vec::new() }
    }

    /// Takes over a part's notes, its paths led by `step`.
    fn note(notes: &mut Vec<String>, step: &str, part: Vec<String>) {
        let room = DUPLICATES_MAX.saturating_sub(notes.len());
        notes.extend(part.into_iter().take(room).map(|path| {
            if path.starts_with('[') { format!("{step}{path}") } else { format!("{step}.{path}") }
        }));
    }
}

impl<'de> Deserialize<'de> for Decoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Decoded;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Decoded, E> {
        Ok(Decoded::plain(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Decoded, E> {
        Ok(Decoded::plain(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Decoded, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Decoded, E> {
        Ok(Decoded::plain(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Decoded, E> {
        Ok(Decoded::plain(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Decoded, E> {
        Ok(Decoded::plain(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Decoded, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number must be finite"))?;
        Ok(Decoded::plain(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Decoded, E> {
        Ok(Decoded::plain(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Decoded, E> {
        Ok(Decoded::plain(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Decoded, A::Error> {
        let (mut values, mut duplicates) = (Vec::new(), Vec::new());
        while let Some(item) = items.next_element::<Decoded>()? {
            Decoded::note(&mut duplicates, &format!("[{}]", values.len()), item.duplicates);
            values.push(item.value);
        }
        Ok(Decoded { value: Value::Array(values), duplicates })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Decoded, A::Error> {
        let (mut object, mut duplicates) = (Map::new(), Vec::new());
        while let Some((key, entry)) = entries.next_entry::<String, Decoded>()? {
            Decoded::note(&mut duplicates, &key, entry.duplicates);
            if object.insert(key.clone(), entry.value).is_some() && duplicates.len() < DUPLICATES_MAX {
                duplicates.push(key);
            }
        }
        Ok(Decoded { value: Value::Object(object), duplicates })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_stand_twice_are_named_by_path_in_json_and_yaml() {
        let json = br#"{"spec":{"tier":"a","tier":"b","list":[{"x":1},{"y":1,"y":2}]}}"#;
        let decoded = Decoded::from(Encoding::Json, json).unwrap();
        assert_eq!(decoded.duplicates, ["spec.tier", "spec.list[1].y"]);
        assert_eq!(decoded.value["spec"]["tier"], "b");

        let yaml = b"spec:\n  tier: a\n  tier: b\n  list:\n  - x: 1\n  - y: 1\n    y: 2\n";
        let decoded = Decoded::from(Encoding::Yaml, yaml).unwrap();
        assert_eq!(decoded.duplicates, ["spec.tier", "spec.list[1].y"]);
        assert_eq!(decoded.value["spec"]["tier"], "b");
    }

    #[test]
    fn yaml_scalars_keep_their_types() {
        let yaml = b"a: 1\nb: '1'\nc: true\nd: 1.5\ne: null\nf: 2026-11-30T00:00:00Z\ng: -3\n";
        let decoded = Decoded::from(Encoding::Yaml, yaml).unwrap();
        let expected = serde_json::json!({
            "a": 1, "b": "1", "c": true, "d": 1.5, "e": null, "f": "2026-11-30T00:00:00Z", "g": -3,
        });
        assert_eq!(decoded.value, expected);
    }

    #[test]
    fn a_decoding_error_repeats_nothing_of_the_body() {
        for (encoding, body) in
            [(Encoding::Json, "{\"password\": hunter2}"), (Encoding::Yaml, "password: [hunter2\nb: c: d")]
        {
            let error = Decoded::from(encoding, body.as_bytes()).unwrap_err();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_body_nested_without_end_is_refused() {
        let json = "[".repeat(100_000);
        assert!(Decoded::from(Encoding::Json, json.as_bytes()).is_err());
        assert!(Decoded::from(Encoding::Yaml, json.as_bytes()).is_err());
    }
}

//! Durations as people write them: `90s`, `10m`, `1h30m`, `7d`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time. Keeps the text it was written in, so that what a user wrote is what a user
/// reads back and a GitOps tool sees no drift; compares by length alone.
#[derive(Clone)]
pub struct Span {
    text: String,
    millis: i64,
}

impl Span {
    /// From whole seconds, written in the largest units that fit (`5400` is `1h30m`). There are no
    /// negative lengths: those are 0.
    #[must_use]
    pub fn from_secs(secs: i64) -> Self {
        let secs = secs.max(0);
        Self { text: written(secs), millis: secs.saturating_mul(1000) }
    }

    /// The length in milliseconds.
    #[must_use]
    pub const fn millis(&self) -> i64 {
        self.millis
    }

    /// The text it was written in.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn written(mut secs: i64) -> String {
    if secs == 0 {
        return "0s".into();
    }
    let mut text = String::new();
    for (unit, length) in [("h", 3600), ("m", 60), ("s", 1)] {
        if secs >= length {
            text.push_str(&(secs / length).to_string());
            text.push_str(unit);
            secs %= length;
        }
    }
    text
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: write a number and a unit, such as 90s, 10m, 1h30m or 7d")]
pub struct NotASpan(pub String);

impl FromStr for Span {
    type Err = NotASpan;

    fn from_str(text: &str) -> Result<Self, NotASpan> {
        let wrong = || NotASpan(text.to_owned());
        let mut millis: i64 = 0;
        let mut rest = text;
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let number: i64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
            let unit: i64 = match &rest[..letters] {
                "ms" => 1,
                "s" => 1000,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(wrong()),
            };
            rest = &rest[letters..];
            millis = number.checked_mul(unit).and_then(|part| millis.checked_add(part)).ok_or_else(wrong)?;
        }
        Ok(Self { text: text.to_owned(), millis })
    }
}

impl PartialEq for Span {
    fn eq(&self, other: &Self) -> bool {
        self.millis == other.millis
    }
}
impl Eq for Span {}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Written)
    }
}

/// Reads a length of time from its text; anything else is told what it looks like.
struct Written;

impl de::Visitor<'_> for Written {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"90s\", \"10m\", \"1h30m\" or \"7d\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
        text.parse().map_err(E::custom)
    }
}
impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "duration"})
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    fn millis(text: &str) -> Option<i64> {
        text.parse::<Span>().ok().map(|span| span.millis())
    }

    #[test]
    fn units_add_up_in_any_order() {
        assert_eq!(millis("90s"), Some(90_000));
        assert_eq!(millis("1h30m"), Some(5_400_000));
        assert_eq!(millis("30m1h"), Some(5_400_000));
        assert_eq!(millis("7d"), Some(7 * 86_400_000));
        assert_eq!(millis("250ms"), Some(250));
        assert_eq!(millis("0s"), Some(0));
    }

    #[test]
    fn what_is_no_length_is_refused() {
        for text in ["", "5", "m", "1h30", "-5m", "+5m", "1.5h", "5 m", "5M", "5w", "5µs", "１m", "1h\u{301}"]
        {
            assert_eq!(millis(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_length_that_no_counter_holds_is_refused_and_the_longest_that_fits_is_not() {
        assert_eq!(millis("106751991167d"), Some(106_751_991_167 * 86_400_000));
        assert_eq!(millis("106751991168d"), None);
        assert_eq!(millis("9223372036854775807ms1ms"), None);
        assert_eq!(millis("99999999999999999999s"), None);
    }

    #[test]
    fn the_text_is_kept_and_only_the_length_is_compared() {
        let written: Span = "60m".parse().expect("a length");
        assert_eq!(written, Span::from_secs(3600));
        assert_eq!((written.text(), Span::from_secs(3600).text()), ("60m", "1h"));
        assert_eq!(serde_json::to_string(&written).expect("a text"), "\"60m\"");
    }

    #[test]
    fn seconds_are_written_so_that_they_read_back() {
        for secs in [0, 1, 59, 60, 61, 3599, 3600, 5400, 86_400, 90_061, i64::MAX / 1000] {
            let span = Span::from_secs(secs);
            assert_eq!(millis(span.text()), Some(secs * 1000), "{secs}");
        }
        assert_eq!(Span::from_secs(-1).text(), "0s");
    }
}

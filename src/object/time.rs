//! Points in time as the API writes them, and what one decision knows of time.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use ulid::Ulid;

/// A wall-clock instant in UTC, to the millisecond. Written as RFC 3339, without a fraction
/// when it falls on a whole second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(i64);

impl Time {
    /// From milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// This instant with the fraction of a second cut off, as Kubernetes writes metadata times.
    #[must_use]
    pub const fn whole_seconds(self) -> Self {
        Self(self.0 - self.0.rem_euclid(1000))
    }

    /// `self + millis`, saturating.
    #[must_use]
    pub const fn plus_millis(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// `self - earlier` in milliseconds; negative when `earlier` is later.
    #[must_use]
    pub const fn millis_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads RFC 3339.
    ///
    /// # Errors
    /// When the text is not an RFC 3339 date and time.
    pub fn parse(text: &str) -> Result<Self, chrono::ParseError> {
        Ok(Self(DateTime::parse_from_rfc3339(text)?.timestamp_millis()))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = if self.0 % 1000 == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
        let edge = if self.0 < 0 { DateTime::<Utc>::MIN_UTC } else { DateTime::<Utc>::MAX_UTC };
        let time = DateTime::from_timestamp_millis(self.0).unwrap_or(edge);
        f.write_str(&time.to_rfc3339_opts(form, true))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(|_| {
            de::Error::custom(format!("{text:?} is not an RFC 3339 time such as 2026-10-20T18:00:00Z"))
        })
    }
}

impl JsonSchema for Time {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

/// What one decision may know of the outside: both clocks, and fresh randomness for new ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The wall clock: what users read and write.
    pub wall: Time,
    /// The wall clock as it would be had nobody set it: it goes on evenly and never steps. Waits
    /// are measured with it, and begun, ended and stored in it (rule L21).
    pub steady: Time,
    /// Fresh for every tick. The n-th id made under one tick is derived from it.
    pub entropy: u128,
}

impl Tick {
    /// The steady clock in milliseconds, for what counts up from any moment.
    #[must_use]
    pub fn steady_ms(&self) -> u64 {
        u64::try_from(self.steady.millis()).unwrap_or(0)
    }

    /// When the steady clock shows what the wall clock, left alone, shows at `wall`.
    #[must_use]
    pub const fn steady_at(&self, wall: Time) -> Time {
        self.steady.plus_millis(wall.millis_since(self.wall))
    }

    /// The `nth` id made under this tick. Ids sort by the time they were made.
    #[must_use]
    pub fn ulid(&self, nth: u32) -> Ulid {
        Ulid::from_parts(u64::try_from(self.wall.millis()).unwrap_or(0), self.random(nth))
    }

    /// The `nth` 128 random bits under this tick. Different for each `nth`, and nothing of one
    /// can be told from another without the entropy.
    #[must_use]
    pub fn random(&self, nth: u32) -> u128 {
        let mut hash = Sha256::new();
        hash.update(self.entropy.to_be_bytes());
        hash.update(nth.to_be_bytes());
        let digest = hash.finalize();
        let mut bits = [0; 16];
        bits.copy_from_slice(&digest[..16]);
        u128::from_be_bytes(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::{Tick, Time};

    fn read(text: &str) -> Option<String> {
        Time::parse(text).ok().map(|time| time.to_string())
    }

    #[test]
    fn every_zone_is_read_and_utc_is_written() {
        assert_eq!(read("2026-10-20T18:00:00Z").as_deref(), Some("2026-10-20T18:00:00Z"));
        assert_eq!(read("2026-10-20T20:00:00+02:00").as_deref(), Some("2026-10-20T18:00:00Z"));
        assert_eq!(read("2026-10-20t18:00:00z").as_deref(), Some("2026-10-20T18:00:00Z"));
    }

    #[test]
    fn a_fraction_is_kept_to_the_millisecond_and_only_where_there_is_one() {
        assert_eq!(read("2026-10-20T18:00:00.000Z").as_deref(), Some("2026-10-20T18:00:00Z"));
        assert_eq!(read("2026-10-20T18:00:00.25Z").as_deref(), Some("2026-10-20T18:00:00.250Z"));
        assert_eq!(read("2026-10-20T18:00:00.123456789Z").as_deref(), Some("2026-10-20T18:00:00.123Z"));
        assert_eq!(read("1969-12-31T23:59:59.999Z").as_deref(), Some("1969-12-31T23:59:59.999Z"));
    }

    #[test]
    fn what_is_no_time_of_day_somewhere_is_refused() {
        for text in [
            "",
            "now",
            "2026-10-20",
            "2026-10-20T18:00:00",
            "2026-02-30T00:00:00Z",
            "2026-10-20T25:00:00Z",
            "1792519200",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_seconds_of_a_time_before_1970_are_cut_downwards() {
        assert_eq!(Time::from_millis(-1).whole_seconds(), Time::from_millis(-1000));
        assert_eq!(Time::from_millis(1999).whole_seconds(), Time::from_millis(1000));
    }

    #[test]
    fn times_at_the_ends_of_the_counter_are_written_as_far_away() {
        let (first, last) = (Time::from_millis(i64::MIN), Time::from_millis(i64::MAX));
        assert!(first.to_string().starts_with('-') && last.to_string().starts_with('+'));
        assert_eq!(last.plus_millis(1), last);
        assert_eq!(first.millis_since(last), i64::MIN);
    }

    #[test]
    fn the_ids_of_one_tick_differ_and_carry_its_time() {
        let tick = Tick { wall: Time::from_millis(1_790_000_000_123), steady: Time::default(), entropy: 5 };
        assert_ne!(tick.ulid(0), tick.ulid(1));
        assert_eq!(tick.ulid(1), tick.ulid(1));
        assert_eq!(tick.ulid(1).timestamp_ms(), 1_790_000_000_123);
        let other = Tick { entropy: 6, ..tick };
        assert_ne!(other.ulid(0), tick.ulid(0));
    }
}

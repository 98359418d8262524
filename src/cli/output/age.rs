//! Times as kubectl shows them: how long ago, in the two units that matter.

use crate::object::Time;

/// How long, short: `12s`, `3m4s`, `45m`, `5h7m`, `30h`, `3d4h`, `20d`.
#[must_use]
pub fn duration(millis: i64) -> String {
    let secs = millis.max(0) / 1000;
    let (minutes, hours, days) = (secs / 60, secs / 3600, secs / 86_400);
    match () {
        () if secs < 120 => format!("{secs}s"),
        () if minutes < 10 => two(minutes, "m", secs % 60, "s"),
        () if hours < 3 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two(days, "d", hours % 24, "h"),
        () if days < 730 => format!("{days}d"),
        () if days < 8 * 365 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

/// A point in time as seen from `now`: an age, or `in 23h` where it lies ahead.
#[must_use]
pub fn relative(time: Time, now: Time) -> String {
    let ago = now.millis_since(time);
    // Clocks of two machines differ a little: what was made just now is not ahead.
    if ago > -2000 { duration(ago) } else { format!("in {}", duration(-ago)) }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_those_of_kubectl() {
        let written = |secs: i64| duration(secs * 1000);
        assert_eq!(written(0), "0s");
        assert_eq!(written(119), "119s");
        assert_eq!(written(120), "2m");
        assert_eq!(written(184), "3m4s");
        assert_eq!(written(45 * 60 + 9), "45m");
        assert_eq!(written(5 * 3600 + 7 * 60), "5h7m");
        assert_eq!(written(30 * 3600), "30h");
        assert_eq!(written(76 * 3600), "3d4h");
        assert_eq!(written(20 * 86_400), "20d");
        assert_eq!(written(800 * 86_400), "2y70d");
    }

    #[test]
    fn a_time_ahead_says_so() {
        let now = Time::from_millis(1_000_000_000);
        assert_eq!(relative(now.plus_millis(23 * 3_600_000), now), "in 23h");
        assert_eq!(relative(now.plus_millis(-5000), now), "5s");
        assert_eq!(relative(now.plus_millis(900), now), "0s");
    }
}

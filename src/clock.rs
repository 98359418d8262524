//! The one reader of clocks and of randomness. Everything else is told the time.

use crate::object::{Tick, Time};

/// Reads both clocks and draws fresh entropy: what one decision may know of the outside.
#[must_use]
pub fn tick() -> Tick {
    Tick { wall: now(), monotonic_ms: monotonic_ms(), entropy: entropy() }
}

/// The wall clock, in UTC, to the millisecond.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one reader of the clock")]
pub fn now() -> Time {
    Time::from_millis(chrono::Utc::now().timestamp_millis())
}

/// Milliseconds since the machine booted, sleep included; never steps back.
#[must_use]
pub fn monotonic_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

/// The same in microseconds, for what takes less than a millisecond.
#[must_use]
pub fn monotonic_us() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1000
}

/// 128 random bits from the kernel.
///
/// # Panics
/// If the kernel has no randomness to give: nothing that needs an unguessable id can go on.
#[must_use]
pub fn entropy() -> u128 {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("the kernel's random source answers");
    u128::from_be_bytes(bytes)
}

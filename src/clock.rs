//! The one reader of clocks and of randomness. Everything else is told the time.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::object::{Tick, Time};

/// What the steady clock is ahead of the monotonic one, in milliseconds; unset before its first
/// reading.
static STEADY_OFFSET_MS: AtomicI64 = AtomicI64::new(i64::MIN);

/// Reads both clocks and draws fresh entropy: what one decision may know of the outside.
#[must_use]
pub fn tick() -> Tick {
    Tick { wall: now(), steady: steady(), entropy: entropy() }
}

/// The wall clock, in UTC, to the millisecond.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one reader of the clock")]
pub fn now() -> Time {
    Time::from_millis(chrono::Utc::now().timestamp_millis())
}

/// The wall clock of this process's first reading, carried on by the monotonic clock: setting the
/// wall clock does not move it.
#[must_use]
pub fn steady() -> Time {
    let monotonic_ms = i64::try_from(monotonic_ms()).unwrap_or(i64::MAX);
    let unset = STEADY_OFFSET_MS.load(Ordering::Relaxed) == i64::MIN;
    if unset {
        let fresh = now().millis().saturating_sub(monotonic_ms);
        // Somebody else may have been first: then theirs stands.
        let _ = STEADY_OFFSET_MS.compare_exchange(i64::MIN, fresh, Ordering::Relaxed, Ordering::Relaxed);
    }
    Time::from_millis(monotonic_ms.saturating_add(STEADY_OFFSET_MS.load(Ordering::Relaxed)))
}

/// Carries the steady clock on from `last`, where an earlier process left it, if it is behind:
/// waits that were begun then go on, whatever became of the wall clock meanwhile.
pub fn carry_on_from(last: Time) {
    let behind_ms = last.millis_since(steady());
    if behind_ms > 0 {
        STEADY_OFFSET_MS.fetch_add(behind_ms, Ordering::Relaxed);
    }
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

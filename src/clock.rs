//! The one reader of clocks and of randomness. Everything else is told the time.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicI64, Ordering};

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

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

/// Hears of it when somebody sets the wall clock, or the machine wakes from sleep. Timers that run
/// already count the time they were given, so whoever sleeps until a point of the wall clock must
/// look at it anew. Costs no wake-up while nobody does.
#[derive(Debug)]
pub struct Steps(OwnedFd);

impl Steps {
    /// From now on.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn listen() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC)?;
        // A time that never comes: the kernel cancels the wait for it when the clock is set.
        let never = Timespec { tv_sec: i64::MAX / 2, tv_nsec: 0 };
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(&timer, flags, &Itimerspec { it_interval: zero, it_value: never })?;
        Ok(Self(timer))
    }

    /// Blocks until the clock was set since the last call.
    ///
    /// # Errors
    /// When the kernel's timer cannot be read any more.
    pub fn next(&self) -> io::Result<()> {
        loop {
            match rustix::io::read(&self.0, &mut [0_u8; 8]) {
                Err(Errno::CANCELED) => return Ok(()),
                // A time that never comes has not come.
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::time::{ClockId, clock_gettime, clock_settime};

    use super::*;

    #[test]
    fn whoever_follows_the_clock_hears_of_it_each_time_it_is_set() {
        let steps = Steps::listen().expect("a timer");
        for _ in 0..2 {
            // To the very time it shows: who may set it disturbs nobody by this.
            match clock_settime(ClockId::Realtime, clock_gettime(ClockId::Realtime)) {
                Ok(()) => steps.next().expect("told"),
                // Not everybody who runs this may; then there is nothing to hear.
                Err(refused) => assert_eq!(refused, Errno::PERM),
            }
        }
    }
}

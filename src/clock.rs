//! The one reader of clocks and of randomness. Everything else is told the time.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

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

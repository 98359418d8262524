//! sled's helper threads ask for work once a second, each of seven, for as long as the process
//! lives; nothing of sled's API stops them, and an idle daemon would wake the processor for them.
//!
//! They need no punctual clock: who has work for them calls them at once. The kernel lets a thread
//! say how late its timers may be, and those it starts inherit it: so whatever of sled may start a
//! thread is called while the caller's may be a day late. Where the kernel does not know this, sled's
//! threads just wake.

use std::num::NonZeroU64;

use rustix::thread::{current_timer_slack, set_current_timer_slack};

const A_DAY_NANOS: NonZeroU64 = NonZeroU64::new(24 * 3600 * 1_000_000_000).expect("not zero");

/// Runs `work`, in which neither this thread nor any that it starts need be punctual.
pub(super) fn patiently<T>(work: impl FnOnce() -> T) -> T {
    let before = current_timer_slack().ok().and_then(NonZeroU64::new);
    let _ = set_current_timer_slack(Some(A_DAY_NANOS));
    let result = work();
    // None is the slack that the process began with.
    let _ = set_current_timer_slack(before);
    result
}

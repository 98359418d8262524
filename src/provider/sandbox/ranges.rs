//! Which host ids a machine's users get: 65 536 each, never shared by two existing machines.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use ulid::Ulid;

/// How many ids a machine has: all that a 16-bit uid can name.
pub const IDS_PER_MACHINE: u32 = 65_536;

/// Ids from here on are left alone: they are negative to programs that use signed numbers.
const END: u32 = 0x8000_0000;

/// The ranges of one daemon.
///
/// Two daemons on one host do not know of each other, so each starts at a place of its own that
/// its instance id decides: their machines meet only after thousands.
#[derive(Debug)]
pub struct Ranges {
    base: u32,
    /// How many ranges there are from `base` on.
    count: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The range to try next. Freed ranges come round last.
    next: u32,
    taken: BTreeSet<u32>,
}

impl Ranges {
    /// Ranges from `base` on, none taken.
    #[must_use]
    pub fn new(base: u32, instance: Ulid) -> Self {
        let count = ((END - base.min(END)) / IDS_PER_MACHINE).max(1);
        let next = u32::try_from(u128::from(instance) % u128::from(count)).unwrap_or(0);
        Self { base, count, state: Mutex::new(State { next, taken: BTreeSet::new() }) }
    }

    /// Marks the range of a machine that was found on disk.
    pub fn occupy(&self, first_id: u32) {
        self.lock().taken.insert(first_id);
    }

    /// The first id of a range that no machine has; none when all are taken.
    pub fn take(&self) -> Option<u32> {
        let mut state = self.lock();
        let State { next, taken } = &mut *state;
        let free = (0..self.count)
            .map(|step| (*next + step) % self.count)
            .find(|index| !taken.contains(&self.first_id(*index)))?;
        *next = (free + 1) % self.count;
        let first_id = self.first_id(free);
        taken.insert(first_id);
        Some(first_id)
    }

    /// Frees the range of a machine that is gone.
    pub fn release(&self, first_id: u32) {
        self.lock().taken.remove(&first_id);
    }

    const fn first_id(&self, index: u32) -> u32 {
        self.base + index * IDS_PER_MACHINE
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_machines_share_a_range() {
        let ranges = Ranges::new(0x1000_0000, Ulid::from(7_u128));
        let taken: BTreeSet<u32> = (0..1000).filter_map(|_| ranges.take()).collect();
        assert_eq!(taken.len(), 1000);
        assert!(taken.iter().all(|first| first % IDS_PER_MACHINE == 0 && *first >= 0x1000_0000));
    }

    #[test]
    fn a_range_found_on_disk_is_not_given_out() {
        let ranges = Ranges::new(0x1000_0000, Ulid::nil());
        ranges.occupy(0x1000_0000);
        assert_eq!(ranges.take(), Some(0x1001_0000));
    }

    #[test]
    fn the_last_range_ends_below_the_signed_limit_and_then_there_is_none() {
        let ranges = Ranges::new(END - 2 * IDS_PER_MACHINE, Ulid::nil());
        assert_eq!(ranges.take(), Some(END - 2 * IDS_PER_MACHINE));
        assert_eq!(ranges.take(), Some(END - IDS_PER_MACHINE));
        assert_eq!(ranges.take(), None);
        ranges.release(END - IDS_PER_MACHINE);
        assert_eq!(ranges.take(), Some(END - IDS_PER_MACHINE));
    }
}

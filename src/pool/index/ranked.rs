//! Idle members by the life left in them (rule W5), split at a floor: those it keeps, and the
//! surplus, of which the timers may take (rules W4, W6). Every change moves at most one member
//! over the line, so it costs O(log n).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use ulid::Ulid;

use super::Moments;
use crate::object::Time;

/// How much life an idle member has left; the least is let go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life {
    /// Of the present template and younger than maxAge: others are replaced anyway.
    pub fresh: bool,
    pub reuses: Reverse<u32>,
    pub born: Time,
    pub uid: Ulid,
    /// Since when it is in its state: what the timers count from.
    pub since: Time,
}

/// The members of one idle state, split at their floor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranked {
    floor: usize,
    kept: BTreeSet<Life>,
    surplus: BTreeSet<Life>,
    /// The surplus by the clock.
    clocks: Moments,
}

impl Ranked {
    /// Moves the line.
    pub fn set_floor(&mut self, floor: u32) {
        self.floor = usize::try_from(floor).unwrap_or(usize::MAX);
        self.level();
    }

    pub fn insert(&mut self, life: Life) {
        self.spare(life);
        self.level();
        if let (Some(&best), Some(&worst)) = (self.surplus.last(), self.kept.first())
            && worst < best
        {
            self.unspare(best);
            self.kept.remove(&worst);
            self.kept.insert(best);
            self.spare(worst);
        }
    }

    pub fn remove(&mut self, life: Life) {
        if !self.kept.remove(&life) {
            self.unspare(life);
        }
        self.level();
    }

    pub fn len(&self) -> usize {
        self.kept.len() + self.surplus.len()
    }

    /// The member with the least life left.
    pub fn least(&self) -> Option<Life> {
        self.surplus.first().or_else(|| self.kept.first()).copied()
    }

    /// A surplus member that has been in its state since `by` or longer.
    pub fn waited_since(&self, by: Time) -> Option<Ulid> {
        super::due(&self.clocks, by)
    }

    /// The clock of the first surplus member that started after `by`.
    pub fn next_clock(&self, by: Time) -> Option<Time> {
        super::upcoming(&self.clocks, by)
    }

    /// Fills the floor from the surplus, or what is above it into the surplus.
    fn level(&mut self) {
        while self.kept.len() < self.floor
            && let Some(&best) = self.surplus.last()
        {
            self.unspare(best);
            self.kept.insert(best);
        }
        while self.kept.len() > self.floor
            && let Some(worst) = self.kept.pop_first()
        {
            self.spare(worst);
        }
    }

    fn spare(&mut self, life: Life) {
        self.surplus.insert(life);
        self.clocks.insert((life.since, life.uid));
    }

    fn unspare(&mut self, life: Life) {
        self.surplus.remove(&life);
        self.clocks.remove(&(life.since, life.uid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(uid: u128, reuses: u32, born: i64) -> Life {
        Life {
            fresh: true,
            reuses: Reverse(reuses),
            born: Time::from_millis(born),
            uid: Ulid(uid),
            since: Time::from_millis(born),
        }
    }

    // rule W5
    #[test]
    fn the_most_recycled_and_then_the_oldest_has_the_least_life() {
        let mut ranked = Ranked::default();
        ranked.set_floor(1);
        for (uid, reuses, born) in [(1, 0, 10), (2, 3, 30), (3, 0, 20)] {
            ranked.insert(life(uid, reuses, born));
        }
        assert_eq!(ranked.least().map(|life| life.uid), Some(Ulid(2)));
        ranked.remove(life(2, 3, 30));
        assert_eq!(ranked.least().map(|life| life.uid), Some(Ulid(1)));
        assert_eq!(ranked.kept, BTreeSet::from([life(3, 0, 20)]));
    }

    proptest::proptest! {
        #[test]
        fn the_floor_always_keeps_those_with_the_most_life(
            steps in proptest::collection::vec((0_u128..12, 0_u32..3, 0_i64..5, 0_u32..6), 1..60)
        ) {
            let mut ranked = Ranked::default();
            let mut model = std::collections::BTreeMap::new();
            for (uid, reuses, born, floor) in steps {
                if let Some(life) = model.remove(&uid) {
                    ranked.remove(life);
                } else {
                    model.insert(uid, life(uid, reuses, born));
                    ranked.insert(life(uid, reuses, born));
                }
                ranked.set_floor(floor);
                let mut all: Vec<Life> = model.values().copied().collect();
                all.sort();
                let surplus = all.len().saturating_sub(floor as usize);
                proptest::prop_assert_eq!(ranked.surplus.iter().copied().collect::<Vec<_>>(), &all[..surplus]);
                proptest::prop_assert_eq!(ranked.kept.iter().copied().collect::<Vec<_>>(), &all[surplus..]);
                proptest::prop_assert_eq!(ranked.clocks.len(), surplus);
            }
        }
    }
}

//! What the happenings of a step must add up to (metrics and usage count nothing else).

use ringleader_proof::object::{LeasePhase, MemberState};
use ringleader_proof::pool::Happening;

use crate::naive::{Lease, Member, Naive};

/// What there is to be counted.
#[derive(Clone, Copy)]
pub struct Tally {
    /// Leases to whose holders something is owed.
    owed: usize,
    /// Machines that may exist, and those of them that are not being deleted.
    live: usize,
    staying: usize,
}

impl Tally {
    pub fn of(model: &Naive) -> Self {
        let owed = |lease: &&Lease| {
            !lease.over && !matches!(lease.phase, LeasePhase::Failed | LeasePhase::Releasing)
        };
        let staying = |member: &&Member| member.state != MemberState::Deleting;
        Self {
            owed: model.leases.iter().filter(owed).count(),
            live: model.live().count(),
            staying: model.live().filter(staying).count(),
        }
    }

    /// Whatever begins to be counted ends, once.
    pub fn check(self, before: Self, told: &[Happening]) {
        let times = |is: fn(&Happening) -> bool| told.iter().filter(|happening| is(happening)).count();
        let created = times(|happening| *happening == Happening::LeaseCreated);
        let ended = times(|happening| matches!(happening, Happening::LeaseEnded(_)));
        let ordered = times(|happening| *happening == Happening::BuildOrdered);
        let removed = times(|happening| matches!(happening, Happening::MemberRemoved(_)));
        let gone = times(|happening| *happening == Happening::MemberGone);
        assert_eq!(self.owed + ended, before.owed + created, "leases are miscounted by {told:?}");
        assert_eq!(self.live + gone, before.live + ordered, "members are miscounted by {told:?}");
        assert_eq!(self.staying + removed, before.staying + ordered, "deletes are miscounted by {told:?}");
    }
}

//! Members by what may happen to them next.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ulid::Ulid;

use super::{Life, Moments, Ranked, Step, place, tally};
use crate::object::{MemberCounts, MemberState, Time};
use crate::pool::{Destination, Member, PoolRow, Sighting};

/// The looks at a pool's members. One that is over is in none but `names`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberIndex {
    /// The present template hash, by which members are fresh or stale.
    hash: String,
    pub names: BTreeMap<String, Ulid>,
    pub counts: MemberCounts,
    /// Every member whose machine may exist: what size.max bounds (rule W2).
    pub live: u32,
    /// Idle, running, not cordoned.
    pub running: Idle,
    /// Idle, stopped or on the way to it (rule L5), not cordoned.
    pub stopped: Idle,
    /// Unbound members being built or started, which a lease may take: stale ones last, then the
    /// one begun first.
    pub building: BTreeSet<(Stale, Time, Ulid)>,
    pub starting: BTreeSet<(Stale, Time, Ulid)>,
    /// Every unbound member being built, and whatever else cannot be placed: the first to be dropped
    /// is the last.
    pub droppable: BTreeSet<(Stale, Time, Ulid)>,
    /// How many unbound ones are on their way to a floor (rule W6), unplaceable ones included.
    pub on_the_way: u32,
    pub on_the_way_fresh: u32,
    /// Members of the present template that cannot be placed now: another template may ask for less.
    pub unplaceable: BTreeSet<Ulid>,
    /// How many of those being built cannot be placed, whatever their template.
    pub unplaced_builds: u32,
    /// When members being built have failed.
    pub build_by: Moments,
    /// When recycles have taken too long; every recycling member is here.
    pub recycle_by: Moments,
    /// Builds of the present template by when they were begun.
    pub builds: Moments,
    /// Idle members by birth: the next to pass maxAge, and those that have.
    pub ageing: Moments,
    pub aged: Moments,
    /// Idle running members built for the stopped floor.
    pub to_stop: BTreeSet<Ulid>,
    /// Since when machines that should run do not.
    pub down: Moments,
    /// Until when deletes wait for the agent's word, and those that need not wait any more.
    pub revoking: Moments,
    pub revoked: BTreeSet<Ulid>,
    /// By the owner's keys in their last want.
    pub by_owner_keys: BTreeMap<u128, BTreeSet<Ulid>>,
    /// Bound to no lease and not being deleted, cordoned ones too.
    pub unbound: BTreeSet<Ulid>,
}

/// Of an older template. Fresh ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stale {
    No,
    Yes,
}

/// The members of one idle state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// The order in which leases get them: stale ones last, then the most recently used.
    pub serving: BTreeSet<(Stale, Reverse<Time>, Ulid)>,
    pub ranked: Ranked,
    pub fresh: u32,
}

impl Idle {
    pub fn len(&self) -> u32 {
        u32::try_from(self.ranked.len()).unwrap_or(u32::MAX)
    }

    fn apply(&mut self, step: Step, member: &Member, stale: Stale) {
        place(&mut self.serving, step, (stale, Reverse(member.last_used), member.uid()));
        let life = Life {
            fresh: stale == Stale::No && !member.aged,
            reuses: Reverse(member.reuses),
            born: member.born,
            uid: member.uid(),
            since: member.since,
        };
        match step {
            Step::Add => self.ranked.insert(life),
            Step::Remove => self.ranked.remove(life),
        }
        if life.fresh {
            tally(&mut self.fresh, step);
        }
    }
}

impl MemberIndex {
    /// The index of no members, with the pool's floors and template.
    pub fn new(row: &PoolRow) -> Self {
        let mut index = Self { hash: row.template_hash.clone(), ..Self::default() };
        index.set_floors(row);
        index
    }

    /// Whether every member must be looked at anew: its freshness is another.
    pub fn is_outdated(&self, row: &PoolRow) -> bool {
        self.hash != row.template_hash
    }

    pub fn set_floors(&mut self, row: &PoolRow) {
        self.running.ranked.set_floor(row.spec.warm.running);
        self.stopped.ranked.set_floor(row.spec.warm.stopped);
    }

    pub fn apply(&mut self, step: Step, member: &Member) {
        let uid = member.uid();
        match step {
            Step::Add => self.names.insert(member.metadata.name.clone(), uid),
            Step::Remove => self.names.remove(&member.metadata.name),
        };
        if member.is_over() {
            return;
        }
        tally(&mut self.live, step);
        self.count(step, member);
        self.watch(step, member, uid);
        if !member.is_gone_ordered() {
            let of_keys = self.by_owner_keys.entry(member.wanted.owner_digest).or_default();
            place(of_keys, step, uid);
            if of_keys.is_empty() {
                self.by_owner_keys.remove(&member.wanted.owner_digest);
            }
        }
        if member.lease.is_none() && member.state != MemberState::Deleting {
            place(&mut self.unbound, step, uid);
            if !member.cordoned {
                self.offer(step, member, uid);
            }
        }
    }

    const fn count(&mut self, step: Step, member: &Member) {
        let counts = &mut self.counts;
        let of_state = match member.state {
            MemberState::Building => &mut counts.building,
            MemberState::Starting => &mut counts.starting,
            MemberState::IdleRunning => &mut counts.idle_running,
            MemberState::IdleStopped => &mut counts.idle_stopped,
            MemberState::Leased => &mut counts.leased,
            MemberState::Recycling => &mut counts.recycling,
            MemberState::Stopping => &mut counts.stopping,
            MemberState::Deleting => &mut counts.deleting,
        };
        tally(of_state, step);
        if member.cordoned {
            tally(&mut counts.cordoned, step);
        }
    }

    /// What may fall due for a member, bound or not.
    fn watch(&mut self, step: Step, member: &Member, uid: Ulid) {
        if member.state == MemberState::Building && self.stale(member) == Stale::No {
            place(&mut self.builds, step, (member.since, uid));
        }
        if let Some(build_by) = member.build_by {
            place(&mut self.build_by, step, (build_by, uid));
        }
        if let Some(recycling) = &member.recycling {
            place(&mut self.recycle_by, step, (recycling.order.by, uid));
        }
        if member.unplaceable.is_some() && member.state == MemberState::Building {
            tally(&mut self.unplaced_builds, step);
        }
        if member.unplaceable.is_some() && self.stale(member) == Stale::No {
            place(&mut self.unplaceable, step, uid);
        }
        if let Some(down_since) = member.down_since {
            place(&mut self.down, step, (down_since, uid));
        }
        if let Some(revoke_by) = member.revoke_by {
            place(&mut self.revoking, step, (revoke_by, uid));
            if member.keys_confirmed() || member.observed.sighting != Sighting::Running {
                place(&mut self.revoked, step, uid);
            }
        }
    }

    /// An unbound member that leases, floors and timers may take.
    fn offer(&mut self, step: Step, member: &Member, uid: Ulid) {
        let stale = self.stale(member);
        match member.state {
            MemberState::Building | MemberState::Starting => {
                tally(&mut self.on_the_way, step);
                if stale == Stale::No {
                    tally(&mut self.on_the_way_fresh, step);
                }
                let begun = (stale, member.since, uid);
                let building = member.state == MemberState::Building;
                if building || member.unplaceable.is_some() {
                    place(&mut self.droppable, step, begun);
                }
                if member.unplaceable.is_none() {
                    place(if building { &mut self.building } else { &mut self.starting }, step, begun);
                }
            }
            MemberState::IdleRunning => {
                self.running.apply(step, member, stale);
                self.age(step, member, uid);
                if member.destination == Destination::Stopped {
                    place(&mut self.to_stop, step, uid);
                }
            }
            MemberState::IdleStopped | MemberState::Stopping => {
                self.stopped.apply(step, member, stale);
                self.age(step, member, uid);
            }
            MemberState::Leased | MemberState::Recycling | MemberState::Deleting => {}
        }
    }

    fn age(&mut self, step: Step, member: &Member, uid: Ulid) {
        let set = if member.aged { &mut self.aged } else { &mut self.ageing };
        place(set, step, (member.born, uid));
    }

    fn stale(&self, member: &Member) -> Stale {
        if member.template_hash == self.hash { Stale::No } else { Stale::Yes }
    }
}

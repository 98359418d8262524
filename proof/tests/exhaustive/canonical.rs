//! The canonical form of a state, which makes the endless state space finite. Each rewriting maps a
//! state to one with the same future:
//!
//! - **Time.** A moment is kept only as far as the core may ask about it. A deadline is to come, and
//!   any of them may come next ([`crate::timer`]), whatever its distance: this covers every length of
//!   every timer and every pace of the world. Of moments that have passed only their order is kept,
//!   and whether an idle timer or maxAge has run out since. "Now" is always the same moment.
//! - **Names.** Boots and revisions are only ever compared: they are renumbered in their order, and new
//!   ones come after all old ones. Uids and clients are only ever told apart, so that leases, members and
//!   clients are lined up by what they look like. The one thing lost by that is which of two goes first
//!   where nothing but the uid decides.
//! - **What only people read** goes: messages, times of phases, generations, outcomes, last failures,
//!   events and usage. Decisions never look at it; that a decision wrote it was checked before.

use std::collections::{BTreeMap, BTreeSet};

use ulid::Ulid;

use crate::machine::{Box_, Place, boot_id, boot_number, started_at};
use crate::state::Word;
use crate::{NOW, START};
use ringleader_proof::object::{LeasePhase, LeaseState, MemberState, Time};
use ringleader_proof::pool::{BackOff, Inputs, Lease, Member, PoolRow, Recycling, Sighting, WaitsFor, want};

const SECOND: i64 = 1000;
const FIRST_WAIT: i64 = 60 * SECOND;
/// Every deadline that is to come.
const LATER: Time = Time::from_millis(START + 3600 * SECOND);
/// From here on more failures in a row change nothing.
const FAILURES_TOLD_MAX: u32 = 3;
/// The recycle that a member is carrying out, and any other.
const PRESENT_RECYCLE: Ulid = Ulid(900);
const OTHER_RECYCLE: Ulid = Ulid(901);

/// Everything that is rewritten together.
pub struct Whole {
    pub row: PoolRow,
    pub leases: Vec<Lease>,
    pub members: Vec<Member>,
    pub machines: BTreeMap<Ulid, Box_>,
    pub late: Option<Word>,
}

impl Whole {
    /// Leases and members come in order of uid.
    pub fn canonical(mut self, inputs: &Inputs) -> Self {
        self.drop_what_says_nothing();
        self.order_moments();
        self.line_up();
        self.rename();
        for index in 0..self.members.len() {
            self.renumber(index);
        }
        self.erase();
        self.digest(inputs);
        self
    }

    fn drop_what_says_nothing(&mut self) {
        let present: BTreeSet<Ulid> = self.members.iter().map(Member::uid).collect();
        self.machines.retain(|uid, _| present.contains(uid));
        let members = &self.members;
        self.late = self.late.take().filter(|late| {
            let member = members.iter().find(|member| member.uid() == late.member);
            member.is_some_and(|member| late.seen.order.revision >= member.observed.revision)
        });
        for member in &mut self.members {
            let (uid, recycle) = (member.uid(), member.recycling.map(|recycling| recycling.order.id));
            if self.late.as_ref().is_none_or(|late| late.member != uid) {
                // Nothing under an older want is on its way any more.
                member.observed.revision = 0;
            }
            if member.observed.keys_revision != member.wanted.keys_revision {
                member.observed.keys_revision = 0;
            }
            let machine = self.machines.get_mut(&uid).into_iter();
            for seen in machine.chain(self.late.as_mut().filter(|l| l.member == uid).map(|l| &mut l.seen)) {
                let asked = seen.order.recycle.map(|(id, _)| id);
                seen.recycled = seen.recycled.filter(|(id, _)| Some(*id) == recycle || Some(*id) == asked);
                if matches!(seen.place, Place::Gone | Place::Failed) {
                    (seen.landed, seen.used) = (false, false);
                    seen.keys.clear();
                }
            }
        }
    }

    /// Leases and members in an order that looks alike however they came about, as far as that is
    /// easily seen; the clients by who comes first.
    fn line_up(&mut self) {
        let of_machine = |machine: Option<&Box_>| {
            machine.map(|it| (it.place as u8, it.landed, it.used, it.keys.len(), it.order.aim as u8))
        };
        let mut ranked: Vec<_> = self
            .members
            .drain(..)
            .map(|member| {
                let looks = (
                    member.state as u8,
                    member.cordoned,
                    member.observed.sighting as u8,
                    member.observed.configured,
                    of_machine(self.machines.get(&member.uid())),
                    (member.since, member.last_used, member.born),
                    (member.reuses, member.template_hash.clone()),
                );
                (looks, member)
            })
            .collect();
        ranked.sort_by(|(one, _), (other, _)| one.cmp(other));
        let place: BTreeMap<Ulid, usize> =
            ranked.iter().enumerate().map(|(place, (_, member))| (member.uid(), place)).collect();
        self.leases.sort_by_key(|lease| {
            let member = lease.member.as_ref().map(|bond| place[&bond.uid]);
            let reason = lease.reason.map(|reason| reason as u8);
            let deleted = lease.metadata.deletion_timestamp.is_some();
            (lease.phase, lease.spec.state as u8, deleted, lease.created(), lease.ended_at, reason, member)
        });
        let lease_place: BTreeMap<Ulid, usize> =
            self.leases.iter().enumerate().map(|(place, lease)| (lease.uid(), place)).collect();
        // Members that look alike stand as their leases do.
        ranked.sort_by(|(one, a), (other, b)| {
            let lease = |member: &Member| member.lease.as_ref().map(|bond| lease_place[&bond.uid]);
            one.cmp(other).then_with(|| lease(a).cmp(&lease(b)))
        });
        self.members = ranked.into_iter().map(|(_, member)| member).collect();
        if self.leases.first().is_some_and(|lease| lease.holder != crate::ann()) {
            for lease in &mut self.leases {
                lease.holder = if lease.holder == crate::ann() { crate::ben() } else { crate::ann() };
            }
        }
    }

    /// New uids for leases and members, in this order.
    fn rename(&mut self) {
        let uids = |from: u64, old: Vec<Ulid>| -> BTreeMap<Ulid, Ulid> {
            let new = (1..).map(|rank| Ulid::from_parts(from, rank));
            old.into_iter().zip(new).collect()
        };
        let leases = uids(2000, self.leases.iter().map(Lease::uid).collect());
        let members = uids(1000, self.members.iter().map(Member::uid).collect());
        let rename_keys = |keys: &mut Vec<String>| {
            for key in keys {
                *key = renamed_key(key, &leases);
            }
        };
        let name = |uid: Ulid| format!("{:x}-{:x}", uid.timestamp_ms(), uid.random());
        for lease in &mut self.leases {
            let uid = leases[&lease.uid()];
            lease.metadata.uid = Some(uid);
            lease.metadata.name = name(uid);
            rename_keys(&mut lease.spec.authorized_keys);
            if let Some(bond) = &mut lease.member {
                bond.uid = members[&bond.uid];
                bond.name = name(bond.uid);
            }
        }
        for member in &mut self.members {
            let uid = members[&member.uid()];
            member.metadata.uid = Some(uid);
            member.metadata.name = name(uid);
            if let Some(bond) = &mut member.lease {
                bond.uid = leases[&bond.uid];
                bond.name = name(bond.uid);
            }
        }
        self.machines = std::mem::take(&mut self.machines)
            .into_iter()
            .map(|(uid, machine)| (members[&uid], machine))
            .collect();
        if let Some(late) = &mut self.late {
            late.member = members[&late.member];
        }
        let seen = self.machines.values_mut().chain(self.late.as_mut().map(|late| &mut late.seen));
        for machine in seen {
            rename_keys(&mut machine.keys);
            rename_keys(&mut machine.order.keys);
        }
    }

    /// Deadlines are to come; what has passed is kept in its order.
    fn order_moments(&mut self) {
        let spec = &self.row.spec;
        let created = ranks(self.leases.iter().filter(|lease| may_wait(lease)).map(Lease::created), None);
        let ended = ranks(self.leases.iter().filter_map(|lease| lease.ended_at), None);
        for lease in &mut self.leases {
            let created = if may_wait(lease) { created[&lease.created()] } else { NOW };
            lease.metadata.creation_timestamp = Some(created);
            let ends = if is_running(lease) { LATER } else { NOW };
            (lease.spec.expires_at, lease.term_ends) = (Some(ends), ends);
            let failed = lease.phase == LeasePhase::Failed;
            lease.ended_at = lease.ended_at.filter(|_| failed).map(|at| ended[&at]);
        }
        let back_off = self.row.health.back_off;
        let passed = back_off.map(|back_off| back_off.until).filter(|until| *until <= NOW);
        let begun = self.members.iter().filter(|member| is_coming(member)).map(|member| member.since);
        let begun = ranks(begun.chain(passed), None);
        let used = self.members.iter().filter(|member| is_idle_later(member)).map(|member| member.last_used);
        let used = ranks(used, None);
        let max_age = spec.max_age.as_ref().map(ringleader_proof::object::Span::millis);
        let born = ranks(self.members.iter().map(|member| member.born), max_age);
        let idle_for = |state: MemberState| match state {
            MemberState::IdleRunning => spec.warm.stop_after.millis(),
            _ => spec.warm.delete_after.millis(),
        };
        for member in &mut self.members {
            member.since = match member.state {
                MemberState::Building | MemberState::Starting => begun[&member.since],
                MemberState::IdleRunning | MemberState::IdleStopped | MemberState::Stopping => {
                    let long_ago = NOW.plus_millis(-idle_for(member.state));
                    if member.since <= long_ago { long_ago } else { NOW }
                }
                MemberState::Leased | MemberState::Recycling | MemberState::Deleting => NOW,
            };
            member.born = born[&member.born];
            member.last_used = if is_idle_later(member) { used[&member.last_used] } else { NOW };
            member.build_by = member.build_by.map(|_| LATER);
            member.revoke_by = member.revoke_by.map(|_| LATER);
            member.down_since = member.down_since.map(|_| NOW);
            if let Some(recycling) = &mut member.recycling {
                recycling.order.by = LATER;
            }
        }
        self.row.health.back_off = back_off.map(|_| {
            let until = passed.map_or(LATER, |until| begun[&until]);
            BackOff { began: until.plus_millis(-FIRST_WAIT), until }
        });
        self.row.health.consecutive_failures = self.row.health.consecutive_failures.min(FAILURES_TOLD_MAX);
        let health = &self.row.health;
        for told in self.leases.iter_mut().filter_map(|lease| lease.waits_for.as_mut()) {
            match told {
                WaitsFor::BackOff { until, failures } => {
                    *until = health.back_off.map_or(NOW, |back_off| back_off.until);
                    *failures = (*failures).min(FAILURES_TOLD_MAX);
                }
                WaitsFor::Probe { failures } => *failures = (*failures).min(FAILURES_TOLD_MAX),
                WaitsFor::Release
                | WaitsFor::Room { .. }
                | WaitsFor::Provider { .. }
                | WaitsFor::TemplateFix { .. }
                | WaitsFor::Turn
                | WaitsFor::Paused => {}
            }
        }
    }

    /// Revisions, boots and recycles of one member, from its row, its machine and what is on its way.
    fn renumber(&mut self, index: usize) {
        let member = &mut self.members[index];
        let uid = member.uid();
        let mut seen: Vec<&mut Box_> = self.machines.get_mut(&uid).into_iter().collect();
        seen.extend(self.late.as_mut().filter(|late| late.member == uid).map(|late| &mut late.seen));
        let wanted = &mut member.wanted;
        let observed = &mut member.observed;
        let mut revisions = vec![
            &mut wanted.revision,
            &mut wanted.keys_revision,
            &mut observed.revision,
            &mut observed.keys_revision,
        ];
        let mut boots: Vec<u64> = Vec::new();
        let present = member.recycling.map(|recycling| recycling.order.id);
        for machine in seen {
            let named = |id: Ulid| if Some(id) == present { PRESENT_RECYCLE } else { OTHER_RECYCLE };
            machine.recycled = machine.recycled.map(|(id, outcome)| (named(id), outcome));
            machine.order.recycle = machine.order.recycle.map(|(id, reboots)| (named(id), reboots));
            boots.push(machine.boot);
            revisions.push(&mut machine.order.revision);
        }
        let all: BTreeSet<u64> = revisions.iter().map(|revision| **revision).filter(|it| *it > 0).collect();
        let number: BTreeMap<u64, u64> = all.into_iter().zip(1..).collect();
        for revision in revisions {
            *revision = number.get(revision).copied().unwrap_or(0);
        }
        boots.extend(observed.boot_id.map(boot_number));
        boots.extend(member.recycling.and_then(|recycling| recycling.boot).map(boot_number));
        let all: BTreeSet<u64> = boots.into_iter().filter(|boot| *boot > 0).collect();
        let number: BTreeMap<u64, u64> = all.into_iter().zip(1..).collect();
        let renumbered = |id: Ulid| boot_id(number.get(&boot_number(id)).copied().unwrap_or(0));
        observed.boot_id = observed.boot_id.map(renumbered);
        observed.started_at = observed.boot_id.map(|id| started_at(boot_number(id)));
        member.recycle_nonce = None;
        if let Some(Recycling { order, boot }) = &mut member.recycling {
            order.id = PRESENT_RECYCLE;
            *boot = boot.map(renumbered);
            member.recycle_nonce = Some(PRESENT_RECYCLE);
        }
        let late = self.late.as_mut().filter(|late| late.member == uid).map(|late| &mut late.seen);
        for machine in self.machines.get_mut(&uid).into_iter().chain(late) {
            machine.boot = number.get(&machine.boot).copied().unwrap_or(0);
        }
    }

    fn erase(&mut self) {
        let row = &mut self.row;
        row.status = ringleader_proof::object::PoolStatus::default();
        row.health.last_failure = None;
        row.ever_ready = true;
        row.metadata.generation = 1;
        row.metadata.deletion_timestamp = row.metadata.deletion_timestamp.map(|_| NOW);
        for lease in &mut self.leases {
            let observed = lease.observed_generation == lease.metadata.generation;
            lease.metadata.generation = 1;
            lease.observed_generation = observed.into();
            lease.metadata.deletion_timestamp = lease.metadata.deletion_timestamp.map(|_| NOW);
            lease.message = String::new();
            (lease.start, lease.waited_millis, lease.release) = (None, None, None);
            lease.bound_at = None;
            lease.ready_at = lease.ready_at.map(|_| NOW);
            (lease.asked_at, lease.bound_changed, lease.ready_changed) = (NOW, NOW, NOW);
        }
        for member in &mut self.members {
            member.metadata.generation = 1;
            member.metadata.creation_timestamp = Some(NOW);
            member.metadata.deletion_timestamp = member.metadata.deletion_timestamp.map(|_| NOW);
            member.observed.message = String::new();
            if member.observed.sighting != Sighting::Running {
                member.observed.agent = ringleader_proof::machine::AgentInfo::default();
            }
        }
    }

    /// The stored digests of the wants as they now read; that they were right was checked before.
    pub fn digest(&mut self, inputs: &Inputs) {
        for member in self.members.iter_mut().filter(|member| !member.is_over()) {
            let lease = member.lease.as_ref().map(|bond| bond.uid);
            let lease = self.leases.iter().find(|of| Some(of.uid()) == lease);
            let fresh = want::ordered(member, lease, inputs);
            let (revision, keys_revision) = (member.wanted.revision, member.wanted.keys_revision);
            member.wanted = ringleader_proof::pool::Wanted { revision, keys_revision, ..fresh };
        }
    }
}

/// It is in the queue, or may come to be in it again.
fn may_wait(lease: &Lease) -> bool {
    let bound_for_the_first_time = lease.phase == LeasePhase::Starting && lease.ready_at.is_none();
    lease.phase == LeasePhase::Pending || bound_for_the_first_time
}

/// Time can still end it.
pub fn is_running(lease: &Lease) -> bool {
    let ends = matches!(lease.phase, LeasePhase::Pending | LeasePhase::Starting | LeasePhase::Ready);
    ends && lease.asked() == LeaseState::Needed
}

fn is_coming(member: &Member) -> bool {
    matches!(member.state, MemberState::Building | MemberState::Starting)
}

/// It is idle, or may be so again without its last use being written anew.
fn is_idle_later(member: &Member) -> bool {
    match member.state {
        MemberState::IdleRunning
        | MemberState::IdleStopped
        | MemberState::Stopping
        | MemberState::Starting => true,
        MemberState::Building | MemberState::Leased | MemberState::Recycling | MemberState::Deleting => false,
    }
}

/// Each moment's place among the others, a second apart and all before now; those older than `age`
/// stay so.
fn ranks(moments: impl Iterator<Item = Time>, age: Option<i64>) -> BTreeMap<Time, Time> {
    let all: BTreeSet<Time> = moments.collect();
    let shifted = |(rank, moment): (i64, Time)| {
        let old = age.filter(|age| moment <= NOW.plus_millis(-age)).unwrap_or(0);
        (moment, Time::from_millis(START - old - rank * SECOND))
    };
    (1..).zip(all.into_iter().rev()).map(shifted).collect()
}

/// A key carries the uid of its lease, or of none that is left.
fn renamed_key(key: &str, leases: &BTreeMap<Ulid, Ulid>) -> String {
    let mut words = key.split(' ');
    let (_, uid, variant) = (words.next(), words.next(), words.next().unwrap_or_default());
    let uid = uid.and_then(|uid| uid.parse().ok()).and_then(|uid: Ulid| leases.get(&uid).copied());
    crate::key(uid.unwrap_or(Ulid::nil()), variant)
}

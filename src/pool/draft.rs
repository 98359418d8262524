//! One decision in the making: the rows it touches, over the pool as it stands. Nothing is
//! copied but the touched rows, and a row that ends up as it was is no change.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use ulid::Ulid;

use super::want;
use super::{Act, Change, Decision, EventRow, Inputs, Lease, Member, Pool, PoolRow, Sighting};
use crate::object::{EventType, LeasePhase, LeaseState, MemberState, ObjectReference, Tick, Time};

/// At most so many events are kept for a pool; the oldest goes first.
pub const EVENTS_MAX: usize = 100;

pub struct Draft<'a> {
    pub pool: &'a Pool,
    pub tick: &'a Tick,
    pub inputs: &'a Inputs,
    row: Option<Box<PoolRow>>,
    leases: BTreeMap<Ulid, Option<Lease>>,
    members: BTreeMap<Ulid, Option<Member>>,
    events: BTreeMap<Ulid, Option<EventRow>>,
    pool_removed: bool,
    ids_made: u32,
}

impl<'a> Draft<'a> {
    pub const fn new(pool: &'a Pool, tick: &'a Tick, inputs: &'a Inputs) -> Self {
        Self {
            pool,
            tick,
            inputs,
            row: None,
            leases: BTreeMap::new(),
            members: BTreeMap::new(),
            events: BTreeMap::new(),
            pool_removed: false,
            ids_made: 0,
        }
    }

    /// The date: what people read, and what leases expire by.
    pub const fn now(&self) -> Time {
        self.tick.wall
    }

    /// The moment on the clock that nobody sets: what waits are measured with (rule L21).
    pub const fn steady(&self) -> Time {
        self.tick.steady
    }

    pub fn row(&self) -> &PoolRow {
        self.row.as_deref().unwrap_or(&self.pool.row)
    }

    pub fn row_mut(&mut self) -> &mut PoolRow {
        self.row.get_or_insert_with(|| Box::new(self.pool.row.clone()))
    }

    /// The last row goes.
    pub fn remove_pool(&mut self) {
        self.pool_removed = true;
    }

    pub fn lease(&self, uid: Ulid) -> Option<&Lease> {
        self.leases.get(&uid).map_or_else(|| self.pool.leases.get(&uid), Option::as_ref)
    }

    /// A lease to write. None when there is no such lease.
    pub fn lease_mut(&mut self, uid: Ulid) -> Option<&mut Lease> {
        self.leases.entry(uid).or_insert_with(|| self.pool.leases.get(&uid).cloned()).as_mut()
    }

    pub fn put_lease(&mut self, lease: Lease) {
        self.leases.insert(lease.uid(), Some(lease));
    }

    pub fn remove_lease(&mut self, uid: Ulid) {
        self.leases.insert(uid, None);
    }

    pub fn member(&self, uid: Ulid) -> Option<&Member> {
        self.members.get(&uid).map_or_else(|| self.pool.members.get(&uid), Option::as_ref)
    }

    /// A member to write. None when there is no such member.
    pub fn member_mut(&mut self, uid: Ulid) -> Option<&mut Member> {
        self.members.entry(uid).or_insert_with(|| self.pool.members.get(&uid).cloned()).as_mut()
    }

    pub fn put_member(&mut self, member: Member) {
        self.members.insert(member.uid(), Some(member));
    }

    pub fn remove_member(&mut self, uid: Ulid) {
        self.members.insert(uid, None);
    }

    pub fn remove_event(&mut self, uid: Ulid) {
        self.events.insert(uid, None);
    }

    /// Random bits of this decision's own, different each time they are drawn.
    pub fn entropy(&mut self) -> u128 {
        self.ids_made += 1;
        let mut hasher = Sha256::new();
        hasher.update(self.tick.entropy.to_be_bytes());
        hasher.update(self.ids_made.to_be_bytes());
        let mut bytes = [0_u8; 16];
        bytes.copy_from_slice(&hasher.finalize()[..16]);
        u128::from_be_bytes(bytes)
    }

    /// A uid that no row of this pool has.
    pub fn new_uid(&mut self) -> Ulid {
        let millis = u64::try_from(self.tick.wall.millis()).unwrap_or(0);
        loop {
            let uid = Ulid::from_parts(millis, self.entropy());
            let taken = self.pool.members.contains_key(&uid)
                || self.pool.leases.contains_key(&uid)
                || self.pool.events.contains_key(&uid);
            if !taken {
                return uid;
            }
        }
    }

    /// Tells a person of something about the pool. What repeats for the same `cause` is counted in
    /// one row.
    pub fn warn(&mut self, reason: &str, cause: &str, message: String) {
        let now = self.now();
        let known = self.pool.events.values().find(|event| event.reason == reason && event.cause == cause);
        let mut event = known.cloned().unwrap_or_else(|| self.new_event(reason, cause));
        event.message = message;
        event.count += 1;
        event.last = now;
        if known.is_none() && self.pool.events.len() >= EVENTS_MAX {
            let oldest = self.pool.events.values().min_by_key(|event| (event.last, event.uid));
            if let Some(uid) = oldest.map(|event| event.uid) {
                self.remove_event(uid);
            }
        }
        self.events.insert(event.uid, Some(event));
    }

    fn new_event(&mut self, reason: &str, cause: &str) -> EventRow {
        let uid = self.new_uid();
        let metadata = &self.pool.row.metadata;
        let namespace = metadata.namespace.clone().unwrap_or_default();
        EventRow {
            uid,
            pool_uid: self.pool.row.uid(),
            name: format!("{}.{}", metadata.name, uid.to_string().to_ascii_lowercase()),
            regarding: ObjectReference {
                api_version: format!("{}/{}", crate::object::WORKSTATIONS_GROUP, crate::object::VERSION),
                kind: "WorkstationPool".into(),
                namespace: namespace.clone(),
                name: metadata.name.clone(),
                uid: self.pool.row.uid().to_string(),
            },
            namespace,
            kind: EventType::Warning,
            reason: reason.into(),
            cause: cause.into(),
            message: String::new(),
            count: 0,
            first: self.now(),
            last: self.now(),
        }
    }

    /// Draws the conclusions that hold for every decision, and lists what has changed.
    pub fn finish(mut self, act: Act) -> Decision {
        let bound: Vec<Ulid> =
            self.leases.values().flatten().filter_map(|lease| lease.member.as_ref()).map(|m| m.uid).collect();
        for uid in bound {
            self.member_mut(uid);
        }
        let touched: Vec<Ulid> = self.members.keys().copied().collect();
        for uid in touched {
            self.settle_member(uid);
        }
        let touched: Vec<Ulid> = self.leases.keys().copied().collect();
        for uid in touched {
            self.settle_lease(uid);
        }
        let wants = self.changed_wants();
        let changes = self.into_changes();
        let act = if changes.is_empty() { Act::Nothing } else { act };
        Decision { act, changes, wants }
    }

    /// Orders a want anew where it has changed, and touches the lease that depends on it.
    fn settle_member(&mut self, uid: Ulid) {
        let Some(member) = self.member(uid) else { return };
        if member.is_over() {
            return;
        }
        let lease = member.lease.as_ref().and_then(|bond| self.lease(bond.uid));
        let wanted = want::ordered(member, lease, self.inputs);
        let bound = member.lease.as_ref().map(|bond| bond.uid);
        let stored = self.pool.members.get(&uid);
        let turned = stored.is_some_and(|stored| {
            stored.metadata.generation == member.metadata.generation
                && (stored.shown_power(), stored.recycle_nonce)
                    != (member.shown_power(), member.recycle_nonce)
        });
        if let Some(member) = self.member_mut(uid) {
            member.wanted = wanted;
            if turned {
                member.metadata.generation += 1;
            }
        }
        if let Some(lease) = bound {
            self.lease_mut(lease);
        }
    }

    /// Whether a bound lease is usable, and what its conditions and generation say, follows from
    /// its member (rules L18, L19).
    fn settle_lease(&mut self, uid: Ulid) {
        let now = self.now();
        let stored = self.pool.leases.get(&uid);
        let was = (
            stored.is_some_and(|l| l.member.is_some()),
            stored.is_some_and(|l| l.phase == LeasePhase::Ready),
        );
        let Some(lease) = self.lease(uid) else { return };
        let member = lease.member.as_ref().and_then(|bond| self.member(bond.uid)).cloned();
        let hash = self.row().template_hash.clone();
        let tick = self.tick;
        let Some(lease) = self.lease_mut(uid) else { return };
        if let Some(member) = &member {
            settle_readiness(lease, member, &hash, tick);
        }
        let awaits_keys =
            member.is_some_and(|member| member.state == MemberState::Leased && !member.keys_confirmed());
        if !awaits_keys {
            lease.observed_generation = lease.metadata.generation;
        }
        if was.0 != lease.member.is_some() {
            lease.bound_changed = now;
        }
        if was.1 != (lease.phase == LeasePhase::Ready) {
            lease.ready_changed = now;
        }
    }

    fn changed_wants(&self) -> Vec<crate::machine::Want> {
        let changed = self.members.iter().filter_map(|(uid, member)| {
            let member = member.as_ref().filter(|member| !member.is_over())?;
            let stored = self.pool.members.get(uid).map_or(0, |stored| stored.wanted.revision);
            (member.wanted.revision != stored).then(|| {
                let lease = member.lease.as_ref().and_then(|bond| self.lease(bond.uid));
                want::of(member, lease, self.inputs, &self.pool.row)
            })
        });
        changed.collect()
    }

    /// What differs from the stored rows. Leases and members stand together, so that a binding is
    /// written from both sides at once (rule L8).
    fn into_changes(self) -> Vec<Change> {
        let pool = self.pool;
        let mut changes = Vec::new();
        if let Some(row) = self.row.filter(|row| **row != pool.row) {
            changes.push(Change::PutPool(*row));
        }
        for (uid, lease) in self.leases {
            match lease {
                Some(lease) if pool.leases.get(&uid) != Some(&lease) => {
                    changes.push(Change::PutLease(lease));
                }
                None if pool.leases.contains_key(&uid) => changes.push(Change::RemoveLease(uid)),
                Some(_) | None => {}
            }
        }
        for (uid, member) in self.members {
            match member {
                Some(member) if pool.members.get(&uid) != Some(&member) => {
                    changes.push(Change::PutMember(member));
                }
                None if pool.members.contains_key(&uid) => changes.push(Change::RemoveMember(uid)),
                Some(_) | None => {}
            }
        }
        for (uid, event) in self.events {
            match event {
                Some(event) => changes.push(Change::PutEvent(event)),
                None => changes.push(Change::RemoveEvent(uid)),
            }
        }
        if self.pool_removed {
            changes.push(Change::RemovePool(pool.row.uid()));
        }
        changes
    }
}

/// Ready exactly when the member is up and configured and its agent has confirmed the keys; once
/// Ready it stays so until the lease ends or the machine goes down.
fn settle_readiness(lease: &mut Lease, member: &Member, hash: &str, tick: &Tick) {
    let up = member.state == MemberState::Leased
        && member.down_since.is_none()
        && member.observed.sighting == Sighting::Running
        && member.observed.configured;
    match lease.phase {
        LeasePhase::Starting => {
            let usable = up && member.keys_confirmed() && lease.asked() == LeaseState::Needed;
            if usable && let Some(ssh) = member.ssh() {
                lease.phase = LeasePhase::Ready;
                lease.ready_at.get_or_insert(tick.wall);
                lease.waited_millis.get_or_insert(tick.steady.millis_since(lease.asked_at));
                lease.ssh = Some(ssh);
            }
            lease.message = bound_message(lease, member, hash);
        }
        LeasePhase::Ready if member.down_since.is_some() => {
            lease.phase = LeasePhase::Starting;
            lease.ssh = None;
            lease.message = bound_message(lease, member, hash);
        }
        LeasePhase::Ready => {
            lease.ssh = member.ssh().or_else(|| lease.ssh.take());
            lease.message = bound_message(lease, member, hash);
        }
        LeasePhase::Pending | LeasePhase::Recycling | LeasePhase::Releasing | LeasePhase::Failed => {}
    }
}

/// What a person who waits for a bound lease should know.
fn bound_message(lease: &Lease, member: &Member, hash: &str) -> String {
    let name = &member.metadata.name;
    let mut said = match (lease.phase, member.state, member.down_since) {
        (LeasePhase::Ready, _, _) if member.keys_confirmed() => String::new(),
        (_, MemberState::Building, _) => format!("{name} is being built"),
        (_, MemberState::Starting, _) => format!("{name} is being started"),
        (_, _, Some(since)) => format!("{name} stopped by itself at {since} and is being started again"),
        (_, _, None) if member.observed.remarks.is_empty() => format!("{name} is taking the lease's keys"),
        (_, _, None) => {
            format!("{name} is taking the lease's keys: {}", member.observed.remarks.join("; "))
        }
    };
    if member.template_hash != hash {
        let stale = format!("{name} was built from an older template");
        said = if said.is_empty() { stale } else { format!("{said}; {stale}") };
    }
    said
}

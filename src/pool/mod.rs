//! The pure core of a pool: what should be done next is a function of what the pool knows and
//! the time. No IO, no clock, no async, no randomness.
//!
//! ```text
//!  Command ──► decide ──► Decision { act, changes, wants }      reads only, may refuse
//!                             │ changes
//!             durable ◄───────┴───────► evolve                  total; the only way memory moves
//! ```
//!
//! A command records what was asked or seen, nothing more. `Command::Pass` then looks at the whole
//! state and does the one next act (`pass/`): binds one lease, orders one build, lets one member
//! go. The shell repeats it until it does nothing, each act its own submission. Whatever was
//! missed, doubled or interrupted is put right by the next pass, because nothing depends on having
//! seen a moment, only on how things stand.
//!
//! # A lease
//!
//! ```text
//!            bind                keys confirmed
//!  Pending ───────► Starting ───────────────────► Ready ──┐
//!   │  ▲               │  ▲    machine went down    │     │ time is up, member lost
//!   │  └───────────────┘  └─────────────────────────┘     ▼
//!   │   member lost          │ Done, delete              Failed ──► gone, once its holder has
//!   │                        ▼                            ▲         seen it or retention passed
//!   │                     Releasing ──► gone with the     │
//!   │                        ▲          member's delete   │
//!   │               Recycle  │ Done                       │ failed, timed out, member lost
//!   │      Ready ──────► Recycling ───────────────────────┤
//!   ├─ cancelled: gone       └────────► gone, recycled    │
//!   └─ time is up ────────────────────────────────────────┘
//! ```
//!
//! # A member
//!
//! ```text
//!             configured                 bind
//!  Building ─────────────► IdleRunning ───────► Leased
//!     │  └── bound ──────────────│───────────────►│ ▲
//!     │                   timer  ▼                │ │ configured, bound
//!     │                       Stopping            │ │
//!     │                          ▼       floor    │ │
//!     │                     IdleStopped ─────► Starting ──► IdleRunning
//!     │                          │                │ Recycle
//!     │                          │                ├────────► Recycling ──► IdleRunning
//!     │ failed, dropped          │ timer          │ lost         │ failed
//!     ▼                          ▼                ▼              ▼
//!  Deleting: first without the lease's keys, then ordered gone, then absent: the row goes
//! ```
//!
//! A lease's keys are in its member's want only while the member is Leased, so a lease whose
//! member is still being built or started can be moved or cancelled without a trace.
//!
//! # What is kept, and what is not
//!
//! Rows (`rows/`) are stored and come back after a restart. The indexes (`index/`) are ordered
//! looks at them, kept by `evolve`, so that an act costs O(log n) in members and leases. Counts,
//! queue positions and the present status are derived; of the status the last one written is kept.

mod change;
mod command;
mod decision;
mod denied;
mod digest;
mod draft;
mod given_up;
mod handle;
mod happening;
mod health;
mod index;
mod inputs;
pub mod invariant;
mod pass;
mod recycle;
mod rows;
mod status;
mod template;
mod usage;
mod verbs;
pub mod want;

#[cfg(test)]
mod tests;

pub use change::Change;
pub use command::{Command, Standing};
pub use decision::{Act, Decision};
pub use denied::{Answer, Denied};
pub use happening::{BuildFailure, Ending, Happening, Removal, happenings};
pub use inputs::{Inputs, OwnerKeys, ProviderState, Resetting, Room, StatusWrite, Stopping};
pub use rows::*;

use std::collections::BTreeMap;
use std::sync::Arc;

use ulid::Ulid;

use self::draft::Draft;
use self::index::{LeaseIndex, MemberIndex, Moments, Step};
use crate::machine::Want;
use crate::object::{Subject, Tick, Time, UsageRow, WorkstationPool};

/// One pool in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    row: PoolRow,
    leases: BTreeMap<Ulid, Lease>,
    members: BTreeMap<Ulid, Member>,
    events: BTreeMap<Ulid, EventRow>,
    usage: BTreeMap<Ulid, Arc<UsageRow>>,
    leases_by: LeaseIndex,
    members_by: MemberIndex,
    events_by_age: Moments,
    /// Its last row is gone.
    ended: bool,
}

impl Pool {
    /// The row of a new pool from its admitted object; `by` owns it unless it names its owner.
    #[must_use]
    pub fn create(object: WorkstationPool, by: &Subject) -> PoolRow {
        handle::pool::create(object, by)
    }

    /// A pool from its rows, as they were stored or as `create` made them.
    pub fn load(
        row: PoolRow,
        leases: impl IntoIterator<Item = Lease>,
        members: impl IntoIterator<Item = Member>,
        events: impl IntoIterator<Item = EventRow>,
    ) -> Self {
        let mut pool = Self {
            members_by: MemberIndex::new(&row),
            row,
            leases: BTreeMap::new(),
            members: BTreeMap::new(),
            events: BTreeMap::new(),
            usage: BTreeMap::new(),
            leases_by: LeaseIndex::default(),
            events_by_age: Moments::new(),
            ended: false,
        };
        leases.into_iter().for_each(|lease| pool.put_lease(lease));
        members.into_iter().for_each(|member| pool.put_member(member));
        events.into_iter().for_each(|event| pool.put_event(event));
        pool
    }

    /// The same, with what it has counted.
    #[must_use]
    pub fn with_usage(mut self, rows: impl IntoIterator<Item = Arc<UsageRow>>) -> Self {
        self.usage.extend(rows.into_iter().map(|row| (row.uid(), row)));
        self
    }

    /// What a command leads to. Reads only.
    ///
    /// # Errors
    /// When the pool refuses it; nothing has changed.
    pub fn decide(&self, command: Command, tick: &Tick, inputs: &Inputs) -> Result<Decision, Denied> {
        let mut draft = Draft::new(self, tick, inputs);
        let mut act = Act::Record;
        match command {
            Command::UpdatePool { object } => handle::pool::update(&mut draft, *object)?,
            Command::DeletePool => handle::pool::delete(&mut draft)?,
            Command::CreateLease { object, by } => handle::lease::create(&mut draft, *object, by)?,
            Command::UpdateLease { uid, object, by, standing } => {
                handle::lease::update(&mut draft, uid, *object, &by, standing)?;
            }
            Command::DeleteLease { uid, by, standing } => {
                handle::lease::delete(&mut draft, uid, &by, standing)?;
            }
            Command::UpdateMember { uid, object, standing } => {
                handle::member::update(&mut draft, uid, *object, standing)?;
            }
            Command::DeleteMember { uid, standing } => handle::member::delete(&mut draft, uid, standing)?,
            Command::Fact(fact) => handle::fact::record(&mut draft, fact),
            Command::Pass => act = pass::next(&mut draft),
        }
        Ok(draft.finish(act))
    }

    /// Moves memory by one change. Total: a change says how a row stands, not what to do with it.
    pub fn evolve(&mut self, change: &Change) {
        match change {
            Change::PutPool(row) => self.put_row(row.clone()),
            Change::RemovePool(_) => self.ended = true,
            Change::PutLease(lease) => self.put_lease(lease.clone()),
            Change::RemoveLease(uid) => self.remove_lease(*uid),
            Change::PutMember(member) => self.put_member(member.clone()),
            Change::RemoveMember(uid) => self.remove_member(*uid),
            Change::PutEvent(event) => self.put_event(event.clone()),
            Change::RemoveEvent(uid) => self.remove_event(*uid),
            Change::PutUsage(row) => _ = self.usage.insert(row.uid(), Arc::clone(row)),
            Change::RemoveUsage(uid) => _ = self.usage.remove(uid),
        }
    }

    /// Moves memory by a whole decision. In debug builds every invariant is checked afterwards.
    ///
    /// # Panics
    /// In debug builds, when an invariant is broken.
    pub fn evolve_all(&mut self, changes: &[Change]) {
        for change in changes {
            self.evolve(change);
        }
        if cfg!(debug_assertions) {
            invariant::assert_all(self);
        }
    }

    /// When to look again if nothing happens before: the earliest moment after now at which
    /// something may fall due. None: only an event from outside can change anything.
    pub fn next_deadline(&self, tick: &Tick) -> Option<Time> {
        pass::next_deadline(self, tick)
    }

    /// The present want of every member, for a start. One that the inputs have outdated is left
    /// out: a pass orders it anew.
    pub fn wants(&self, inputs: &Inputs) -> Vec<Want> {
        let present = |member: &&Member| {
            member.is_gone_ordered() || member.wanted.owner_digest == inputs.owner_keys.digest()
        };
        let live = self.members.values().filter(|member| !member.is_over()).filter(present);
        live.map(|member| {
            let lease = member.lease.as_ref().and_then(|bond| self.leases.get(&bond.uid));
            want::of(member, lease, inputs, &self.row)
        })
        .collect()
    }

    /// The pool as it is stored.
    pub const fn row(&self) -> &PoolRow {
        &self.row
    }

    /// Nothing of the pool is left, and its owner may go.
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// How many builds are under way: what `builds_at_once_max` bounds over all pools (rule F4).
    /// Those that cannot be placed wait for room, and hold up nobody meanwhile.
    pub const fn builds_in_flight(&self) -> u32 {
        self.members_by.counts.building - self.members_by.unplaced_builds
    }

    /// What keeps it from a build it would begin now.
    pub fn held(&self, tick: &Tick, inputs: &Inputs) -> Option<WaitsFor> {
        status::held(&Draft::new(self, tick, inputs))
    }

    /// One lease.
    pub fn lease(&self, uid: Ulid) -> Option<&Lease> {
        self.leases.get(&uid)
    }

    /// Every lease, in order of uid.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values()
    }

    /// One member.
    pub fn member(&self, uid: Ulid) -> Option<&Member> {
        self.members.get(&uid)
    }

    /// Every member, in order of uid.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// Every event, in order of uid.
    pub fn events(&self) -> impl Iterator<Item = &EventRow> {
        self.events.values()
    }

    /// Every hour on record, oldest first.
    pub fn usage(&self) -> impl Iterator<Item = &UsageRow> {
        self.usage.values().map(Arc::as_ref)
    }

    fn put_row(&mut self, row: PoolRow) {
        self.row = row;
        if self.members_by.is_outdated(&self.row) {
            // Another template makes every member fresh or stale anew: rare, so it may cost a walk.
            self.members_by = MemberIndex::new(&self.row);
            for member in self.members.values() {
                self.members_by.apply(Step::Add, member);
            }
        } else {
            self.members_by.set_floors(&self.row);
        }
    }

    fn put_lease(&mut self, lease: Lease) {
        self.remove_lease(lease.uid());
        self.leases_by.apply(Step::Add, &lease);
        self.leases.insert(lease.uid(), lease);
    }

    fn remove_lease(&mut self, uid: Ulid) {
        if let Some(old) = self.leases.remove(&uid) {
            self.leases_by.apply(Step::Remove, &old);
        }
    }

    fn put_member(&mut self, member: Member) {
        self.remove_member(member.uid());
        self.members_by.apply(Step::Add, &member);
        self.members.insert(member.uid(), member);
    }

    fn remove_member(&mut self, uid: Ulid) {
        if let Some(old) = self.members.remove(&uid) {
            self.members_by.apply(Step::Remove, &old);
        }
    }

    fn put_event(&mut self, event: EventRow) {
        self.remove_event(event.uid);
        self.events_by_age.insert((event.last, event.uid));
        self.events.insert(event.uid, event);
    }

    fn remove_event(&mut self, uid: Ulid) {
        if let Some(old) = self.events.remove(&uid) {
            self.events_by_age.remove(&(old.last, uid));
        }
    }
}

//! The pure core of a pool: what should be done next is a function of what the pool knows and
//! the time. No IO, no clock, no async, no randomness.

mod change;
mod command;
mod decision;
mod denied;
mod digest;
mod inputs;
mod rows;

pub use change::Change;
pub use command::{Command, Standing};
pub use decision::{Act, Decision};
pub use denied::{Answer, Denied};
pub use inputs::{Inputs, OwnerKeys, ProviderState, Room, StatusWrite, Stopping};
pub use rows::*;

use std::collections::BTreeMap;

use ulid::Ulid;

use crate::machine::Want;
use crate::object::{Subject, Tick, Time, WorkstationPool};

/// One pool in memory.
#[derive(Clone, Debug)]
pub struct Pool {
    row: PoolRow,
    leases: BTreeMap<Ulid, Lease>,
    members: BTreeMap<Ulid, Member>,
    events: BTreeMap<Ulid, EventRow>,
}

impl Pool {
    /// The row of a new pool from its admitted object; `by` owns it unless it names its owner.
    pub fn create(_object: WorkstationPool, _by: &Subject) -> PoolRow {
        unimplemented!("skeleton")
    }

    /// A pool from its rows, as they were stored or as `create` made them.
    pub fn load(
        row: PoolRow,
        leases: impl IntoIterator<Item = Lease>,
        members: impl IntoIterator<Item = Member>,
        events: impl IntoIterator<Item = EventRow>,
    ) -> Self {
        Self {
            row,
            leases: leases.into_iter().map(|lease| (lease.uid(), lease)).collect(),
            members: members.into_iter().map(|member| (member.uid(), member)).collect(),
            events: events.into_iter().map(|event| (event.uid, event)).collect(),
        }
    }

    /// What a command leads to. Reads only.
    ///
    /// # Errors
    /// When the pool refuses it; nothing has changed.
    pub fn decide(&self, _command: Command, _tick: &Tick, _inputs: &Inputs) -> Result<Decision, Denied> {
        unimplemented!("skeleton")
    }

    /// Moves memory by one change. Total.
    pub fn evolve(&mut self, _change: &Change) {
        unimplemented!("skeleton")
    }

    /// When to look again, if nothing happens before: the earliest moment after now at which
    /// something may fall due.
    pub fn next_deadline(&self, _tick: &Tick) -> Option<Time> {
        unimplemented!("skeleton")
    }

    /// The present want of every member, for a start. A want that the inputs have outdated is
    /// left out: the passes order it anew.
    pub fn wants(&self, _inputs: &Inputs) -> Vec<Want> {
        unimplemented!("skeleton")
    }

    /// The pool as it is stored.
    pub const fn row(&self) -> &PoolRow {
        &self.row
    }

    /// One lease.
    pub fn lease(&self, uid: Ulid) -> Option<&Lease> {
        self.leases.get(&uid)
    }

    /// One member.
    pub fn member(&self, uid: Ulid) -> Option<&Member> {
        self.members.get(&uid)
    }

    /// Every event.
    pub fn events(&self) -> impl Iterator<Item = &EventRow> {
        self.events.values()
    }

    /// Every member, in order of uid.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// Every lease, in order of uid.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values()
    }
}

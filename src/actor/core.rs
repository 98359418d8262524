//! What an owner's pure part looks like to its shell.

use std::sync::Arc;

use serde_json::Value;
use ulid::Ulid;

use super::doors::{Refusal, Write};
use crate::machine::{Fact, Want};
use crate::metrics::Metrics;
use crate::object::{Tick, Time};
use crate::pool::Happening;
use crate::store::{self, OwnerId};
use crate::view::{Key, View};

/// The pure part of an owner: decides, and is moved by its changes alone.
pub trait Core: Sized + Unpin + 'static {
    /// What the core is asked or told.
    type Command;
    /// What is stored and what moves memory.
    type Change;
    /// What a decision may know of other owners' objects.
    type Inputs: Unpin;

    /// Rebuilt from its records; empty for a new owner.
    fn load(owner: &OwnerId, records: Vec<store::Record>) -> Self;
    /// A write, judged by Kubernetes' rules against the present object, as a command.
    ///
    /// # Errors
    /// When the write cannot be taken, whatever the core would say.
    fn read(&self, write: &Write, tick: &Tick, sources: &Sources) -> Result<Reading<Self::Command>, Refusal>;
    /// A member's fact, as a command.
    fn heard(fact: Fact) -> Self::Command;
    /// The command whose decision is the next single act that the present state calls for.
    fn pass() -> Self::Command;
    /// What follows from `command` now. Reads only.
    ///
    /// # Errors
    /// When the core says no.
    fn decide(
        &self,
        command: Self::Command,
        tick: &Tick,
        inputs: &Self::Inputs,
    ) -> Result<Decided<Self::Change>, Refusal>;
    /// Moves memory by the changes of one decision. Total.
    fn evolve(&mut self, changes: &[Self::Change]);
    /// The same change for the store.
    fn stored(change: &Self::Change) -> store::Write;
    /// When time alone will call for an act.
    fn next_deadline(&self, tick: &Tick) -> Option<Time>;
    /// Every want there is, for a start.
    fn wants(&self, inputs: &Self::Inputs) -> Vec<Want>;
    /// Looks at what other owners have made durable.
    fn inputs(&self, sources: &Sources) -> Self::Inputs;
    /// Notes whether a status write is on its way to the disk: there is at most one.
    fn note_status_in_flight(inputs: &mut Self::Inputs, in_flight: bool);
    /// Whether nothing is left to own, so that the actor can end.
    fn is_over(&self) -> bool;
}

/// A write as a command, and what the answer is about.
#[derive(Debug)]
pub struct Reading<C> {
    pub command: C,
    /// The object the answer shows.
    pub key: Key,
    /// Of a creation: nobody may have the name.
    pub creates: bool,
    /// The version the client says it has seen.
    pub expected_version: Option<u64>,
    pub warnings: Vec<String>,
}

/// What follows from a command.
#[derive(Debug)]
pub struct Decided<C> {
    pub changes: Vec<C>,
    pub wants: Vec<Want>,
    pub warnings: Vec<String>,
    /// What the answer's object will look like, for a dry run: by its uid.
    pub preview: Option<(Ulid, Value)>,
    /// It writes the owner's own status: no other may until this one is durable.
    pub writes_status: bool,
    /// Other owners read what it changes: they look again once it is visible.
    pub tells_owners: bool,
    /// What is counted once it is durable.
    pub happenings: Vec<Happening>,
}

impl<C> Default for Decided<C> {
    fn default() -> Self {
        Self {
            changes: Vec::new(),
            wants: Vec::new(),
            warnings: Vec::new(),
            preview: None,
            writes_status: false,
            tells_owners: false,
            happenings: Vec::new(),
        }
    }
}

impl<C> Decided<C> {
    /// Whether nothing follows.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        self.changes.is_empty() && self.wants.is_empty()
    }
}

/// Where inputs come from.
#[derive(Clone)]
pub struct Sources {
    pub view: View,
    pub registry: crate::object::Registry,
    pub providers: crate::provider::Providers,
    pub space: Arc<dyn Fn() -> store::Space + Send + Sync>,
    pub metrics: Metrics,
}

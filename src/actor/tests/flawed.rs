//! A pool that panics over leases whose names ask for it, at the three places where it matters.

use crate::actor::core::{Core, Decided, Hold, Reading, Sources};
use crate::actor::doors::{Refusal, Write};
use crate::actor::pool::{PoolCommand, PoolCore};
use crate::machine::{Fact, Want};
use crate::object::{LeasePhase, Tick, Time};
use crate::pool::{Change, Inputs, Lease};
use crate::store::{self, OwnerId, Record};

/// The flawed core.
pub struct FlawedPool(PoolCore);

impl Core for FlawedPool {
    type Command = PoolCommand;
    type Change = Change;
    type Inputs = Inputs;

    fn load(owner: &OwnerId, records: Vec<Record>) -> Self {
        let fatal = |record: &Record| matches!(record, Record::Lease(lease) if lease.metadata.name == "panic-for-ever");
        assert!(!records.iter().any(fatal), "as asked");
        Self(PoolCore::load(owner, records))
    }

    fn read(&self, write: &Write, tick: &Tick, sources: &Sources) -> Result<Reading<PoolCommand>, Refusal> {
        assert_ne!(write.verb.name(), "panic-before-submit", "as asked");
        self.0.read(write, tick, sources)
    }

    fn heard(fact: Fact) -> PoolCommand {
        PoolCore::heard(fact)
    }

    fn pass() -> PoolCommand {
        PoolCore::pass()
    }

    fn decide(&self, command: PoolCommand, tick: &Tick, inputs: &Inputs) -> Result<Decided<Change>, Refusal> {
        self.0.decide(command, tick, inputs)
    }

    /// Each of these changes comes once in a lease's life, so that only the first owner meets it.
    fn evolve(&mut self, changes: &[Change]) {
        let leases = || {
            changes.iter().filter_map(|change| match change {
                Change::PutLease(lease) => Some(lease),
                _ => None,
            })
        };
        let is_new = |lease: &&Lease| lease.phase == LeasePhase::Pending && lease.waits_for.is_none();
        for lease in leases().filter(is_new) {
            let name = lease.metadata.name.as_str();
            assert!(!matches!(name, "panic-in-evolve" | "panic-for-ever"), "as asked");
        }
        self.0.evolve(changes);
        let is_bound = |lease: &Lease| lease.phase == LeasePhase::Starting;
        for lease in leases() {
            assert!(!(is_bound(lease) && lease.metadata.name == "panic-after-submit"), "as asked");
        }
    }

    fn stored(change: &Change) -> store::Write {
        PoolCore::stored(change)
    }

    fn next_deadline(&self, tick: &Tick) -> Option<Time> {
        self.0.next_deadline(tick)
    }

    fn wants(&self, inputs: &Inputs) -> Vec<Want> {
        self.0.wants(inputs)
    }

    fn inputs(&self, sources: &Sources) -> Inputs {
        self.0.inputs(sources)
    }

    fn builds_in_flight(&self) -> u32 {
        self.0.builds_in_flight()
    }

    fn hold(&self, tick: &Tick, inputs: &Inputs) -> Hold {
        self.0.hold(tick, inputs)
    }

    fn note_turns(inputs: &mut Inputs, builds_allowed: u32) {
        PoolCore::note_turns(inputs, builds_allowed);
    }

    fn note_status_in_flight(inputs: &mut Inputs, in_flight: bool) {
        PoolCore::note_status_in_flight(inputs, in_flight);
    }

    fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

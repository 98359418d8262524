//! The core and the model, side by side: every command goes to both, and whatever they then differ
//! in ends the test.

use ringleader_proof::machine::Want;
use ringleader_proof::object::{MemberState, Subject, WorkstationPool};
use ringleader_proof::pool::{
    Act, Change, Command, Decision, Denied, Pool, Room, StatusWrite, happenings, invariant,
};
use serde_json::{Value, json};
use ulid::Ulid;

use crate::compare::{differences, differences_of_want};
use crate::follow::{EVENT_MILLIS, follow};
use crate::ledger::Ledger;
use crate::naive::{Member, Naive, Refusal};
use crate::reach::Reach;
use crate::tally::Tally;
use crate::transition::{Looks, Sync, Transition};
use crate::world::{Around, Clocks, Pending, Queue, Rows, START, Station, Stations};

/// More acts in a row than any of the test's pools could need.
const ACTS_MAX: usize = 400;

pub struct Rig {
    pub pool: Pool,
    pub model: Naive,
    /// What memory holds, as rows.
    rows: Rows,
    /// What is durable, and the model of it.
    disk: Rows,
    disk_model: Naive,
    pending: Queue,
    /// Wants that are durable and have not arrived.
    pub mail: Vec<Want>,
    pub ledger: Ledger,
    pub stations: Stations,
    pub around: Around,
    pub clocks: Clocks,
    pub history: History,
    pub reach: Reach,
    spec: Value,
}

/// What was seen and said before, to be written or said again.
#[derive(Default)]
pub struct History {
    pub facts: Vec<ringleader_proof::machine::Fact>,
    pub leases: std::collections::BTreeMap<Ulid, ringleader_proof::object::WorkstationPoolLease>,
    pub pool: Option<WorkstationPool>,
    pub leases_asked: usize,
}

impl Rig {
    pub fn new(spec: &Value) -> Self {
        let object = json!({
            "metadata": {"name": "agents", "namespace": "dev", "uid": Ulid(7), "generation": 1,
                "creationTimestamp": ringleader_proof::object::Time::from_millis(START)},
            "spec": spec,
        });
        let object: WorkstationPool = serde_json::from_value(object).expect("a pool");
        let rows = Rows::new(Pool::create(object, &Subject::user("owner")));
        let model = Naive::new(&rows.pool);
        Self {
            pool: rows.load(),
            model: model.clone(),
            disk: rows.clone(),
            rows,
            disk_model: model,
            pending: Queue::new(),
            mail: Vec::new(),
            ledger: Ledger::default(),
            stations: Stations::new(),
            around: Around::new(),
            clocks: Clocks::new(),
            history: History::default(),
            reach: Reach::default(),
            spec: spec.clone(),
        }
    }

    pub fn take(&mut self, transition: &Transition) {
        self.happen(&transition.event);
        match transition.looks {
            Looks::All => self.run(),
            Looks::One => _ = self.look(),
            Looks::None => {}
        }
        self.sync(transition.sync);
        if self.pool.has_ended() {
            self.sync(Sync::All);
            let next = Self::new(&self.spec);
            let reach = std::mem::take(&mut self.reach);
            *self = Self { reach, ..next };
        }
        self.check();
    }

    /// What holds between any two steps.
    fn check(&self) {
        for (name, holds) in invariant::ALL {
            if let Err(broken) = holds(&self.pool) {
                panic!("invariant {name} is broken: {broken}");
            }
        }
        assert!(self.rows.load() == self.pool, "a pool read back from its rows is another");
    }

    // ---- one command

    /// Decided, compared, stored, evolved.
    pub fn submit(&mut self, command: Command) -> Result<Decision, Denied> {
        let tick = self.clocks.tick();
        let now = self.around.now(&tick);
        let refusals = self.model.refusals(&command, now);
        let outcome = self.pool.decide(command.clone(), &tick, &self.around.inputs);
        let decision = match outcome {
            Ok(decision) => decision,
            Err(denied) => {
                let refusal = Refusal::from(&denied);
                assert!(
                    refusals.contains(&refusal),
                    "refused for {denied:?}, but {refusals:?} apply: {command:?}"
                );
                self.reach.refusal(refusal);
                return Err(denied);
            }
        };
        assert!(refusals.is_empty(), "taken, though {refusals:?} apply: {command:?}");
        self.check_changes(&decision);
        let told = happenings(&self.pool, &decision);
        let before = Tally::of(&self.model);
        let now = self.around.now(&tick);
        self.model.warned.clear();
        match &command {
            Command::Pass => follow(&mut self.model, &self.pool, &decision, now),
            command => self.model.take(command, now),
        }
        let touched: Vec<Ulid> = decision.changes.iter().filter_map(member_of).collect();
        self.model.conclude(now, &touched);
        self.rows.apply(&decision.changes);
        self.pool.evolve_all(&decision.changes);
        self.check_against_model(&command, &decision);
        Tally::of(&self.model).check(before, &told);
        self.reach.step(&decision, &self.model);
        self.use_up(&decision);
        if !decision.changes.is_empty() {
            self.clocks.use_entropy();
            self.pending.push_back(Pending { decision: decision.clone(), model: self.model.clone() });
        }
        Ok(decision)
    }

    fn check_against_model(&self, command: &Command, decision: &Decision) {
        let found = differences(&self.pool, &self.model);
        assert!(
            found.is_empty(),
            "the core and the model differ in {found:?} after {command:?}: {:?} {:?} model: {:?}",
            decision.act,
            decision.changes,
            self.model,
        );
        let mut warned: Vec<String> = decision
            .changes
            .iter()
            .filter_map(|change| match change {
                Change::PutEvent(event) => Some(event.reason.clone()),
                _ => None,
            })
            .collect();
        warned.sort();
        assert_eq!(warned, self.model.warned, "other warnings than the model's, after {command:?}");
        for want in &decision.wants {
            let member = self.model.get_member(want.member_uid).expect("something is wanted of a member");
            let name = &self.pool.member(want.member_uid).expect("a member").metadata.name;
            let found = differences_of_want(want, member, name);
            assert!(found.is_empty(), "a want differs from the model's in {found:?}: {want:?} {member:?}");
        }
    }

    /// A row that is as it was is not written (W8).
    fn check_changes(&self, decision: &Decision) {
        assert!(decision.act != Act::Nothing || decision.changes.is_empty(), "nothing was done, and written");
        for change in &decision.changes {
            let idle = match change {
                Change::PutPool(row) => row == self.pool.row(),
                Change::PutLease(lease) => self.pool.lease(lease.uid()) == Some(lease),
                Change::PutMember(member) => self.pool.member(member.uid()) == Some(member),
                _ => false,
            };
            assert!(!idle, "a row was written as it was: {change:?}");
        }
    }

    /// What the shell takes off its inputs after an act.
    fn use_up(&mut self, decision: &Decision) {
        let inputs = &mut self.around.inputs;
        match decision.act {
            Act::Build => {
                inputs.builds_allowed = inputs.builds_allowed.saturating_sub(1);
                if let Room::Limited { more, .. } = &mut inputs.room {
                    *more -= 1;
                }
                let live = self.model.live().count();
                assert!(live <= self.model.spec.size.max as usize, "W2: built above size.max");
            }
            Act::WriteStatus => inputs.status_write = StatusWrite::InFlight,
            _ => {}
        }
    }

    // ---- passes

    /// One look.
    pub fn look(&mut self) -> Act {
        self.submit(Command::Pass).expect("a pass is never refused").act
    }

    /// Looks until nothing is due.
    pub fn run(&mut self) {
        let mut acts = Vec::new();
        loop {
            match self.look() {
                Act::Nothing => break,
                act => acts.push(act),
            }
            assert!(acts.len() < ACTS_MAX, "the pool never comes to rest: {acts:?}");
        }
        self.check_rest();
    }

    /// When nothing is due, nothing falls due before the moment the pool names, and its status is
    /// true.
    fn check_rest(&mut self) {
        if self.pool.has_ended() {
            return;
        }
        let tick = self.clocks.tick();
        let deadline = self.pool.next_deadline(&tick);
        assert!(
            deadline.is_none_or(|deadline| deadline > tick.steady),
            "the deadline has passed: {deadline:?}"
        );
        let until = deadline.map_or(1_000_000_000_000, |deadline| deadline.millis_since(tick.steady) - 1);
        let mut later = self.around.now(&tick);
        later.wall = later.wall.plus_millis(until);
        later.steady = later.steady.plus_millis(until);
        let missed = self.model.due(later);
        assert!(missed.is_empty(), "{missed:?} fall due before {deadline:?}");
        let forgotten = self.pool.events().find(|event| later.wall >= event.last.plus_millis(EVENT_MILLIS));
        assert!(forgotten.is_none(), "{forgotten:?} is to go before {deadline:?}");
        if self.around.inputs.status_write == StatusWrite::Idle && !self.model.is_gone() {
            let untrue = self.model.untrue(&self.pool.row().status, self.around.now(&tick));
            assert!(
                untrue.is_empty(),
                "the status says what is not so: {untrue:?} {:?}",
                self.pool.row().status
            );
        }
    }

    // ---- the disk and the wires

    pub fn sync(&mut self, sync: Sync) {
        match sync {
            Sync::All => {
                while self.persist() {}
                while !self.mail.is_empty() {
                    self.deliver(0);
                }
                self.check_delivered();
            }
            Sync::Durable => while self.persist() {},
            Sync::Next => _ = self.persist(),
            Sync::None => {}
        }
    }

    /// The next submission becomes durable, and with that its wants are sent.
    fn persist(&mut self) -> bool {
        let Some(Pending { decision, model }) = self.pending.pop_front() else { return false };
        self.disk.apply(&decision.changes);
        self.disk_model = model;
        self.ledger.durable(&decision);
        if decision.act == Act::WriteStatus {
            self.around.inputs.status_write = StatusWrite::Idle;
        }
        self.mail.extend(decision.wants);
        true
    }

    /// A want arrives; an older one that arrives after a newer is nothing.
    pub fn deliver(&mut self, at: usize) {
        if self.mail.is_empty() {
            return;
        }
        let want = self.mail.remove(at % self.mail.len());
        let station = self.stations.entry(want.member_uid).or_default();
        if want.revision > station.revision() {
            station.want = Some(want);
        }
    }

    /// Every machine has been told what is wanted of it now.
    fn check_delivered(&self) {
        // Where other devices are to reach it, the next look orders that.
        let abreast = |member: &&Member| member.is_gone() || member.wish.devices == self.around.devices;
        for member in self.model.live().filter(abreast) {
            let told = self.stations.get(&member.uid).map_or(0, Station::revision);
            assert_eq!(told, member.wish.revision, "a machine was not told what is wanted of it: {member:?}");
        }
    }

    /// The daemon dies, with everything that is not durable and every want that is on its way, and
    /// comes back.
    pub fn crash(&mut self) {
        self.reach.crash(self.pending.len(), self.mail.len());
        self.pending.clear();
        self.mail.clear();
        self.rows = self.disk.clone();
        self.pool = self.rows.load();
        self.model = self.disk_model.clone();
        self.around.inputs.status_write = StatusWrite::Idle;
        for station in self.stations.values_mut() {
            station.want = None;
            station.fulfilled = None;
        }
        let wants = self.pool.wants(&self.around.inputs);
        for want in &wants {
            self.ledger.again(want);
        }
        for member in self.model.live() {
            let said = wants.iter().any(|want| want.member_uid == member.uid);
            let outdated = !member.is_gone() && member.wish.devices != self.around.devices;
            assert!(said || outdated, "a restart forgets a machine: {member:?}");
        }
        self.mail = wants;
    }

    /// Machines do as they are told until all is quiet.
    pub fn settle(&mut self) {
        for _ in 0..ACTS_MAX {
            self.run();
            self.sync(Sync::All);
            let next = self.stations.iter().find(|(uid, station)| {
                station.want.is_some()
                    && station.fulfilled != Some(station.revision())
                    && self.model.get_member(**uid).is_some_and(|member| !member.over)
            });
            match next.map(|(uid, _)| *uid) {
                Some(uid) => self.obey(uid),
                // The last act may have been a status, which waited for one in flight.
                None if self.look() == Act::Nothing => return,
                None => {}
            }
        }
        panic!("machines and pool never come to rest: {:?}", self.model);
    }

    pub fn obey(&mut self, uid: Ulid) {
        let recycles = self.around.recycles;
        let station = self.stations.entry(uid).or_default();
        if let Some(fact) = station.obey(&mut self.clocks, recycles) {
            self.hear(fact);
        }
    }

    pub fn hear(&mut self, fact: ringleader_proof::machine::Fact) {
        if self.history.facts.len() >= 16 {
            self.history.facts.remove(0);
        }
        self.history.facts.push(fact.clone());
        self.submit(Command::Fact(fact)).expect("a fact is never refused");
    }

    pub fn count(&self, state: MemberState) -> usize {
        self.model.live().filter(|member| member.state == state).count()
    }
}

fn member_of(change: &Change) -> Option<Ulid> {
    match change {
        Change::PutMember(member) => Some(member.uid()),
        _ => None,
    }
}

//! One turn of the pool's owner, as its actor takes it: a command is decided and written, then passes
//! until nothing is due; each act is a submission of its own, and its wants go out once it is written.
//! A turn may be cut off after any of its submissions.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ulid::Ulid;

use crate::machine::{Box_, Order};
use crate::model::{Cut, Lending};
use crate::state::{Broken, State, Word};
use crate::{NOW, rules};
use ringleader_proof::machine::Want;
use ringleader_proof::object::Tick;
use ringleader_proof::pool::*;

/// More acts than this in one turn, and the pool does not come to rest.
const ACTS_MAX: u32 = 60;

pub struct Turn<'a> {
    pub model: &'a Lending,
    /// In memory.
    pub pool: Pool,
    pub machines: BTreeMap<Ulid, Box_>,
    /// What the pool is hearing.
    pub hearing: Option<Word>,
    /// The command that is carried out creates a lease.
    pub creates: bool,
    cut: Option<Cut>,
    pub submissions: u8,
    pub up: bool,
    pub broken: Option<Broken>,
}

impl<'a> Turn<'a> {
    pub fn new(model: &'a Lending, state: &State, cut: Option<Cut>) -> Self {
        let pool = state.load();
        Self {
            model,
            pool,
            machines: state.machines.clone(),
            hearing: None,
            creates: false,
            cut,
            submissions: 0,
            up: true,
            broken: None,
        }
    }

    /// The command and what follows from it. None when the command is refused, or the turn was over
    /// before it was cut.
    pub fn take(&mut self, command: Option<Command>) -> Option<()> {
        let taken = catch_unwind(AssertUnwindSafe(|| self.run(command)));
        match taken {
            Ok(taken) => taken.filter(|()| self.cut.is_none() || !self.up || self.broken.is_some()),
            Err(panic) => {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).into()));
                self.break_rule("nothing panics", said.unwrap_or_default());
                Some(())
            }
        }
    }

    fn run(&mut self, command: Option<Command>) -> Option<()> {
        if let Some(command) = command {
            self.creates = matches!(command, Command::CreateLease { .. });
            self.carry_out(command)?;
            self.creates = false;
        }
        for _ in 0..ACTS_MAX {
            if !self.up || self.broken.is_some() || self.pool.has_ended() {
                return Some(());
            }
            if self.carry_out(Command::Pass)? == Act::Nothing {
                self.rest();
                return Some(());
            }
        }
        self.break_rule("the pool comes to rest", String::new());
        Some(())
    }

    fn carry_out(&mut self, command: Command) -> Option<Act> {
        // New ids differ from one act to the next and come after all that are there.
        let tick = Tick { wall: NOW, steady: NOW, entropy: u128::from(self.submissions) + 1 };
        let decision = self.pool.decide(command, &tick, &self.model.inputs).ok()?;
        if let Err(broken) = rules::step(self, &decision) {
            self.broken = Some(broken);
            return Some(decision.act);
        }
        for change in &decision.changes {
            self.pool.evolve(change);
        }
        if decision.changes.is_empty() {
            return Some(decision.act);
        }
        if let Err(broken) = rules::state(&self.pool, &self.model.inputs) {
            self.broken = Some(broken);
            return Some(decision.act);
        }
        self.submissions += 1;
        let cut = self.cut.filter(|cut| cut.after == self.submissions);
        if cut.is_none_or(|cut| cut.wants_went_out) {
            for want in &decision.wants {
                self.deliver(want);
            }
        }
        if cut.is_some() {
            self.up = false;
        }
        Some(decision.act)
    }

    /// The newest want counts, and one that was outdated on its way says nothing.
    pub fn deliver(&mut self, want: &Want) {
        let machine = self.machines.entry(want.member_uid).or_insert_with(|| Box_::new(want));
        machine.order = Order::of(want);
    }

    /// A restart: every want is sent again, then the pool looks.
    pub fn restart(&mut self) -> Option<()> {
        for want in self.pool.wants(&self.model.inputs) {
            if self.machines.get(&want.member_uid).is_some_and(|it| it.order != Order::of(&want)) {
                self.model.saw(crate::model::Witness::WantMadeGood);
            }
            self.deliver(&want);
        }
        self.take(None)
    }

    /// Nothing is due: what was written is what is in memory, every machine has its newest want, and
    /// the timer is set if there is anything to wait for.
    fn rest(&mut self) {
        if self.submissions == 0 {
            return;
        }
        let pool = &self.pool;
        let (leases, members) = (pool.leases().cloned(), pool.members().cloned());
        let usage = pool.usage().cloned().map(Arc::new);
        let read = Pool::load(pool.row().clone(), leases, members, pool.events().cloned()).with_usage(usage);
        if read != *pool {
            return self.break_rule("a pool read back is the pool in memory", String::new());
        }
        if let Err(broken) = rules::rest(self) {
            self.broken = Some(broken);
        }
    }

    pub fn break_rule(&mut self, rule: &'static str, what: String) {
        self.broken = Some(Broken { rule, what });
    }
}

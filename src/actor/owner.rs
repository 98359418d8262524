//! The one shell of every owner (pool, fleet, catalog): decide, submit, evolve, arm the timer.
//!
//! A handler has no await between decide and evolve. What a decision means for others travels as
//! effects of its submission, so that nothing is said before it is written, and a panic after the
//! submit loses nothing. After every command the shell repeats the pass until it is quiet.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message, Recipient, SpawnHandle};
use tokio::sync::oneshot;
use ulid::Ulid;

use super::asked::{Asked, SharedReply};
use super::core::{Core, Decided, Reading, Sources};
use super::directory::{Directory, OwnerDoor};
use super::doors::{Refusal, Verb, Write, Written};
use super::placement;
use crate::clock;
use crate::machine::Fact;
use crate::object::{MODIFIED, Tick, other_version};
use crate::store::{Conflict, Effect, OwnerId, Store, Submission};
use crate::view::{Key, Resource};

/// More single acts than this in one pass, and the rest waits for the next turn of the mailbox.
const ACTS_PER_TURN_MAX: usize = 4096;
/// Timers never wait longer than this; the clock may have been set meanwhile.
const TIMER_MAX: Duration = Duration::from_hours(24);

/// A write as a command, and what it leads to.
type Judged<C> = (Reading<<C as Core>::Command>, Decided<<C as Core>::Change>);

/// Where the answer to a write goes.
pub type Reply = oneshot::Sender<Result<Written, Refusal>>;

/// A write from the front end.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Ask {
    pub write: Write,
    pub reply: Reply,
}

/// A fact from a member actor.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Heard(pub Fact);

/// Objects of other owners have changed.
#[derive(Message)]
#[rtype(result = "()")]
pub struct InputsChanged;

/// The member's actor died: its want must be sent again.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Orphaned(pub Ulid);

/// The status on its way to the disk has arrived.
#[derive(Message)]
#[rtype(result = "()")]
struct StatusWritten;

/// An owner is up and reached through the directory: what waited for it can go there.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Up(pub OwnerId);

/// Go on with the pass.
#[derive(Message)]
#[rtype(result = "()")]
struct Continue;

/// Nothing is left to own.
#[derive(Message)]
#[rtype(result = "()")]
struct End;

/// An owner: a pure core and the way to the disk.
pub struct Owner<C: Core> {
    core: C,
    id: OwnerId,
    incarnation: u64,
    store: Store,
    directory: Directory,
    sources: Sources,
    up: Recipient<Up>,
    inputs: C::Inputs,
    status_in_flight: bool,
    timer: Option<SpawnHandle>,
    ending: bool,
}

impl<C: Core> Owner<C> {
    /// The owner `id`, from its records, in the incarnation that the store began for it.
    pub fn new(
        id: OwnerId,
        incarnation: u64,
        records: Vec<crate::store::Record>,
        store: Store,
        directory: Directory,
        sources: Sources,
        up: Recipient<Up>,
    ) -> Self {
        let core = C::load(&id, records);
        let inputs = core.inputs(&sources);
        Self {
            core,
            id,
            incarnation,
            store,
            directory,
            sources,
            up,
            inputs,
            status_in_flight: false,
            timer: None,
            ending: false,
        }
    }

    fn answer(&mut self, write: &Write, reply: Reply, ctx: &mut Context<Self>) {
        let tick = clock::tick();
        // What fell due before the write came in happens before it.
        self.pass(&tick, ctx);
        match self.judge(write, &tick) {
            Err(refusal) => {
                let _ = reply.send(Err(refusal));
            }
            Ok((reading, decided)) if write.dry_run => {
                let _ = reply.send(self.rehearse(reading, decided));
            }
            Ok((reading, decided)) => {
                let asked = Asked::new(&reading, write, reply);
                self.carry_out(decided, Some(asked), ctx);
                // A new pool has an owner now, whose keys count.
                self.look_again();
                self.pass(&tick, ctx);
            }
        }
        self.settle(ctx);
    }

    fn judge(&self, write: &Write, tick: &Tick) -> Result<Judged<C>, Refusal> {
        let Reading { command, key, creates, expected_version, warnings } = self
            .core
            .read(write, tick, &self.sources)
            .map_err(|refusal| placement::name_images(refusal, &self.sources.providers))?;
        if let Some(expected) = expected_version {
            self.check_version(&key, expected, &write.verb)?;
        }
        let decided = self.core.decide(command, tick, &self.inputs)?;
        let reading = Reading { command: C::pass(), key, creates, expected_version, warnings };
        Ok((reading, decided))
    }

    /// Early, so that a stale client hears of the conflict and not of what its old copy breaks.
    fn check_version(&self, key: &Key, expected: u64, verb: &Verb) -> Result<(), Refusal> {
        let Some(now) = self.sources.view.get(key).filter(|now| now.version > expected) else {
            return Ok(());
        };
        Err(Refusal::Conflict(match verb {
            Verb::Delete { .. } => other_version(expected, now.version),
            Verb::Create { .. } | Verb::Update { .. } => MODIFIED.into(),
        }))
    }

    /// The answer to a dry run: what would be, with nothing written.
    fn rehearse(
        &self,
        reading: Reading<C::Command>,
        decided: Decided<C::Change>,
    ) -> Result<Written, Refusal> {
        let now = self.sources.view.get(&reading.key);
        if reading.creates && now.is_some() {
            return Err(Refusal::AlreadyExists);
        }
        let mut warnings = reading.warnings;
        warnings.extend(decided.warnings);
        let resource = match (decided.preview, now) {
            (Some((uid, value)), now) => {
                let version = now.map_or(0, |now| now.version);
                Arc::new(Resource { key: reading.key, uid, version, value })
            }
            (None, Some(now)) => now,
            (None, None) => return Err(Refusal::NotFound),
        };
        Ok(Written { resource, gone: false, warnings })
    }

    fn tell(&mut self, command: C::Command, ctx: &mut Context<Self>) {
        let tick = clock::tick();
        match self.core.decide(command, &tick, &self.inputs) {
            Ok(decided) => self.carry_out(decided, None, ctx),
            Err(refusal) => tracing::debug!(owner = %self.id, %refusal, "not taken"),
        }
        self.pass(&tick, ctx);
        self.settle(ctx);
    }

    /// Derives every act that the present state calls for, one at a time, until there is none.
    fn pass(&mut self, tick: &Tick, ctx: &mut Context<Self>) {
        for act in 0..ACTS_PER_TURN_MAX {
            // Each act makes ids of its own.
            let tick = Tick { entropy: clock::entropy(), ..*tick };
            match self.core.decide(C::pass(), &tick, &self.inputs) {
                Ok(decided) if decided.is_nothing() => return,
                Ok(decided) => self.carry_out(decided, None, ctx),
                Err(refusal) => {
                    tracing::error!(owner = %self.id, %refusal, act, "the pass was refused");
                    return;
                }
            }
        }
        ctx.notify(Continue);
    }

    /// Submit, then evolve, with nothing in between.
    fn carry_out(&mut self, decided: Decided<C::Change>, asked: Option<Asked>, ctx: &mut Context<Self>) {
        let mut effects: Vec<Effect> = Vec::new();
        if decided.writes_status {
            self.note_status(true);
            let addr = ctx.address();
            effects.push(Box::new(move |_| addr.do_send(StatusWritten)));
        }
        if !decided.happenings.is_empty() {
            let (meter, happenings) = (self.sources.metrics.pools.clone(), decided.happenings);
            effects.push(Box::new(move |_| meter.count(&happenings)));
        }
        let (preconditions, reply) = match asked {
            Some(asked) => {
                let reply = asked.reply.clone();
                let preconditions = asked.preconditions.clone();
                effects.push(asked.effect(decided.warnings, self.sources.view.clone()));
                (preconditions, Some(reply))
            }
            None => (Vec::new(), None),
        };
        if decided.tells_owners {
            let directory = self.directory.clone();
            effects.push(Box::new(move |_| directory.inputs_changed()));
        }
        if !decided.wants.is_empty() {
            let (directory, owner, wants) = (self.directory.clone(), self.id.clone(), decided.wants);
            effects.push(Box::new(move |_| {
                for want in wants {
                    directory.deliver(&owner, want);
                }
            }));
        }
        let submission = Submission {
            owner: self.id.clone(),
            incarnation: self.incarnation,
            preconditions,
            writes: decided.changes.iter().map(C::stored).collect(),
            effects,
        };
        match self.store.submit(submission) {
            Ok(_) => self.core.evolve(&decided.changes),
            Err(conflict) => self.not_taken(&conflict, reply, ctx),
        }
    }

    fn not_taken(&mut self, conflict: &Conflict, reply: Option<SharedReply>, ctx: &mut Context<Self>) {
        let refusal = match conflict {
            Conflict::Exists(_) => Refusal::AlreadyExists,
            Conflict::Changed { found: None, .. } => Refusal::NotFound,
            Conflict::Changed { found: Some(_), .. } => Refusal::Conflict(MODIFIED.into()),
            Conflict::TooLarge { .. } => Refusal::BadRequest(conflict.to_string()),
            Conflict::Superseded { .. } | Conflict::NotYours(_) | Conflict::Closed => {
                // A newer incarnation has taken over, or the daemon is going down.
                tracing::warn!(owner = %self.id, %conflict, "an owner may no longer write and stops");
                ctx.stop();
                Refusal::Unavailable("the daemon is restarting this object's owner: try again".into())
            }
        };
        if let Some(reply) = reply {
            reply.send(Err(refusal));
        } else {
            // A name that is taken, most likely: the next act of the pass tries another.
            tracing::warn!(owner = %self.id, %conflict, "a decision was not taken");
        }
    }

    fn look_again(&mut self) {
        self.inputs = self.core.inputs(&self.sources);
        C::note_status_in_flight(&mut self.inputs, self.status_in_flight);
    }

    fn note_status(&mut self, in_flight: bool) {
        self.status_in_flight = in_flight;
        C::note_status_in_flight(&mut self.inputs, in_flight);
    }

    /// After everything: the timer of the next deadline, or the end of an owner with nothing left.
    fn settle(&mut self, ctx: &mut Context<Self>) {
        if self.core.is_over() {
            // What has come in already is still answered: the end stands in line behind it.
            if !std::mem::replace(&mut self.ending, true) {
                self.directory.forget_owner(&self.id);
                ctx.address().do_send(End);
            }
        } else {
            self.arm(ctx);
        }
    }

    fn arm(&mut self, ctx: &mut Context<Self>) {
        if let Some(timer) = self.timer.take() {
            ctx.cancel_future(timer);
        }
        let tick = clock::tick();
        if let Some(deadline) = self.core.next_deadline(&tick) {
            let millis = deadline.millis_since(tick.steady).max(0);
            let wait = Duration::from_millis(u64::try_from(millis).unwrap_or(0)).min(TIMER_MAX);
            self.timer = Some(ctx.run_later(wait, |owner, ctx| {
                let tick = clock::tick();
                owner.pass(&tick, ctx);
                owner.settle(ctx);
            }));
        }
    }
}

impl<C: Core> Actor for Owner<C> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let addr = ctx.address();
        let door = OwnerDoor {
            ask: addr.clone().recipient(),
            heard: addr.clone().recipient(),
            inputs: addr.clone().recipient(),
            orphaned: addr.recipient(),
        };
        self.directory.enter_owner(self.id.clone(), door);
        // Effects are never stored: every start derives all wants again.
        let wants = self.core.wants(&self.inputs);
        self.carry_out(Decided { wants, ..Decided::default() }, None, ctx);
        self.pass(&clock::tick(), ctx);
        self.arm(ctx);
        self.up.do_send(Up(self.id.clone()));
    }
}

impl<C: Core> Handler<Ask> for Owner<C> {
    type Result = ();

    fn handle(&mut self, Ask { write, reply }: Ask, ctx: &mut Self::Context) {
        self.answer(&write, reply, ctx);
    }
}

impl<C: Core> Handler<Heard> for Owner<C> {
    type Result = ();

    fn handle(&mut self, Heard(fact): Heard, ctx: &mut Self::Context) {
        self.tell(C::heard(fact), ctx);
    }
}

impl<C: Core> Handler<InputsChanged> for Owner<C> {
    type Result = ();

    fn handle(&mut self, _: InputsChanged, ctx: &mut Self::Context) {
        self.look_again();
        self.pass(&clock::tick(), ctx);
        self.settle(ctx);
    }
}

impl<C: Core> Handler<Orphaned> for Owner<C> {
    type Result = ();

    fn handle(&mut self, Orphaned(member_uid): Orphaned, ctx: &mut Self::Context) {
        let wants =
            self.core.wants(&self.inputs).into_iter().filter(|want| want.member_uid == member_uid).collect();
        self.carry_out(Decided { wants, ..Decided::default() }, None, ctx);
    }
}

impl<C: Core> Handler<StatusWritten> for Owner<C> {
    type Result = ();

    fn handle(&mut self, _: StatusWritten, ctx: &mut Self::Context) {
        self.note_status(false);
        self.pass(&clock::tick(), ctx);
        self.settle(ctx);
    }
}

impl<C: Core> Handler<End> for Owner<C> {
    type Result = ();

    fn handle(&mut self, _: End, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

impl<C: Core> Handler<Continue> for Owner<C> {
    type Result = ();

    fn handle(&mut self, _: Continue, ctx: &mut Self::Context) {
        self.pass(&clock::tick(), ctx);
        self.settle(ctx);
    }
}

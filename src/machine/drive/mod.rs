//! Which act brings one machine nearer to its want. Pure: the member actor performs the acts and
//! tells what became of them.
//!
//! ```text
//!             Want, results, ends, link news               Act: Inspect Create Start Stop Delete
//!   owner ──────────────────────────────────► Drive ─────►      Connect Apply         ──► provider,
//!   owner ◄──────────── Fact (when it changed) ─┘                                         agent
//! ```
//!
//! At most one provider call and one apply are under way. Only the newest want counts: a call that
//! an older want asked for is let finish, and the next one starts from what is then true. A machine
//! is made only while it is being built (`build_by`): one that was built and is not there any more
//! is lost, and saying so is its owner's cue; it is never made anew behind the owner's back.

mod backoff;

use ulid::Ulid;

use backoff::Backoff;

use super::{
    AgentInfo, Fact, Failure, Machine, Power, RecycleOrder, RecycleReport, RecycleStage, Running, Want,
};
use crate::object::{Tick, Time};

/// The first wait after a failed call; it doubles up to [`RETRY_MAX_MS`].
const RETRY_FIRST_MS: u64 = 250;
/// The longest wait after a failed call.
const RETRY_MAX_MS: u64 = 30_000;
/// The first wait after the agent could not be reached.
const RECONNECT_FIRST_MS: u64 = 20;
/// The longest wait after the agent could not be reached.
const RECONNECT_MAX_MS: u64 = 2_000;

/// The first wait before an order that the agent could not carry out is sent again.
const REAPPLY_FIRST_MS: u64 = 1_000;
/// The longest wait before that.
const REAPPLY_MAX_MS: u64 = 60_000;

/// The login user of a machine that declares none.
const LOGIN_USER: &str = "dev";

/// What the member actor should do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Provider(Call),
    /// Open the control stream to the agent and shake hands.
    Connect,
    /// Send the newest want's keys and setup.
    Apply {
        revision: u64,
    },
}

/// One provider call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Inspect,
    Create,
    Start,
    Stop,
    Delete,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    Want(Box<Want>),
    Inspected(Seen),
    /// The call in flight (any but Inspect) has succeeded.
    Done(Call),
    /// The call in flight has failed.
    CallFailed(Call, CallError),
    /// The running machine ended by itself.
    Ended,
    LinkUp {
        agent: AgentInfo,
    },
    /// The control stream broke or could not be opened.
    LinkDown {
        why: String,
    },
    Applied(Applied),
    Sessions(u32),
    /// Time has passed.
    Timer,
}

/// What became of an order to the agent. Keys and setup succeed and fail apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub revision: u64,
    pub keys: Result<(), Failure>,
    pub setup: Result<(), Failure>,
    pub remarks: Vec<String>,
}

/// What the provider saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Absent,
    Running { boot_id: Ulid, started_at: Time },
    Stopped,
    Broken { why: String },
}

/// Why a call failed, as far as it matters for what comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// No room, or the provider cannot serve now: no fault of the template.
    Unplaceable(String),
    /// It will not work by trying again.
    Failed(String),
}

/// What is known of one machine, and what is wanted of it.
#[derive(Debug)]
pub struct Drive {
    member_uid: Ulid,
    want: Option<Want>,
    /// None until the provider was asked once.
    seen: Option<Seen>,
    calling: Option<Call>,
    link: Link,
    /// As it introduced itself in this boot.
    agent: Option<AgentInfo>,
    /// What became of the newest order of this boot.
    applied: Option<Applied>,
    applying: Option<u64>,
    /// Whether it was configured once: from then on it is no build any more, whatever the newest
    /// want still says of one.
    built: bool,
    sessions: u32,
    failure: Option<Failure>,
    unplaceable: Option<String>,
    /// What the last failed call said, until one succeeds.
    last_error: String,
    retry: Backoff,
    reconnect: Backoff,
    reapply: Backoff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Down,
    Connecting,
    Up,
}

impl Drive {
    /// A machine nothing is known of yet.
    #[must_use]
    pub const fn new(member_uid: Ulid) -> Self {
        Self {
            member_uid,
            want: None,
            seen: None,
            calling: None,
            link: Link::Down,
            agent: None,
            applied: None,
            applying: None,
            built: false,
            sessions: 0,
            failure: None,
            unplaceable: None,
            last_error: String::new(),
            retry: Backoff::new(RETRY_FIRST_MS, RETRY_MAX_MS),
            reconnect: Backoff::new(RECONNECT_FIRST_MS, RECONNECT_MAX_MS),
            reapply: Backoff::new(REAPPLY_FIRST_MS, REAPPLY_MAX_MS),
        }
    }

    /// The machine this drives.
    #[must_use]
    pub const fn member_uid(&self) -> Ulid {
        self.member_uid
    }

    /// The newest want.
    #[must_use]
    pub const fn want(&self) -> Option<&Want> {
        self.want.as_ref()
    }

    /// Whether the machine is wanted gone and is gone: the member actor's work is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.wants_gone() && self.seen == Some(Seen::Absent) && self.calling.is_none()
    }

    /// Takes in what happened.
    pub fn handle(&mut self, event: Event, tick: &Tick) {
        let now_ms = tick.steady_ms();
        match event {
            Event::Want(want) => self.take_want(*want),
            Event::Inspected(seen) => {
                self.calling = None;
                self.see(seen);
            }
            Event::Done(call) => self.done(call),
            Event::CallFailed(call, error) => self.call_failed(call, error, now_ms),
            Event::Ended => {
                // Whether the disk survived is for the provider to say.
                self.seen = None;
                self.forget_boot();
            }
            Event::LinkUp { agent } => {
                self.link = Link::Up;
                self.agent = Some(agent);
                self.reconnect.reset();
            }
            Event::LinkDown { .. } => {
                self.link = Link::Down;
                self.applying = None;
                self.reconnect.failed(now_ms);
            }
            Event::Applied(applied) => {
                if self.applying == Some(applied.revision) {
                    self.applying = None;
                }
                self.built |= applied.keys.is_ok() && applied.setup.is_ok();
                if applied.setup.is_ok() {
                    self.note_login_user();
                }
                if has_failed(&applied) {
                    self.reapply.failed(now_ms);
                } else {
                    self.reapply.reset();
                }
                self.applied = Some(applied);
                self.judge_build();
            }
            Event::Sessions(open) => self.sessions = open,
            Event::Timer => {}
        }
        self.judge_deadline(tick.steady);
    }

    /// The next act, if one can start now. Call until it answers None.
    pub fn next(&mut self, tick: &Tick) -> Option<Act> {
        let now_ms = tick.steady_ms();
        if self.calling.is_none()
            && self.retry.open(now_ms)
            && let Some(call) = self.wanted_call()
        {
            self.calling = Some(call);
            return Some(Act::Provider(call));
        }
        self.link_act(now_ms)
    }

    /// The whole state as its owner should know it.
    #[must_use]
    pub fn fact(&self) -> Fact {
        Fact {
            member_uid: self.member_uid,
            observed_revision: self.want.as_ref().map_or(0, |want| want.revision),
            machine: self.machine(),
            recycle: self.want.as_ref().and_then(|want| want.recycle.as_ref()).map(refused),
        }
    }

    /// Milliseconds of the steady clock after which [`Event::Timer`] should be sent, if time
    /// alone changes anything.
    #[must_use]
    pub fn next_deadline_ms(&self, tick: &Tick) -> Option<u64> {
        let retry = (self.calling.is_none() && self.wanted_call().is_some()).then_some(self.retry.until_ms());
        let reconnect =
            (matches!(self.link, Link::Down) && self.wants_link()).then_some(self.reconnect.until_ms());
        let build = self.building_until().filter(|_| self.unplaceable.is_none()).map(|by| {
            let left = u64::try_from(by.millis_since(tick.steady)).unwrap_or(0);
            tick.steady_ms().saturating_add(left)
        });
        let failed = self.applied.as_ref().is_some_and(has_failed) && self.failure.is_none();
        let reapply = (failed && self.wants_link() && self.link == Link::Up && self.applying.is_none())
            .then_some(self.reapply.until_ms());
        [retry, reconnect, reapply, build].into_iter().flatten().min()
    }

    fn take_want(&mut self, want: Want) {
        if self.want.as_ref().is_some_and(|have| have.revision > want.revision || have.gone) {
            return;
        }
        if want.gone {
            // Nothing that went wrong before matters for the removal.
            self.retry.reset();
        }
        self.want = Some(want);
    }

    fn see(&mut self, seen: Seen) {
        let same_boot = match (&self.seen, &seen) {
            (Some(Seen::Running { boot_id: old, .. }), Seen::Running { boot_id: new, .. }) => old == new,
            (None | Some(Seen::Absent | Seen::Running { .. } | Seen::Stopped | Seen::Broken { .. }), _) => {
                false
            }
        };
        if !same_boot {
            self.forget_boot();
        }
        if let Seen::Broken { why } = &seen
            && self.building_until().is_some()
        {
            self.failure = Some(Failure { reason: "MachineBroken".into(), message: why.clone() });
        }
        self.seen = Some(seen);
    }

    fn forget_boot(&mut self) {
        self.link = Link::Down;
        self.agent = None;
        self.reconnect.reset();
        self.reapply.reset();
        self.applied = None;
        self.applying = None;
        self.sessions = 0;
    }

    fn done(&mut self, call: Call) {
        self.calling = None;
        self.retry.reset();
        self.unplaceable = None;
        self.last_error.clear();
        match call {
            Call::Inspect => {}
            // What it is now, boot id included, the provider says.
            Call::Create | Call::Start => self.seen = None,
            Call::Stop => self.see(Seen::Stopped),
            Call::Delete => self.see(Seen::Absent),
        }
    }

    fn call_failed(&mut self, call: Call, error: CallError, now_ms: u64) {
        self.calling = None;
        self.retry.failed(now_ms);
        match (call, error) {
            (Call::Create | Call::Start, CallError::Unplaceable(why)) => self.unplaceable = Some(why),
            (Call::Create, CallError::Failed(why)) => {
                self.failure = Some(Failure { reason: "CreateFailed".into(), message: why });
            }
            (Call::Start, CallError::Failed(why)) if self.building_until().is_some() => {
                self.failure = Some(Failure { reason: "StartFailed".into(), message: why });
            }
            // Asked again after the wait; the machine's state is looked at afresh.
            (
                Call::Inspect | Call::Start | Call::Stop | Call::Delete,
                CallError::Failed(why) | CallError::Unplaceable(why),
            ) => {
                self.unplaceable = None;
                if call != Call::Inspect {
                    self.seen = None;
                }
                self.last_error = why;
            }
        }
    }

    /// On a new machine the agent introduces itself before there is a login user.
    fn note_login_user(&mut self) {
        if let (Some(agent), Some(want)) = (&mut self.agent, &self.want) {
            agent.login_user = want.setup.identity.user.clone().unwrap_or_else(|| LOGIN_USER.into());
        }
    }

    /// A first configuration that failed, fails the build.
    fn judge_build(&mut self) {
        if self.building_until().is_none() {
            return;
        }
        if let Some(Applied { keys, setup, .. }) = &self.applied
            && let Some(failure) = setup.as_ref().err().or(keys.as_ref().err())
        {
            self.failure = Some(failure.clone());
        }
    }

    /// A build has until its deadline (rule F1).
    fn judge_deadline(&mut self, now: Time) {
        // Waiting for room is no build: its owner holds and counts anew once it is placed.
        let waits = self.unplaceable.is_some();
        if !waits && self.building_until().is_some_and(|by| now >= by) && self.failure.is_none() {
            let message = format!("not Configured in time; it was {}", self.doing());
            self.failure = Some(Failure { reason: "BuildTimedOut".into(), message });
        }
    }

    fn doing(&self) -> String {
        match (&self.seen, &self.link) {
            (None | Some(Seen::Absent | Seen::Stopped | Seen::Broken { .. }), _) => self
                .unplaceable
                .clone()
                .map_or_else(|| "being made".into(), |why| format!("waiting for its provider ({why})")),
            (Some(Seen::Running { .. }), Link::Down | Link::Connecting) => {
                "waiting for the agent inside".into()
            }
            (Some(Seen::Running { .. }), Link::Up) => "being configured".into(),
        }
    }

    /// Until when the machine is being built, if it is and has not landed.
    fn building_until(&self) -> Option<Time> {
        let want = self.want.as_ref().filter(|want| !want.gone)?;
        if self.built { None } else { want.build_by }
    }

    /// What became of the newest want's order, once it was answered.
    fn landed(&self) -> Option<&Applied> {
        let want = self.want.as_ref()?;
        self.applied.as_ref().filter(|applied| applied.revision == want.revision)
    }

    fn wants_gone(&self) -> bool {
        self.want.as_ref().is_some_and(|want| want.gone)
    }

    fn wanted_call(&self) -> Option<Call> {
        let want = self.want.as_ref()?;
        let Some(seen) = &self.seen else {
            return Some(if want.gone { Call::Delete } else { Call::Inspect });
        };
        if want.gone {
            return (*seen != Seen::Absent).then_some(Call::Delete);
        }
        if self.failure.is_some() {
            return None;
        }
        match (seen, want.power) {
            (Seen::Absent, Power::Running) => self.building_until().is_some().then_some(Call::Create),
            (Seen::Stopped, Power::Running) => Some(Call::Start),
            (Seen::Running { .. }, Power::Stopped) => Some(Call::Stop),
            (Seen::Running { .. }, Power::Running)
            | (Seen::Absent | Seen::Stopped, Power::Stopped)
            | (Seen::Broken { .. }, Power::Running | Power::Stopped) => None,
        }
    }

    fn wants_link(&self) -> bool {
        let wanted = self.want.as_ref().is_some_and(|want| !want.gone && want.power == Power::Running);
        wanted && matches!(self.seen, Some(Seen::Running { .. }))
    }

    fn link_act(&mut self, now_ms: u64) -> Option<Act> {
        // A machine that is to go keeps its link while it lives: the keys go first (rule A2).
        if !matches!(self.seen, Some(Seen::Running { .. })) {
            return None;
        }
        match self.link {
            Link::Down if self.wants_link() && self.reconnect.open(now_ms) => {
                self.link = Link::Connecting;
                Some(Act::Connect)
            }
            Link::Up if self.applying.is_none() => {
                let want = self.want.as_ref().filter(|want| !want.gone && want.power == Power::Running)?;
                let due = self.applied.as_ref().is_none_or(|applied| {
                    applied.revision != want.revision
                        || (has_failed(applied) && self.failure.is_none() && self.reapply.open(now_ms))
                });
                due.then(|| {
                    self.applying = Some(want.revision);
                    Act::Apply { revision: want.revision }
                })
            }
            Link::Down | Link::Connecting | Link::Up => None,
        }
    }

    fn machine(&self) -> Machine {
        if let Some(failure) = &self.failure
            && !self.wants_gone()
        {
            return Machine::Failed(failure.clone());
        }
        match (&self.seen, self.calling) {
            (_, Some(Call::Stop | Call::Delete)) => Machine::Stopping,
            (Some(Seen::Absent), _) if self.wants_gone() => Machine::Absent,
            _ if self.unplaceable.is_some() => {
                Machine::Unplaceable { why: self.unplaceable.clone().unwrap_or_default() }
            }
            (_, Some(Call::Create | Call::Start)) => Machine::Booting,
            (None, _) => Machine::Unknown { why: self.unknown_why() },
            (Some(Seen::Absent), _) => {
                if self.building_until().is_some() {
                    Machine::Booting
                } else {
                    Machine::Absent
                }
            }
            (Some(Seen::Stopped), _) => Machine::Stopped,
            (Some(Seen::Broken { why }), _) => {
                Machine::Failed(Failure { reason: "MachineBroken".into(), message: why.clone() })
            }
            (Some(Seen::Running { boot_id, started_at }), _) => self.running(*boot_id, *started_at),
        }
    }

    fn unknown_why(&self) -> String {
        if self.last_error.is_empty() {
            "the provider has not answered yet".into()
        } else {
            self.last_error.clone()
        }
    }

    /// An agent that restarts has confirmed what it confirmed; before its first word in this boot
    /// the machine counts as booting.
    fn running(&self, boot_id: Ulid, started_at: Time) -> Machine {
        let Some(agent) = self.agent.clone() else { return Machine::Booting };
        let landed = self.landed();
        let mut remarks = self.applied.as_ref().map_or_else(Vec::new, |applied| applied.remarks.clone());
        if let Some(Applied { keys, setup, .. }) = &self.applied {
            let failures = [setup, keys].into_iter().filter_map(|outcome| outcome.as_ref().err());
            remarks.extend(failures.map(|failure| failure.message.clone()));
        }
        Machine::Running(Running {
            boot_id,
            started_at,
            configured: landed.is_some_and(|applied| applied.setup.is_ok()),
            keys_confirmed: landed.is_some_and(|applied| applied.keys.is_ok()),
            agent,
            remarks,
            sessions: self.sessions,
        })
    }
}

/// Whether the agent could not carry out some part of an order.
const fn has_failed(applied: &Applied) -> bool {
    applied.keys.is_err() || applied.setup.is_err()
}

/// No agent that this daemon speaks with carries out recycles, and owners ask none without the
/// capability: an order that comes all the same must not wait for its deadline.
fn refused(order: &RecycleOrder) -> RecycleReport {
    let failure = Failure {
        reason: "RecycleUnsupported".into(),
        message: "the agent on the member cannot recycle it".into(),
    };
    RecycleReport { id: order.id, stage: RecycleStage::Failed(failure) }
}

#[cfg(test)]
mod tests;

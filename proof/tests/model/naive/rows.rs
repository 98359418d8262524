//! What the model knows of a lease and of a member: flat, and nothing in it is derived.

use ringleader_proof::machine::{Power, RecycleOrder};
use ringleader_proof::object::{
    FailedReason, LeasePhase, LeaseState, MemberState, NotRecycled, Outcome, Subject, Time,
};
use ringleader_proof::pool::{Sighting, Start, WaitsFor};
use ulid::Ulid;

#[derive(Clone, Debug)]
pub struct Lease {
    pub uid: Ulid,
    pub created: Time,
    pub holder: Subject,
    /// `spec.state`.
    pub written: LeaseState,
    /// Its delete was asked for.
    pub deleted: bool,
    /// What it stood for is carried out; it stays for somebody else's finalizer alone.
    pub over: bool,
    /// Somebody else's finalizer is on it.
    pub foreign: bool,
    pub keys: Vec<String>,
    pub expires_at: Time,
    pub term_ends: Time,
    pub phase: LeasePhase,
    pub member: Option<Ulid>,
    pub told: Option<WaitsFor>,
    pub start: Option<Start>,
    pub asked_at: Time,
    pub waited_millis: Option<i64>,
    pub bound_at: Option<Time>,
    pub ready_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub release: Option<Release>,
    pub reason: Option<FailedReason>,
    pub generation: i64,
    pub landed_generation: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    pub requested: Option<LeaseState>,
    pub outcome: Option<Outcome>,
    pub reason: Option<NotRecycled>,
}

impl Lease {
    /// A delete is a release (L12).
    pub fn asked(&self) -> LeaseState {
        if self.deleted && self.written == LeaseState::Needed { LeaseState::Done } else { self.written }
    }

    pub fn is_needed(&self) -> bool {
        self.asked() == LeaseState::Needed
    }

    pub fn waits(&self) -> bool {
        !self.over && self.phase == LeasePhase::Pending
    }

    /// It is bound to a member that it uses or is about to use.
    pub fn is_served(&self) -> bool {
        matches!(self.phase, LeasePhase::Starting | LeasePhase::Ready)
    }
}

#[derive(Clone, Debug)]
pub struct Member {
    pub uid: Ulid,
    /// Which of the test's templates it was built from.
    pub template: String,
    pub provider: String,
    pub state: MemberState,
    pub since: Time,
    pub born: Time,
    pub last_used: Time,
    pub lease: Option<Ulid>,
    pub reuses: u32,
    pub cordoned: bool,
    /// It was built to be stopped once it is ready.
    pub for_stopped: bool,
    /// It was idle past maxAge.
    pub aged: bool,
    pub build_by: Option<Time>,
    pub unplaceable: Option<String>,
    pub revoke_by: Option<Time>,
    pub down_since: Option<Time>,
    pub recycle: Option<RecycleOrder>,
    pub recycle_boot: Option<Ulid>,
    pub nonce: Option<Ulid>,
    /// Its machine is gone; it stays for somebody else's finalizer alone.
    pub over: bool,
    pub foreign: bool,
    pub seen: Seen,
    pub wish: Wish,
}

/// What was last taken in of its machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    pub revision: u64,
    pub sighting: Sighting,
    pub boot: Option<Ulid>,
    pub started_at: Option<Time>,
    pub configured: bool,
    /// The wish whose keys the agent has confirmed in this boot.
    pub keys: u64,
    pub capabilities: Vec<String>,
    /// The agent has introduced itself.
    pub introduced: bool,
    pub sessions: u32,
    pub message: String,
}

/// What was last wanted of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wish {
    pub revision: u64,
    /// The revision that last changed the keys.
    pub keys_since: u64,
    /// The owner's devices, as they were when it was made.
    pub devices: Vec<String>,
    pub content: Option<Content>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    pub power: Power,
    pub keys: Vec<String>,
    pub recycle: Option<RecycleOrder>,
    pub build_by: Option<Time>,
    pub gone: bool,
}

impl Member {
    /// The machine and its disk have been ordered to go.
    pub fn is_gone(&self) -> bool {
        self.state == MemberState::Deleting && self.revoke_by.is_none()
    }

    /// Its agent has confirmed the newest keys in the present boot.
    pub fn has_its_keys(&self) -> bool {
        self.seen.keys == self.wish.keys_since
    }

    /// A lease's keys were never on it in its present state.
    pub fn is_untouched(&self) -> bool {
        matches!(self.state, MemberState::Building | MemberState::Starting)
    }

    /// A new state begins; what belonged to the old one is over.
    pub fn enter(&mut self, state: MemberState, steady: Time) {
        self.state = state;
        self.since = steady;
        self.down_since = None;
        if state == MemberState::Starting {
            self.down_since = Some(steady);
        }
        self.recycle = None;
        self.recycle_boot = None;
        self.unplaceable = None;
        self.build_by = None;
    }
}

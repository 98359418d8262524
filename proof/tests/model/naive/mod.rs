//! The model: what rules.md says, executed as plainly as can be. Two vectors, walked from end to
//! end for every question; no index, no digest, no draft, nothing kept that can be found by
//! looking. Of the core it uses the names of rows and nothing else. It says what rules.md says; where
//! that is silent it does as the core does (`main.rs` says where).
//!
//! - `people.rs`: what a write is refused for, and what it changes.
//! - `machines.rs`: what a report means.
//! - `due.rs`: everything a pass might do now. Where the rules name one, there is one; where they
//!   leave it open, all are listed and the core may take any.
//! - `sets.rs`, `room.rs`: who there is and who is first; what a build waits for.
//! - `acts.rs`: what each of these does.
//! - `status.rs`: what the status has to say.

mod acts;
mod due;
mod machines;
mod people;
mod room;
mod rows;
mod sets;
mod status;

pub use due::Due;
pub use people::Refusal;
pub use rows::{Content, Lease, Member, Release, Seen, Wish};

use ringleader_proof::object::{LeasePhase, MemberState, PoolSpec, Subject, Time};
use ringleader_proof::pool::{Inputs, PoolRow, Sighting};
use ulid::Ulid;

#[derive(Clone, Debug)]
pub struct Naive {
    pub spec: PoolSpec,
    pub template: String,
    pub generation: i64,
    pub owner: Subject,
    pub deleting: bool,
    pub over: bool,
    pub foreign: bool,
    pub ended: bool,
    pub ever_ready: bool,
    pub failures: u32,
    /// When the present wait for a build began and ends.
    pub back_off: Option<(Time, Time)>,
    pub leases: Vec<Lease>,
    pub members: Vec<Member>,
    /// What people were warned of in the last step.
    pub warned: Vec<String>,
}

/// What one step may know of the world.
#[derive(Clone, Copy)]
pub struct Now<'a> {
    pub wall: Time,
    pub steady: Time,
    pub inputs: &'a Inputs,
    /// The owner's devices, sorted.
    pub devices: &'a [String],
}

/// Which of the test's templates a spec holds.
pub fn template_of(spec: &ringleader_proof::object::WorkstationSpec) -> String {
    format!("{:?}{:?}", spec.environment.get("N"), spec.requirements)
}

impl Naive {
    pub fn new(row: &PoolRow) -> Self {
        Self {
            spec: row.spec.clone(),
            template: template_of(&row.spec.template.spec),
            generation: row.metadata.generation,
            owner: row.owner.clone(),
            deleting: false,
            over: false,
            foreign: row.metadata.finalizers.len() > 1,
            ended: false,
            ever_ready: false,
            failures: 0,
            back_off: None,
            leases: Vec::new(),
            members: Vec::new(),
            warned: Vec::new(),
        }
    }

    /// Its object is gone; only leases that outlive it are left.
    pub fn is_gone(&self) -> bool {
        self.deleting && self.over && !self.foreign
    }

    pub fn lease(&mut self, uid: Ulid) -> &mut Lease {
        self.leases.iter_mut().find(|lease| lease.uid == uid).expect("a lease of the model")
    }

    pub fn member(&mut self, uid: Ulid) -> &mut Member {
        self.members.iter_mut().find(|member| member.uid == uid).expect("a member of the model")
    }

    pub fn get_lease(&self, uid: Ulid) -> Option<&Lease> {
        self.leases.iter().find(|lease| lease.uid == uid)
    }

    pub fn get_member(&self, uid: Ulid) -> Option<&Member> {
        self.members.iter().find(|member| member.uid == uid)
    }

    /// Members whose machine may exist (W2).
    pub fn live(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.over)
    }

    /// What follows from every step, whatever it was: the wish of each member, and whether its
    /// lease can be used. `touched` are the members the core wrote; the owner's devices reach a
    /// member with any write, or by an act of their own.
    pub fn conclude(&mut self, now: Now<'_>, touched: &[Ulid]) {
        for at in 0..self.members.len() {
            if touched.contains(&self.members[at].uid) {
                self.members[at].wish.devices = now.devices.to_vec();
            }
            let content = self.content(&self.members[at]);
            if self.members[at].over || self.members[at].wish.content.as_ref() == Some(&content) {
                continue;
            }
            let wish = &mut self.members[at].wish;
            wish.revision += 1;
            if wish.content.as_ref().is_none_or(|last| last.keys != content.keys) {
                wish.keys_since = wish.revision;
            }
            wish.content = Some(content);
        }
        for at in 0..self.leases.len() {
            let member = self.leases[at].member.and_then(|uid| self.get_member(uid)).cloned();
            conclude_lease(&mut self.leases[at], member.as_ref(), now);
        }
    }

    fn content(&self, member: &Member) -> Content {
        use ringleader_proof::machine::Power::{Running, Stopped};
        let gone = member.is_gone();
        let power = match member.state {
            MemberState::IdleStopped | MemberState::Stopping => Stopped,
            MemberState::Deleting if gone => Stopped,
            _ => Running,
        };
        let mut keys = if gone { Vec::new() } else { member.wish.devices.clone() };
        let lease = member.lease.and_then(|uid| self.get_lease(uid));
        // A1, A2: while the lease is held, and only once the member is its own and up.
        if let Some(lease) = lease
            && member.state == MemberState::Leased
            && lease.is_needed()
            && lease.is_served()
        {
            keys.extend(lease.keys.iter().filter(|key| !member.wish.devices.contains(key)).cloned());
        }
        // F1: what cannot be placed has all the time it needs, and is still to be made.
        let building = member.state == MemberState::Building;
        let build_by = building.then(|| member.build_by.unwrap_or(Time::from_millis(i64::MAX)));
        Content { power, keys, recycle: member.recycle, build_by, gone }
    }
}

/// L18, L19: Ready when the member is up, configured, and has confirmed the keys; Starting again
/// when it goes down.
fn conclude_lease(lease: &mut Lease, member: Option<&Member>, now: Now<'_>) {
    let Some(member) = member else {
        lease.landed_generation = lease.generation;
        return;
    };
    let serves = member.state == MemberState::Leased && member.down_since.is_none();
    let up = member.seen.sighting == Sighting::Running && member.seen.configured && member.seen.introduced;
    if lease.phase == LeasePhase::Starting && serves && up && member.has_its_keys() && lease.is_needed() {
        lease.phase = LeasePhase::Ready;
        lease.ready_at = lease.ready_at.or(Some(now.wall));
        lease.waited_millis = lease.waited_millis.or(Some(now.steady.millis() - lease.asked_at.millis()));
    } else if lease.phase == LeasePhase::Ready && member.down_since.is_some() {
        lease.phase = LeasePhase::Starting;
    }
    if member.state != MemberState::Leased || member.has_its_keys() {
        lease.landed_generation = lease.generation;
    }
}

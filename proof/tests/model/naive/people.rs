//! What people write: who may, what may change, and what it changes.

use ringleader_proof::object::{
    LeasePhase, LeaseState, MemberState, RELEASE_FINALIZER, Subject, Workstation, WorkstationPool,
    WorkstationPoolLease,
};
use ringleader_proof::pool::{Command, Denied, Standing};
use ulid::Ulid;

use super::{Lease, Naive, Now, template_of};

/// Why a write is refused, by kind. Where several apply the core may name any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Gone,
    Unknown,
    Deleting,
    TooManyPending,
    Reference,
    Identity,
    BornReleased,
    MovedBack,
    OnlyState,
    OnlyHolder,
    Past,
    TooLate,
    Expired,
    NotYours,
    OnlyCordon,
}

impl From<&Denied> for Refusal {
    fn from(denied: &Denied) -> Self {
        match denied {
            Denied::PoolGone { .. } => Self::Gone,
            Denied::LeaseUnknown | Denied::MemberUnknown => Self::Unknown,
            Denied::PoolDeleting { .. } => Self::Deleting,
            Denied::TooManyPending { .. } => Self::TooManyPending,
            Denied::PoolRefChanged => Self::Reference,
            Denied::IdentityChanged { .. } => Self::Identity,
            Denied::BornReleased(_) => Self::BornReleased,
            Denied::StateMovedBack { .. } => Self::MovedBack,
            Denied::OnlyStateMayChange { .. } => Self::OnlyState,
            Denied::ExpiresInThePast { .. } => Self::Past,
            Denied::ExpiresTooLate { .. } => Self::TooLate,
            Denied::Expired(_) => Self::Expired,
            Denied::OnlyTheHolder { .. } => Self::OnlyHolder,
            Denied::NotYourLease | Denied::NotYourMember => Self::NotYours,
            Denied::OnlyCordonMayChange => Self::OnlyCordon,
        }
    }
}

/// The test's pool.
pub const POOL: Ulid = Ulid(7);

fn when(applies: bool, refusal: Refusal) -> Option<Refusal> {
    applies.then_some(refusal)
}

fn is_foreign(finalizers: &[String]) -> bool {
    finalizers.iter().any(|finalizer| finalizer != RELEASE_FINALIZER)
}

impl Naive {
    /// Everything against a command. Empty: it is taken.
    pub fn refusals(&self, command: &Command, now: Now<'_>) -> Vec<Refusal> {
        match command {
            Command::UpdatePool { .. } | Command::DeletePool => {
                when(self.is_gone(), Refusal::Gone).into_iter().collect()
            }
            Command::CreateLease { object, .. } => self.against_new_lease(object, now),
            Command::UpdateLease { uid, object, by, standing } => match self.get_lease(*uid) {
                Some(lease) => self.against_lease(lease, object, by, *standing, now),
                None => vec![Refusal::Unknown],
            },
            Command::DeleteLease { uid, by, standing } => match self.get_lease(*uid) {
                Some(lease) => when(lease.holder != *by && *standing == Standing::Other, Refusal::NotYours)
                    .into_iter()
                    .collect(),
                None => vec![Refusal::Unknown],
            },
            Command::UpdateMember { uid, object, standing } => match self.get_member(*uid) {
                Some(member) => {
                    let power = member.content_is_stopped();
                    let nonce = member.nonce.map(|id| id.to_string()).unwrap_or_default();
                    let same = template_of(&object.spec) == member.template
                        && object.spec.stopped == power
                        && object.spec.recycle_nonce == nonce;
                    [when(*standing == Standing::Other, Refusal::NotYours), when(!same, Refusal::OnlyCordon)]
                        .into_iter()
                        .flatten()
                        .collect()
                }
                None => vec![Refusal::Unknown],
            },
            Command::DeleteMember { uid, standing } => match self.get_member(*uid) {
                Some(_) => when(*standing == Standing::Other, Refusal::NotYours).into_iter().collect(),
                None => vec![Refusal::Unknown],
            },
            Command::Fact(_) | Command::Pass => Vec::new(),
        }
    }

    /// L2, L4, L16.
    fn against_new_lease(&self, object: &WorkstationPoolLease, now: Now<'_>) -> Vec<Refusal> {
        let waiting = self.leases.iter().filter(|lease| lease.waits()).count();
        let asked = object.spec.expires_at;
        let latest = now.wall.plus_millis(self.spec.lease.max_term.millis());
        [
            when(self.deleting, Refusal::Deleting),
            when(waiting >= self.spec.lease.max_pending as usize, Refusal::TooManyPending),
            when(object.spec.state != LeaseState::Needed, Refusal::BornReleased),
            when(asked.is_some_and(|asked| asked <= now.wall), Refusal::Past),
            when(asked.is_some_and(|asked| asked > latest), Refusal::TooLate),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// L1 to L4, A7, A8.
    fn against_lease(
        &self,
        lease: &Lease,
        object: &WorkstationPoolLease,
        by: &Subject,
        standing: Standing,
        now: Now<'_>,
    ) -> Vec<Refusal> {
        use LeaseState::{Done, Needed, Recycle};
        let (new, status) = (&object.spec, &object.status);
        let holds = lease.holder == *by;
        // Deleting it was a Done (L12).
        let moved_back = matches!((lease.written, new.state), (Recycle | Done, Needed))
            || (lease.asked() == Done && new.state == Recycle);
        let closed = is_closed(lease, new.state);
        let renews = renews(lease, object, by);
        let asked = new.expires_at.filter(|asked| *asked != lease.expires_at);
        let changes = new.authorized_keys != lease.keys || asked.is_some();
        let latest = now.wall.plus_millis(self.spec.lease.max_term.millis());
        let expired = now.wall >= lease.expires_at || now.steady >= lease.term_ends;
        [
            when(new.workstation_pool_ref.name != "agents", Refusal::Reference),
            when(status.holder.as_ref().is_some_and(|said| *said != lease.holder), Refusal::Identity),
            when(status.pool_uid.is_some_and(|said| said != POOL), Refusal::Identity),
            when(!holds && standing == Standing::Other, Refusal::NotYours),
            when(moved_back, Refusal::MovedBack),
            when(!holds && new.state == Recycle && lease.written != Recycle, Refusal::OnlyHolder),
            when(changes && closed, Refusal::OnlyState),
            when(changes && !holds, Refusal::OnlyHolder),
            when(renews && expired, Refusal::Expired),
            when(renews && asked.is_some_and(|asked| asked <= now.wall), Refusal::Past),
            when(renews && asked.is_some_and(|asked| asked > latest), Refusal::TooLate),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Takes a command that nothing is against.
    pub fn take(&mut self, command: &Command, now: Now<'_>) {
        match command {
            Command::UpdatePool { object } => self.take_pool(object),
            Command::DeletePool => self.deleting = true,
            Command::CreateLease { object, by } => self.take_new_lease(object, by, now),
            Command::UpdateLease { uid, object, by, .. } => self.take_lease(*uid, object, by, now),
            Command::DeleteLease { uid, .. } => self.lease(*uid).deleted = true,
            Command::UpdateMember { uid, object, .. } => self.take_member(*uid, object, now),
            Command::DeleteMember { uid, .. } => self.lose(*uid, now),
            Command::Fact(fact) => self.hear(fact, now),
            Command::Pass => {}
        }
    }

    /// F3: another template starts with a clean record.
    fn take_pool(&mut self, object: &WorkstationPool) {
        let template = template_of(&object.spec.template.spec);
        if template != self.template {
            self.failures = 0;
            self.back_off = None;
        }
        self.template = template;
        self.spec = object.spec.clone();
        self.owner = object.spec.owner.clone().unwrap_or(self.owner.clone());
        self.spec.owner = Some(self.owner.clone());
        self.generation = object.metadata.generation;
        self.foreign = is_foreign(&object.metadata.finalizers);
    }

    fn take_new_lease(&mut self, object: &WorkstationPoolLease, by: &Subject, now: Now<'_>) {
        let max_term = self.spec.lease.max_term.millis();
        self.leases.push(Lease {
            uid: object.metadata.uid.expect("admitted"),
            created: object.metadata.creation_timestamp.expect("admitted"),
            holder: by.clone(),
            written: LeaseState::Needed,
            deleted: false,
            over: false,
            foreign: is_foreign(&object.metadata.finalizers),
            keys: object.spec.authorized_keys.clone(),
            expires_at: object.spec.expires_at.unwrap_or(now.wall.plus_millis(max_term)),
            term_ends: now.steady.plus_millis(max_term),
            phase: LeasePhase::Pending,
            member: None,
            told: None,
            start: None,
            asked_at: now.steady,
            waited_millis: None,
            bound_at: None,
            ready_at: None,
            ended_at: None,
            release: None,
            reason: None,
            generation: object.metadata.generation,
            landed_generation: object.metadata.generation,
        });
    }

    fn take_lease(&mut self, uid: Ulid, object: &WorkstationPoolLease, by: &Subject, now: Now<'_>) {
        let max_term = self.spec.lease.max_term.millis();
        let lease = self.lease(uid);
        if renews(lease, object, by) {
            lease.expires_at = object.spec.expires_at.unwrap_or(now.wall.plus_millis(max_term));
            lease.term_ends = now.steady.plus_millis(max_term);
        }
        lease.written = object.spec.state;
        lease.keys.clone_from(&object.spec.authorized_keys);
        lease.generation = object.metadata.generation;
        lease.foreign = is_foreign(&object.metadata.finalizers);
        self.leases.retain(|lease| !lease.over || lease.foreign);
    }

    /// C1, C2, W4: only the cordon changes, and the idle timers start at uncordon.
    fn take_member(&mut self, uid: Ulid, object: &Workstation, now: Now<'_>) {
        let member = self.member(uid);
        let idle = !member.is_untouched() && member.lease.is_none() && member.state != MemberState::Deleting;
        if idle && member.cordoned && !object.spec.cordoned {
            member.since = now.steady;
        }
        member.cordoned = object.spec.cordoned;
        member.foreign = is_foreign(&object.metadata.finalizers);
        self.members.retain(|member| !member.over || member.foreign);
    }
}

/// L2: nothing but its state changes any more.
fn is_closed(lease: &Lease, state: LeaseState) -> bool {
    !lease.is_needed()
        || state != LeaseState::Needed
        || !(lease.phase == LeasePhase::Pending || lease.is_served())
}

/// L3, L4: its holder sets `expiresAt`, or leaves it to the pool.
fn renews(lease: &Lease, object: &WorkstationPoolLease, by: &Subject) -> bool {
    let sets = object.spec.expires_at.is_none_or(|asked| asked != lease.expires_at);
    sets && lease.holder == *by && !is_closed(lease, object.spec.state)
}

impl super::Member {
    fn content_is_stopped(&self) -> bool {
        use ringleader_proof::object::MemberState::{IdleStopped, Stopping};
        matches!(self.state, IdleStopped | Stopping)
    }
}

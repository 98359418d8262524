//! A lease created, changed, or deleted by a person: who may, and what may change.

use ulid::Ulid;

use crate::object::{
    LeasePhase, LeaseSpec, LeaseState, Metadata, POOL_LABEL, RELEASE_FINALIZER, SERVER_PREFIX, Subject, Time,
    WorkstationPoolLease,
};
use crate::pool::draft::Draft;
use crate::pool::{Denied, Lease, Standing};

/// When a client may try again after 429: a release or an expiry may come at any moment.
const RETRY_AFTER_SECS: u32 = 5;

/// A new lease waits, whatever is idle; the next pass binds it.
pub fn create(draft: &mut Draft<'_>, object: WorkstationPoolLease, by: Subject) -> Result<(), Denied> {
    let row = draft.row();
    let pool = row.metadata.name.clone();
    if row.is_deleting() {
        return Err(Denied::PoolDeleting { pool });
    }
    let max_pending = row.spec.lease.max_pending;
    if draft.pool.leases_by.counts.pending >= max_pending {
        return Err(Denied::TooManyPending { pool, max_pending, retry_after_secs: RETRY_AFTER_SECS });
    }
    let mut spec = object.spec;
    if spec.state != LeaseState::Needed {
        return Err(Denied::BornReleased(spec.state));
    }
    let expires_at = match spec.expires_at {
        Some(asked) => judged(draft, asked)?,
        None => latest(draft),
    };
    spec.expires_at = Some(expires_at);
    let mut metadata = object.metadata;
    if metadata.uid.is_none() {
        metadata.uid = Some(draft.new_uid());
    }
    metadata.resource_version = None;
    metadata.creation_timestamp.get_or_insert(draft.now().whole_seconds());
    metadata.labels.insert(POOL_LABEL.into(), pool);
    metadata.finalizers.retain(|finalizer| finalizer != RELEASE_FINALIZER);
    metadata.finalizers.insert(0, RELEASE_FINALIZER.into());
    draft.put_lease(Lease {
        observed_generation: metadata.generation,
        metadata,
        spec,
        pool_uid: draft.row().uid(),
        holder: by,
        phase: LeasePhase::Pending,
        member: None,
        waits_for: None,
        message: String::new(),
        start: None,
        asked_at: draft.steady(),
        waited_millis: None,
        bound_at: None,
        ready_at: None,
        ended_at: None,
        ssh: None,
        release: None,
        reason: None,
        term_ends: term_end(draft),
        bound_changed: draft.now(),
        ready_changed: draft.now(),
    });
    Ok(())
}

/// A write of the whole object after a mutation.
pub fn update(
    draft: &mut Draft<'_>,
    uid: Ulid,
    object: WorkstationPoolLease,
    by: &Subject,
    standing: Standing,
) -> Result<(), Denied> {
    let lease = draft.lease(uid).ok_or(Denied::LeaseUnknown)?;
    check_identity(lease, &object)?;
    let author = Author::of(lease, by, standing)?;
    let (spec, expiry) = changed_spec(draft, lease, object.spec, author)?;
    let term_ends = match expiry {
        Expiry::Renewed => term_end(draft),
        Expiry::Kept => lease.term_ends,
    };
    let lease = draft.lease_mut(uid).ok_or(Denied::LeaseUnknown)?;
    lease.metadata = merged(&lease.metadata, object.metadata);
    lease.spec = spec;
    lease.term_ends = term_ends;
    if lease.is_over() && lease.metadata.finalizers.is_empty() {
        draft.remove_lease(uid);
    }
    Ok(())
}

/// A release (rule L12); of a lease that waits or has failed, its end. The next pass acts on it.
pub fn delete(draft: &mut Draft<'_>, uid: Ulid, by: &Subject, standing: Standing) -> Result<(), Denied> {
    let lease = draft.lease(uid).ok_or(Denied::LeaseUnknown)?;
    Author::of(lease, by, standing)?;
    let now = draft.now().whole_seconds();
    let lease = draft.lease_mut(uid).ok_or(Denied::LeaseUnknown)?;
    lease.metadata.deletion_timestamp.get_or_insert(now);
    Ok(())
}

/// Who writes an existing lease (rules A7, A8).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Holder,
    /// The pool's owner or a namespace admin: may end it, nothing else.
    Keeper,
}

impl Author {
    fn of(lease: &Lease, by: &Subject, standing: Standing) -> Result<Self, Denied> {
        match standing {
            _ if *by == lease.holder => Ok(Self::Holder),
            Standing::OwnerOrAdmin => Ok(Self::Keeper),
            Standing::Other => Err(Denied::NotYourLease),
        }
    }
}

/// Whether a write begins a new term. One that comes out at the same date may: the wall clock was
/// set back in between (rule L21).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expiry {
    Renewed,
    Kept,
}

/// The spec as it will be, once every change in it is allowed (rules L1 to L4, A8).
fn changed_spec(
    draft: &Draft<'_>,
    lease: &Lease,
    mut new: LeaseSpec,
    author: Author,
) -> Result<(LeaseSpec, Expiry), Denied> {
    let old = &lease.spec;
    if new.workstation_pool_ref != old.workstation_pool_ref {
        return Err(Denied::PoolRefChanged);
    }
    check_move(old.state, new.state)?;
    if new.state == LeaseState::Recycle && lease.asked() == LeaseState::Done {
        // Deleting it was a Done (rule L12).
        return Err(Denied::StateMovedBack { from: LeaseState::Done, to: new.state });
    }
    if new.state == LeaseState::Recycle && old.state != new.state && author != Author::Holder {
        return Err(Denied::OnlyTheHolder { path: "spec.state: Recycle" });
    }
    let closed = lease.asked() != LeaseState::Needed
        || new.state != LeaseState::Needed
        || matches!(lease.phase, LeasePhase::Failed | LeasePhase::Releasing | LeasePhase::Recycling);
    let keys_changed = new.authorized_keys != old.authorized_keys;
    let expiry_changed = new.expires_at.is_some() && new.expires_at != old.expires_at;
    for (changed, path) in [(keys_changed, "spec.authorizedKeys"), (expiry_changed, "spec.expiresAt")] {
        if changed && closed {
            return Err(Denied::OnlyStateMayChange { path });
        }
        if changed && author != Author::Holder {
            return Err(Denied::OnlyTheHolder { path });
        }
    }
    let renewed = new.expires_at.is_none() || expiry_changed;
    if closed || author != Author::Holder || !renewed {
        new.expires_at = old.expires_at;
        return Ok((new, Expiry::Kept));
    }
    if is_past_its_time(lease, draft) {
        return Err(Denied::Expired(lease.expires_at()));
    }
    new.expires_at = Some(match new.expires_at {
        Some(asked) => judged(draft, asked)?,
        None => latest(draft),
    });
    Ok((new, Expiry::Renewed))
}

fn check_move(from: LeaseState, to: LeaseState) -> Result<(), Denied> {
    match (from, to) {
        (LeaseState::Needed, _)
        | (LeaseState::Recycle, LeaseState::Recycle | LeaseState::Done)
        | (LeaseState::Done, LeaseState::Done) => Ok(()),
        (LeaseState::Recycle, LeaseState::Needed)
        | (LeaseState::Done, LeaseState::Needed | LeaseState::Recycle) => {
            Err(Denied::StateMovedBack { from, to })
        }
    }
}

fn check_identity(lease: &Lease, object: &WorkstationPoolLease) -> Result<(), Denied> {
    if object.status.holder.as_ref().is_some_and(|holder| *holder != lease.holder) {
        return Err(Denied::IdentityChanged { path: "status.holder" });
    }
    if object.status.pool_uid.is_some_and(|uid| uid != lease.pool_uid) {
        return Err(Denied::IdentityChanged { path: "status.poolUID" });
    }
    Ok(())
}

/// By either clock (rules L4, L21).
pub fn is_past_its_time(lease: &Lease, draft: &Draft<'_>) -> bool {
    draft.now() >= lease.expires_at() || draft.steady() >= lease.term_ends
}

/// A changed `expiresAt`, if it may be (rule L4).
fn judged(draft: &Draft<'_>, expires_at: Time) -> Result<Time, Denied> {
    let latest = latest(draft);
    if expires_at <= draft.now() {
        return Err(Denied::ExpiresInThePast { expires_at, latest });
    }
    if expires_at > latest {
        let max_term = draft.row().spec.lease.max_term.text().to_owned();
        return Err(Denied::ExpiresTooLate { expires_at, latest, max_term });
    }
    Ok(expires_at)
}

/// One maxTerm from now.
fn latest(draft: &Draft<'_>) -> Time {
    draft.now().plus_millis(draft.row().spec.lease.max_term.millis())
}

/// The same on the steady clock.
fn term_end(draft: &Draft<'_>) -> Time {
    draft.steady().plus_millis(draft.row().spec.lease.max_term.millis())
}

/// A person's metadata over the stored one: what the server alone writes stays as it was.
pub fn merged(old: &Metadata, mut new: Metadata) -> Metadata {
    new.uid = old.uid;
    new.name.clone_from(&old.name);
    new.namespace.clone_from(&old.namespace);
    new.creation_timestamp = old.creation_timestamp;
    new.deletion_timestamp = old.deletion_timestamp;
    new.resource_version = None;
    for (key, value) in old.labels.iter().filter(|(key, _)| key.starts_with(SERVER_PREFIX)) {
        new.labels.insert(key.clone(), value.clone());
    }
    new.finalizers.retain(|finalizer| finalizer != RELEASE_FINALIZER);
    if old.finalizers.iter().any(|finalizer| finalizer == RELEASE_FINALIZER) {
        new.finalizers.insert(0, RELEASE_FINALIZER.into());
    }
    new
}

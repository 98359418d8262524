//! What a decision changes. State-based: a change carries the whole row, so that applying it
//! twice is applying it once. It is what is stored and what moves memory; nothing else is.

use ulid::Ulid;

use super::{EventRow, Lease, Member, PoolRow};

/// One row written or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    PutPool(Box<PoolRow>),
    /// The pool's object is gone and its name is free. The row stays, shown to nobody, for the
    /// Failed leases that outlive the pool (rule D4).
    BuryPool(Box<PoolRow>),
    /// The last lease that outlived the pool is gone: the buried row goes, and with it the owner.
    RemovePool(Ulid),
    PutLease(Box<Lease>),
    RemoveLease(Ulid),
    PutMember(Box<Member>),
    RemoveMember(Ulid),
    PutEvent(Box<EventRow>),
    RemoveEvent(Ulid),
}

//! What a decision changes. State-based: a change carries the whole row, so that applying it
//! twice is applying it once. It is what is stored and what moves memory; nothing else is.

use std::sync::Arc;

use ulid::Ulid;

use super::{EventRow, Lease, Member, PoolRow};
use crate::object::UsageRow;

/// One row written or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "changes live for a moment, a few at a time")]
pub enum Change {
    PutPool(PoolRow),
    /// The last lease that outlived the pool is gone: the row goes, and with it its owner.
    RemovePool(Ulid),
    PutLease(Lease),
    RemoveLease(Ulid),
    PutMember(Member),
    RemoveMember(Ulid),
    PutEvent(EventRow),
    RemoveEvent(Ulid),
    /// What is counted of the others, in the same decision (rule U2).
    PutUsage(Arc<UsageRow>),
    RemoveUsage(Ulid),
}

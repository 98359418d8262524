//! The pool itself.

use ulid::Ulid;

use crate::object::{
    LastFailure, Metadata, PoolSpec, PoolStatus, RELEASE_FINALIZER, Subject, Time, WorkstationPool,
};

/// A pool as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolRow {
    pub metadata: Metadata,
    pub spec: PoolSpec,
    /// Who every member belongs to: `spec.owner`, or who created the pool.
    pub owner: Subject,
    /// Of `spec.template` (rule T1); members are compared by it alone.
    pub template_hash: String,
    /// A member has reported Configured at least once.
    pub ever_ready: bool,
    pub health: Health,
    /// As last written; the present one is derived (`status.rs`).
    pub status: PoolStatus,
}

/// Whether the template builds (rules F1 to F3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    pub consecutive_failures: u32,
    /// From the third failure in a row.
    pub back_off: Option<BackOff>,
    pub last_failure: Option<LastFailure>,
}

/// A time without builds. It stays on record once it has passed, because a failure of a build
/// begun after it doubles it and a failure of an older build does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    pub began: Time,
    pub until: Time,
}

impl PoolRow {
    /// The pool's uid: members and leases match by it, never by name (rule D4).
    ///
    /// # Panics
    /// If admission let an object without a uid through.
    pub fn uid(&self) -> Ulid {
        self.metadata.uid.expect("an admitted pool has a uid")
    }

    /// Deletion was asked for: no new leases, no new members.
    pub const fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// The last member is gone, and with it our finalizer.
    pub fn is_over(&self) -> bool {
        !self.metadata.finalizers.iter().any(|finalizer| finalizer == RELEASE_FINALIZER)
    }

    /// The object itself is gone. The row stays while Failed leases outlive it (rule D4).
    pub fn is_gone(&self) -> bool {
        self.is_deleting() && self.metadata.finalizers.is_empty()
    }

    /// The object as the API shows it; none once it is gone.
    pub fn present(&self) -> Option<WorkstationPool> {
        (!self.is_gone()).then(|| WorkstationPool {
            metadata: self.metadata.clone(),
            spec: self.spec.clone(),
            status: self.status.clone(),
        })
    }
}

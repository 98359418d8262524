//! Why a pool refuses a write. Each is a sentence that says what to do; nothing has changed.

use crate::object::{FieldError, FieldReason, LeaseState, Time};

/// A refusal, by name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("workstationpool/{pool} is gone: create it anew")]
    PoolGone { pool: String },
    #[error("no lease of this pool has that uid: read it again")]
    LeaseUnknown,
    #[error("no member of this pool has that uid: read it again")]
    MemberUnknown,
    #[error("workstationpool/{pool} is being deleted and takes no new leases: lease from another pool")]
    PoolDeleting { pool: String },
    #[error(
        "workstationpool/{pool} already has {max_pending} leases waiting: try again later, or raise spec.lease.maxPending"
    )]
    TooManyPending { pool: String, max_pending: u32, retry_after_secs: u32 },
    #[error("the reference to the pool never changes: create a lease of the other pool")]
    PoolRefChanged,
    #[error(
        "status.holder and status.poolUID are set when a lease is created and never change: leave them out"
    )]
    IdentityChanged { path: &'static str },
    #[error("a new lease has state Needed, not {0:?}: leave spec.state out")]
    BornReleased(LeaseState),
    #[error(
        "spec.state moves from Needed to Done or Recycle and from Recycle to Done; from {from:?} to {to:?} it cannot go: create a new lease"
    )]
    StateMovedBack { from: LeaseState, to: LeaseState },
    #[error("this lease is released or has failed, and only spec.state may still change: create a new lease")]
    OnlyStateMayChange { path: &'static str },
    #[error("{expires_at} has passed: write a time between now and {latest}, or leave it out")]
    ExpiresInThePast { expires_at: Time, latest: Time },
    #[error(
        "{expires_at} is more than one lease.maxTerm ({max_term}) ahead: write {latest} or earlier, or leave it out"
    )]
    ExpiresTooLate { expires_at: Time, latest: Time, max_term: String },
    #[error("this lease expired at {0} and cannot be renewed: create a new lease")]
    Expired(Time),
    #[error(
        "only its holder writes {path} of a lease; the pool's owner and a namespace admin may write Done or delete it"
    )]
    OnlyTheHolder { path: &'static str },
    #[error("only its holder, the pool's owner and a namespace admin may release or change a lease")]
    NotYourLease,
    #[error(
        "only the pool's owner and a namespace admin may change or delete a member: release the lease instead"
    )]
    NotYourMember,
    #[error("the pool writes everything of a member but spec.cordoned: change the pool's template instead")]
    OnlyCordonMayChange,
}

/// Which HTTP answer a refusal becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    NotFound,
    Forbidden,
    Invalid(FieldError),
    TooMany { retry_after_secs: u32 },
}

impl Denied {
    /// The kind of answer, with the field where one is to blame.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let invalid = |path: &str, reason| Answer::Invalid(FieldError::new(path, reason, self.to_string()));
        match self {
            Self::PoolGone { .. } | Self::LeaseUnknown | Self::MemberUnknown => Answer::NotFound,
            Self::PoolDeleting { .. }
            | Self::OnlyTheHolder { .. }
            | Self::NotYourLease
            | Self::NotYourMember => Answer::Forbidden,
            Self::TooManyPending { retry_after_secs, .. } => {
                Answer::TooMany { retry_after_secs: *retry_after_secs }
            }
            Self::PoolRefChanged => invalid("spec.workstationPoolRef", FieldReason::Forbidden),
            Self::IdentityChanged { path } | Self::OnlyStateMayChange { path } => {
                invalid(path, FieldReason::Forbidden)
            }
            Self::BornReleased(_) | Self::StateMovedBack { .. } => {
                invalid("spec.state", FieldReason::Invalid)
            }
            Self::ExpiresInThePast { .. } | Self::ExpiresTooLate { .. } | Self::Expired(_) => {
                invalid("spec.expiresAt", FieldReason::Invalid)
            }
            Self::OnlyCordonMayChange => invalid("spec", FieldReason::Forbidden),
        }
    }
}

//! What a pool is asked or told.

use ulid::Ulid;

use crate::machine::Fact;
use crate::object::{Subject, Workstation, WorkstationPool, WorkstationPoolLease};

/// One request, report, or look. Objects come admitted: validated, defaulted and whole, as they
/// would stand after the write. What only the pool can judge is judged here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Changes the pool's metadata or spec.
    UpdatePool {
        object: Box<WorkstationPool>,
    },
    DeletePool,
    /// `by` becomes the holder.
    CreateLease {
        object: Box<WorkstationPoolLease>,
        by: Subject,
    },
    /// A write of the main part or of `/status`.
    UpdateLease {
        uid: Ulid,
        object: Box<WorkstationPoolLease>,
        by: Subject,
        standing: Standing,
    },
    DeleteLease {
        uid: Ulid,
        by: Subject,
        standing: Standing,
    },
    UpdateMember {
        uid: Ulid,
        object: Box<Workstation>,
        standing: Standing,
    },
    DeleteMember {
        uid: Ulid,
        standing: Standing,
    },
    /// What a member actor reports.
    Fact(Fact),
    /// One look at everything the pool knows: it does the one next act, if there is one. To be
    /// repeated until it does nothing, after every other command and whenever the inputs have
    /// changed, a status was written, or the deadline has come.
    Pass,
}

/// What the writer is to the pool, beside perhaps being the lease's holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The pool's owner, or an admin of its namespace.
    OwnerOrAdmin,
    /// Anybody else who was let through.
    Other,
}

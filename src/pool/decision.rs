//! What a command leads to.

use super::Change;
use crate::machine::Want;

/// The changes to make durable together, and the wants to send once they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub act: Act,
    pub changes: Vec<Change>,
    /// Of the members whose want has changed, at its new revision. Empty for one that is gone
    /// altogether.
    pub wants: Vec<Want>,
}

/// What was done, for logs, metrics, and the shell's own book-keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// Nothing was due, or what was asked is already so.
    Nothing,
    /// A command was recorded.
    Record,
    /// A lease ended at its time.
    Expire,
    /// A wish to release or cancel was acted on.
    Release,
    /// A failed lease's time was up.
    Forget,
    /// A member's delete went on from revoking to removing.
    Revoke,
    /// A member that was down for too long, or not built in time, was given up.
    GiveUp,
    /// A lease got a member that was there.
    Bind,
    /// A new member was ordered.
    Build,
    /// A stopped member was started for the running floor.
    Start,
    /// An idle member was stopped.
    Stop,
    /// An idle or building member was let go.
    LetGo,
    /// An idle member has passed maxAge, or no longer.
    Age,
    /// A change of the owner's devices was passed to a member.
    Refresh,
    /// Waiting leases were told what they wait for.
    Tell,
    /// The pool's status was written. No second one may be written until this one is durable.
    WriteStatus,
    /// A deleted pool came to its end.
    End,
}

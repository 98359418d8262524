//! What owners hand to the store, and what they get back.

use std::fmt;
use std::sync::Arc;

use ulid::Ulid;

use super::record::{Record, RecordId};
use crate::view::{Key, Resource, View};

/// The sole writer of some records.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnerId {
    /// Namespaces, people, rights, configurations.
    Catalog,
    /// The standalone workstations of a namespace.
    Fleet(String),
    /// A pool with its leases, members and events, by the pool's uid.
    Pool(Ulid),
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Catalog => f.write_str("catalog"),
            Self::Fleet(namespace) => write!(f, "fleet of {namespace}"),
            Self::Pool(uid) => write!(f, "pool {uid}"),
        }
    }
}

/// One decision of an owner.
pub struct Submission {
    pub owner: OwnerId,
    /// The incarnation that `Store::load` gave this owner.
    pub incarnation: u64,
    pub preconditions: Vec<Precondition>,
    /// May be empty: then the effects still wait for everything queued before.
    pub writes: Vec<Write>,
    pub effects: Vec<Effect>,
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submission")
            .field("owner", &self.owner)
            .field("incarnation", &self.incarnation)
            .field("writes", &self.writes.len())
            .field("effects", &self.effects.len())
            .finish_non_exhaustive()
    }
}

/// What must hold when the decision is taken, queued writes included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Nobody has this name.
    Absent(Key),
    /// The object is still as of this version.
    Version(Key, u64),
}

/// One write. Each takes a version of its own.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "writes live for a moment, a few at a time")]
pub enum Write {
    /// Creates the record or replaces it whole.
    Put(Record),
    Remove(RecordId),
}

/// What is done once the decision is durable and visible: on the committer's thread, in the order
/// of the queue. It must not block.
pub type Effect = Box<dyn FnOnce(&Committed) + Send>;

/// What an effect may know of its submission.
#[derive(Debug)]
pub struct Committed {
    written: Vec<Arc<Resource>>,
    view: View,
}

impl Committed {
    pub(super) const fn new(written: Vec<Arc<Resource>>, view: View) -> Self {
        Self { written, view }
    }

    /// The object as of this submission: what it wrote; of a removed one the last state; of one
    /// that it did not touch, what the view shows now, which is nothing newer.
    #[must_use]
    pub fn resource(&self, key: &Key) -> Option<Arc<Resource>> {
        let written = self.written.iter().rev().find(|resource| resource.key == *key);
        written.cloned().or_else(|| self.view.get(key))
    }
}

/// The versions given to the writes of a submission, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Of the first write; without writes, the next version there will be.
    pub first: u64,
    pub count: u64,
}

impl Versions {
    /// The newest version that this submission's readers may see.
    #[must_use]
    pub const fn last(self) -> u64 {
        self.first + self.count - 1
    }
}

/// Why a submission was refused. Nothing of it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    #[error("{owner} was loaded again: incarnation {incarnation} may no longer write, {current} is in force")]
    Superseded { owner: OwnerId, incarnation: u64, current: u64 },
    #[error("{} \"{}\" already exists", .0.plural, .0.name)]
    Exists(Key),
    /// `found` is `None` when the object is gone.
    #[error("{} \"{}\" has changed: version {expected} was expected, {} is there; read it again and retry",
        .key.plural, .key.name, .found.map_or_else(|| "nothing".to_owned(), |found| format!("version {found}")))]
    Changed { key: Key, expected: u64, found: Option<u64> },
    #[error("{0} is not a record of this owner")]
    NotYours(RecordId),
    #[error("{id} has {bytes} bytes where {most} are allowed: make the object smaller")]
    TooLarge { id: RecordId, bytes: usize, most: usize },
    #[error("the store is closed")]
    Closed,
}

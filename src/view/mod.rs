//! What http reads: immutable objects, indexes, and the rings of watch events.
//!
//! The committer alone writes here, in version order, after the write is on disk: what a reader
//! sees is durable. One submission becomes visible at once and whole.
//!
//! The state stands behind one read-write lock. Objects are `Arc`s, so a look holds the lock only
//! while it copies pointers: less than a millisecond for a list of 10 000 objects (`benches/commit.rs`
//! measures it), microseconds for everything else. A persistent map would spare even that, and cost
//! every write and another dependency.

mod index;
mod queue;
mod resource;
mod ring;
#[cfg(test)]
mod samples;
mod usage;
mod watch;

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;
use ulid::Ulid;

use index::State;
use queue::Queues;

use crate::object::UsageRow;

pub use resource::{Key, Resource};
pub use watch::{Change, TooOld, Watch, WatchEvent};

/// How many watch events are kept for each kind, unless told otherwise.
pub const EVENTS_KEPT_PER_KIND: usize = 10_000;

/// A reader's handle. Cheap to clone.
#[derive(Clone, Debug)]
pub struct View {
    state: Arc<RwLock<State>>,
}

/// The one writer. Dropping it ends every watch.
#[derive(Debug)]
pub struct ViewWriter {
    state: Arc<RwLock<State>>,
}

/// One consistent look at the objects of a kind.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The newest version the view had: watching from here misses and repeats nothing.
    pub version: u64,
    /// Ordered by namespace, then name.
    pub items: Vec<Arc<Resource>>,
    queues: Queues,
}

/// One durable write, as the view is told of it.
#[derive(Clone, Debug)]
pub enum Applied {
    /// The object's new state; `Resource::version` is the write's.
    Put(Resource),
    /// The object is gone as of `version`.
    Removed { key: Key, version: u64 },
    /// An hour of a pool's usage, which is no object: nobody watches it.
    Usage(Arc<UsageRow>),
    /// The row of this uid is kept no longer.
    UsageRemoved(Ulid),
}

/// An empty view and its only writer. Each kind's ring keeps `events_kept_per_kind` events.
#[must_use]
pub fn new(events_kept_per_kind: usize) -> (View, ViewWriter) {
    let state = Arc::new(RwLock::new(State::new(events_kept_per_kind)));
    (View { state: Arc::clone(&state) }, ViewWriter { state })
}

impl View {
    /// The object at `key`.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<Resource>> {
        self.look().get(key)
    }

    /// The object with this uid, of whatever kind.
    #[must_use]
    pub fn by_uid(&self, uid: Ulid) -> Option<Arc<Resource>> {
        self.look().by_uid(uid)
    }

    /// Every object of a kind, in one namespace or (`None`) in all.
    #[must_use]
    pub fn list(&self, group: &'static str, plural: &'static str, namespace: Option<&str>) -> Listing {
        let state = self.look();
        Listing {
            version: state.version(),
            items: state.list(group, plural, namespace),
            queues: state.queues().clone(),
        }
    }

    /// Every hour that the pool of this uid has on record, oldest first.
    #[must_use]
    pub fn usage(&self, pool: Ulid) -> Vec<Arc<UsageRow>> {
        self.look().usage(pool)
    }

    /// The version of the newest write that is visible.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.look().version()
    }

    /// The oldest version a watch of this kind may still start from.
    #[must_use]
    pub fn oldest_version(&self, group: &'static str, plural: &'static str) -> u64 {
        self.look().oldest_version(group, plural)
    }

    /// Every change of a kind after the version `since`, in version order. `None` starts with an
    /// `Added` for each object there is. A version still to come waits for it.
    ///
    /// # Errors
    /// When events after `since` are no longer kept, or it is older than this start of the daemon.
    pub fn watch(
        &self,
        group: &'static str,
        plural: &'static str,
        namespace: Option<&str>,
        since: Option<u64>,
    ) -> Result<Watch, TooOld> {
        Watch::start(self.clone(), group, plural, namespace.map(str::to_owned), since)
    }

    /// The object's value with what is computed when read: `status.queuePosition` of a waiting
    /// lease, as of now. For the items of a list, `Listing::read` tells it as of the list.
    #[must_use]
    pub fn read<'a>(&self, resource: &'a Resource) -> Cow<'a, Value> {
        queue::with_position(resource, self.look().queues())
    }

    fn look(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For `Watch`: the ring of a kind is made when it is first watched or written.
    fn change(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listing {
    /// As `View::read`, at the time of the list.
    #[must_use]
    pub fn read<'a>(&self, resource: &'a Resource) -> Cow<'a, Value> {
        queue::with_position(resource, &self.queues)
    }
}

impl ViewWriter {
    /// Fills an empty view with what is on disk at the start. No watch can begin before `version`.
    pub fn begin(&mut self, version: u64, resources: Vec<Resource>) {
        self.change().begin(version, resources);
    }

    /// Makes one submission's writes visible, all at once, and wakes who watches. Returns the
    /// object of each write of one: the new state, or the last one, under the version of its
    /// removal.
    pub fn apply(&mut self, writes: Vec<Applied>) -> Vec<Arc<Resource>> {
        let mut state = self.change();
        writes.into_iter().filter_map(|write| state.apply(write)).collect()
    }

    /// Everything up to `version` is visible: also writes of what is not shown to readers count.
    pub fn reach(&mut self, version: u64) {
        self.change().reach(version);
    }

    /// A reader's handle on the same view.
    #[must_use]
    pub fn view(&self) -> View {
        View { state: Arc::clone(&self.state) }
    }

    fn change(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ViewWriter {
    fn drop(&mut self) {
        self.change().close();
    }
}

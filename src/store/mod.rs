//! sled and postcard, nowhere else: records, the committer, start-up.
//!
//! Nothing is said before it is written. An owner hands over a whole decision at once: what must
//! still hold, what to write, and what to tell whom. Under one short lock `submit` checks, numbers
//! and queues it, so that the order of the queue is the order of the versions. One committer thread
//! gathers what is queued, writes it in one batch, makes it durable, and then, submission by
//! submission, shows it in the view and runs its effects.
//!
//! ```text
//!  owner ── submit ──► queue ──► committer ── sled batch, flush, fsync
//!  owner ── load ────►   │            └── then in queue order: view, effects
//! ```
//!
//! What is stored: one record for each object, and `meta` about the whole. Effects are not: every
//! start derives all wishes again.

mod ballast;
mod committer;
mod disk;
mod envelope;
mod error;
mod index;
mod key;
mod lock;
mod meta;
mod open;
mod queue;
pub mod record;
mod submission;
mod witness;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use ulid::Ulid;

use crate::metrics::CommitMeter;
use crate::view::ViewWriter;

pub use ballast::Space;
pub use error::StoreError;
pub use record::{Record, RecordId, RecordKind};
pub use submission::{Committed, Conflict, Effect, OwnerId, Precondition, Submission, Versions, Write};

/// How a store is opened. `StoreOptions::new` has the defaults.
pub struct StoreOptions {
    /// Called once, from the committer, when the disk can no longer be trusted. What is queued is
    /// never acknowledged: the process should end (exit 70), and the next start reads what is true.
    pub on_fatal: Box<dyn FnOnce(&StoreError) + Send>,
    /// Memory for sled's pages. 16 to 64 MiB.
    pub cache_bytes: u64,
    /// The file that is given up when the disk is full, so that releases still can be written.
    pub ballast_bytes: u64,
    /// With less of the disk free: no builds.
    pub no_builds_below_percent: u8,
    /// With less of the disk free: only releases and deletes.
    pub releases_only_below_percent: u8,
    /// Counts commits. The default is scraped by nobody.
    pub meter: CommitMeter,
}

impl StoreOptions {
    /// The defaults: a cache of 32 MiB, 64 MiB of ballast, limits at 5 and 2 percent.
    #[must_use]
    pub fn new(on_fatal: impl FnOnce(&StoreError) + Send + 'static) -> Self {
        Self {
            on_fatal: Box::new(on_fatal),
            cache_bytes: 32 << 20,
            ballast_bytes: 64 << 20,
            no_builds_below_percent: 5,
            releases_only_below_percent: 2,
            meter: CommitMeter::default(),
        }
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions").field("cache_bytes", &self.cache_bytes).finish_non_exhaustive()
    }
}

/// The durable state. A clonable handle; the last one to go closes it.
#[derive(Clone, Debug)]
pub struct Store {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    queue: Arc<queue::Queue>,
    ballast: Arc<ballast::Ballast>,
    instance: Ulid,
    committer: Mutex<Option<JoinHandle<()>>>,
}

impl Store {
    /// Opens (or makes) the store in `dir`, which belongs to this daemon alone, and fills the view.
    ///
    /// # Errors
    /// When another daemon uses the directory, it cannot be written, it was written by a newer
    /// version, or a record cannot be read. Nothing is skipped and nothing is repaired in silence.
    pub fn open(
        dir: impl Into<PathBuf>,
        options: StoreOptions,
        view: ViewWriter,
    ) -> Result<Self, StoreError> {
        open::open(&dir.into(), options, view)
    }

    /// Takes a decision: all of it or nothing. Returns at once; what it means for others (replies,
    /// wishes) belongs into its effects, which run when it is durable and visible.
    ///
    /// # Errors
    /// When the owner was loaded again since, a precondition does not hold, or the store is closed.
    pub fn submit(&self, submission: Submission) -> Result<Versions, Conflict> {
        self.handle.queue.submit(submission)
    }

    /// Begins a new incarnation of an owner: from now on submissions of older ones are refused.
    /// Its records come from disk, behind everything that is queued. An owner that was never
    /// loaded cannot submit.
    pub fn load(&self, owner: OwnerId) -> (u64, oneshot::Receiver<Vec<Record>>) {
        self.handle.queue.load(owner)
    }

    /// Resolves when everything queued so far is durable and its effects have run. Fails only when
    /// the store has failed or is closed.
    pub fn barrier(&self) -> oneshot::Receiver<()> {
        self.handle.queue.barrier()
    }

    /// Every owner that has a record, pending writes included.
    #[must_use]
    pub fn owners(&self) -> Vec<OwnerId> {
        self.handle.queue.owners()
    }

    /// Made once with the store; machines carry it.
    #[must_use]
    pub fn instance(&self) -> Ulid {
        self.handle.instance
    }

    /// What the free space of the disk still allows. One system call.
    #[must_use]
    pub fn space(&self) -> Space {
        self.handle.ballast.space()
    }

    /// Writes what is queued, runs its effects, and closes. Later submissions are refused. Not to be
    /// called from an effect.
    pub fn close(&self) {
        self.handle.close();
    }
}

impl Handle {
    fn close(&self) {
        self.queue.close();
        let thread = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The last handle may go with an effect, on the committer itself: it ends without a join.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id())
            && thread.join().is_err()
        {
            tracing::error!("the committer panicked");
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

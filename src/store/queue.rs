//! The one short lock: what is checked, numbered and queued under it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::index::{Index, Slot};
use super::key;
use super::meta::Head;
use super::record::{Record, RecordId};
use super::submission::{Conflict, Effect, OwnerId, Submission, Versions, Write};
use crate::metrics::CommitMeter;
use crate::view::{Key, Resource};

/// How much one batch gathers.
const SUBMISSIONS_PER_BATCH: usize = 1024;
const BYTES_PER_BATCH: usize = 4 << 20;

/// The most a record may take on disk.
const RECORD_BYTES_MAX: usize = 1 << 20;

/// What owners put in and the committer takes out.
#[derive(Debug)]
pub(super) struct Queue {
    locked: Mutex<Locked>,
    arrived: Condvar,
    meter: CommitMeter,
}

#[derive(Debug)]
struct Locked {
    index: Index,
    incarnations: HashMap<OwnerId, u64>,
    entries: VecDeque<Entry>,
    /// Closed or failed: nothing is taken any more.
    closed: bool,
}

/// One thing the committer has to do, in the order of the queue.
pub(super) enum Entry {
    Commit(Commit),
    Load { owner: OwnerId, reply: oneshot::Sender<Vec<Record>> },
    Barrier(oneshot::Sender<()>),
}

/// A submission that was accepted.
pub(super) struct Commit {
    pub writes: Vec<Numbered>,
    /// The store's head as of this submission.
    pub head: Head,
    pub effects: Vec<Effect>,
}

/// One write with its version.
pub(super) struct Numbered {
    pub key: Vec<u8>,
    pub version: u64,
    pub change: Prepared,
}

/// A write, encoded before the lock is taken.
pub(super) enum Prepared {
    /// `resource` still bears version 0. Without one the record is kept and not shown; `hides` is
    /// the name under which it was shown until now.
    Put { type_version: u8, payload: Vec<u8>, resource: Option<Box<Resource>>, hides: Option<Key> },
    /// `name` is none when it was not shown.
    Remove { name: Option<Key> },
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Commit(_) => "Commit",
            Self::Load { .. } => "Load",
            Self::Barrier(_) => "Barrier",
        })
    }
}

impl Queue {
    pub(super) fn new(index: Index, meter: CommitMeter) -> Self {
        let locked = Locked { index, incarnations: HashMap::new(), entries: VecDeque::new(), closed: false };
        Self { locked: Mutex::new(locked), arrived: Condvar::new(), meter }
    }

    pub(super) fn submit(&self, submission: Submission) -> Result<Versions, Conflict> {
        let Submission { owner, incarnation, preconditions, writes, effects } = submission;
        let drafts: Vec<Draft> = writes.into_iter().map(Draft::of).collect::<Result<_, _>>()?;
        let mut locked = self.lock();
        locked.admit(&owner, incarnation)?;
        for precondition in &preconditions {
            locked.index.check(precondition)?;
        }
        let first = locked.index.head().version + 1;
        let writes = locked.number(&owner, drafts)?;
        let versions = Versions { first, count: writes.len() as u64 };
        let head = locked.index.head();
        // Counted before the committer can see it.
        self.meter.queue();
        locked.entries.push_back(Entry::Commit(Commit { writes, head, effects }));
        drop(locked);
        self.arrived.notify_one();
        Ok(versions)
    }

    pub(super) fn load(&self, owner: OwnerId) -> (u64, oneshot::Receiver<Vec<Record>>) {
        let (reply, records) = oneshot::channel();
        let mut locked = self.lock();
        let incarnation = locked.incarnations.entry(owner.clone()).or_insert(0);
        *incarnation += 1;
        let incarnation = *incarnation;
        locked.enqueue(Entry::Load { owner, reply });
        drop(locked);
        self.arrived.notify_one();
        (incarnation, records)
    }

    pub(super) fn barrier(&self) -> oneshot::Receiver<()> {
        let (reply, passed) = oneshot::channel();
        self.lock().enqueue(Entry::Barrier(reply));
        self.arrived.notify_one();
        passed
    }

    pub(super) fn owners(&self) -> Vec<OwnerId> {
        self.lock().index.owners()
    }

    pub(super) const fn meter(&self) -> &CommitMeter {
        &self.meter
    }

    /// Takes no more; what is queued is still written.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Takes no more, and what is queued is never acknowledged.
    pub(super) fn fail(&self) {
        let mut locked = self.lock();
        locked.closed = true;
        let unsaid = std::mem::take(&mut locked.entries);
        // Effects may hold handles of this very store: dropped outside the lock.
        drop(locked);
        drop(unsaid);
    }

    /// Waits for something to do. A load is always the last of its batch, so that it reads what
    /// was queued before it. `None` when the store is closed and the queue empty.
    pub(super) fn next_batch(&self) -> Option<Vec<Entry>> {
        let mut locked = self.lock();
        while locked.entries.is_empty() {
            if locked.closed {
                return None;
            }
            locked = self.arrived.wait(locked).unwrap_or_else(PoisonError::into_inner);
        }
        let mut bytes = 0;
        let mut batch = Vec::new();
        while batch.len() < SUBMISSIONS_PER_BATCH && bytes < BYTES_PER_BATCH {
            let Some(entry) = locked.entries.pop_front() else { break };
            bytes += entry.bytes();
            let load = matches!(entry, Entry::Load { .. });
            batch.push(entry);
            if load {
                break;
            }
        }
        Some(batch)
    }

    fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Locked {
    fn admit(&self, owner: &OwnerId, incarnation: u64) -> Result<(), Conflict> {
        if self.closed {
            return Err(Conflict::Closed);
        }
        let current = self.incarnations.get(owner).copied().unwrap_or(0);
        if current == 0 || current != incarnation {
            return Err(Conflict::Superseded { owner: owner.clone(), incarnation, current });
        }
        Ok(())
    }

    /// Gives each write its version and enters it into the index: all of them or none.
    fn number(&mut self, owner: &OwnerId, drafts: Vec<Draft>) -> Result<Vec<Numbered>, Conflict> {
        let head = self.index.head();
        let mut undo = Vec::with_capacity(drafts.len());
        let mut numbered = Vec::with_capacity(drafts.len());
        for draft in drafts {
            match self.number_one(owner, draft, &mut undo) {
                Ok(write) => numbered.push(write),
                Err(conflict) => {
                    self.index.undo(undo, head);
                    return Err(conflict);
                }
            }
        }
        Ok(numbered)
    }

    fn number_one(
        &mut self,
        owner: &OwnerId,
        draft: Draft,
        undo: &mut Vec<(RecordId, Option<Slot>)>,
    ) -> Result<Numbered, Conflict> {
        let version = self.index.next_version();
        let id = draft.id();
        let change = match draft {
            Draft::Put { type_version, payload, resource, .. } => {
                let key = resource.as_ref().map(|resource| resource.key.clone());
                let slot = Slot { owner: owner.clone(), key: key.clone(), version };
                let before = self.index.put(id, slot)?;
                let hides = before.as_ref().and_then(|before| before.key.clone()).filter(|_| key.is_none());
                undo.push((id, before));
                Prepared::Put { type_version, payload, resource, hides }
            }
            Draft::Remove(_) => {
                let before = self.index.remove(id, owner)?;
                let name = before.key.clone();
                undo.push((id, Some(before)));
                Prepared::Remove { name }
            }
        };
        Ok(Numbered { key: key::record(owner, id), version, change })
    }

    /// A closed store drops the entry, which ends the wait for it.
    fn enqueue(&mut self, entry: Entry) {
        if !self.closed {
            self.entries.push_back(entry);
        }
    }
}

/// A write, encoded and not yet numbered.
enum Draft {
    Put { id: RecordId, type_version: u8, payload: Vec<u8>, resource: Option<Box<Resource>> },
    Remove(RecordId),
}

impl Draft {
    fn of(write: Write) -> Result<Self, Conflict> {
        match write {
            Write::Put(record) => {
                let (id, payload) = (record.id(), record.encode());
                if payload.len() > RECORD_BYTES_MAX {
                    return Err(Conflict::TooLarge { id, bytes: payload.len(), most: RECORD_BYTES_MAX });
                }
                let resource = record.present(0).map(Box::new);
                Ok(Self::Put { id, type_version: id.kind.newest_version(), payload, resource })
            }
            Write::Remove(id) => Ok(Self::Remove(id)),
        }
    }

    const fn id(&self) -> RecordId {
        match self {
            Self::Put { id, .. } | Self::Remove(id) => *id,
        }
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        let Self::Commit(commit) = self else { return 0 };
        let of = |write: &Numbered| match &write.change {
            Prepared::Put { payload, .. } => payload.len(),
            Prepared::Remove { .. } => 0,
        };
        commit.writes.iter().map(of).sum()
    }
}

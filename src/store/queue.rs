//! The one short lock: what is checked, numbered and queued under it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::index::{Index, Slot};
use super::key;
use super::meta::Head;
use super::record::{Record, RecordId};
use super::submission::{Conflict, Effect, OwnerId, Submission, Versions, Write};
use crate::metrics::CommitMeter;
use crate::object::UsageRow;
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
    /// Each with the moment it came. Not by `clock`, whose time goes on while the machine sleeps:
    /// what waited over a night's sleep has not waited for the committer.
    entries: VecDeque<(Instant, Entry)>,
    /// When the oldest entry came that the committer has in hand.
    in_hand_since: Option<Instant>,
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
    /// `hides` is the name under which the record was shown until now and is no more.
    Put { type_version: u8, payload: Vec<u8>, shown: Shown, hides: Option<Key> },
    /// `name` is none when it was not shown as an object.
    Remove { id: RecordId, name: Option<Key> },
}

/// What readers are to see of a record.
pub(super) enum Shown {
    /// Kept, and not shown.
    Nothing,
    /// It still bears version 0.
    Object(Box<Resource>),
    Usage(Arc<UsageRow>),
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
        let locked = Locked {
            index,
            incarnations: HashMap::new(),
            entries: VecDeque::new(),
            in_hand_since: None,
            closed: false,
        };
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
        locked.enqueue(Entry::Commit(Commit { writes, head, effects }));
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

    /// How long the oldest entry has waited that the committer has not done with.
    pub(super) fn oldest_age(&self) -> Option<Duration> {
        let locked = self.lock();
        let queued_since = locked.entries.front().map(|(came, _)| *came);
        locked.in_hand_since.or(queued_since).map(|came| came.elapsed())
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

    /// Waits for something to do; what was taken before is done with. A load is always the last of its
    /// batch, so that it reads what was queued before it. `None` when the store is closed and the
    /// queue empty.
    pub(super) fn next_batch(&self) -> Option<Vec<Entry>> {
        let mut locked = self.lock();
        locked.in_hand_since = None;
        while locked.entries.is_empty() {
            if locked.closed {
                return None;
            }
            locked = self.arrived.wait(locked).unwrap_or_else(PoisonError::into_inner);
        }
        let mut bytes = 0;
        let mut batch = Vec::new();
        while batch.len() < SUBMISSIONS_PER_BATCH && bytes < BYTES_PER_BATCH {
            let Some((came, entry)) = locked.entries.pop_front() else { break };
            locked.in_hand_since.get_or_insert(came);
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
            Draft::Put { type_version, payload, shown, .. } => {
                let key = shown.key().cloned();
                let slot = Slot { owner: owner.clone(), key: key.clone(), version };
                let before = self.index.put(id, slot)?;
                let hides = before.as_ref().and_then(|before| before.key.clone()).filter(|_| key.is_none());
                undo.push((id, before));
                Prepared::Put { type_version, payload, shown, hides }
            }
            Draft::Remove(_) => {
                let before = self.index.remove(id, owner)?;
                let name = before.key.clone();
                undo.push((id, Some(before)));
                Prepared::Remove { id, name }
            }
        };
        Ok(Numbered { key: key::record(owner, id), version, change })
    }

    /// A closed store drops the entry, which ends the wait for it.
    fn enqueue(&mut self, entry: Entry) {
        if !self.closed {
            self.entries.push_back((Instant::now(), entry));
        }
    }
}

/// A write, encoded and not yet numbered.
enum Draft {
    Put { id: RecordId, type_version: u8, payload: Vec<u8>, shown: Shown },
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
                let shown = Shown::of(&record);
                Ok(Self::Put { id, type_version: id.kind.newest_version(), payload, shown })
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

impl Shown {
    fn of(record: &Record) -> Self {
        match record {
            Record::Usage(row) => Self::Usage(Arc::clone(row)),
            Record::Namespace(_)
            | Record::User(_)
            | Record::Device(_)
            | Record::Pool(_)
            | Record::Lease(_)
            | Record::Member(_)
            | Record::Event(_)
            | Record::Station(_) => {
                record.present(0).map_or(Self::Nothing, |resource| Self::Object(Box::new(resource)))
            }
        }
    }

    const fn key(&self) -> Option<&Key> {
        match self {
            Self::Object(resource) => Some(&resource.key),
            Self::Nothing | Self::Usage(_) => None,
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

//! The one thread that writes: batch, flush, fsync, and only then view and effects.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::ballast::Ballast;
use super::disk::{Batch, Disk};
use super::lock::DirectoryLock;
use super::queue::{Commit, Entry, Numbered, Prepared, Queue};
use super::record::Record;
use super::submission::{Committed, Effect, OwnerId};
use super::witness::Witness;
use super::{StoreError, envelope, key, meta, open};
use crate::clock;
use crate::view::{Applied, Key, View, ViewWriter};

type OnFatal = Box<dyn FnOnce(&StoreError) + Send>;

/// What the thread works with. The directory's lock goes last, when sled is closed.
pub(super) struct Committer {
    queue: Arc<Queue>,
    disk: Disk,
    witness: Witness,
    view: View,
    writer: ViewWriter,
    ballast: Arc<Ballast>,
    on_fatal: OnFatal,
    _lock: DirectoryLock,
}

impl Committer {
    pub(super) fn new(
        queue: Arc<Queue>,
        disk: Disk,
        witness: Witness,
        writer: ViewWriter,
        ballast: Arc<Ballast>,
        on_fatal: OnFatal,
        lock: DirectoryLock,
    ) -> Self {
        Self { queue, disk, witness, view: writer.view(), writer, ballast, on_fatal, _lock: lock }
    }

    /// Starts the thread. It ends when the queue is closed and empty, or the disk has failed.
    pub(super) fn spawn(self) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name("committer".to_owned()).spawn(move || self.run())
    }

    fn run(mut self) {
        while let Some(batch) = self.queue.next_batch() {
            if let Err(error) = self.carry_out(batch) {
                tracing::error!(%error, "the store failed; nothing more is written or acknowledged");
                return self.give_up(&error);
            }
        }
    }

    /// sled is not closed but left: closing after a failed write waits for ever.
    fn give_up(self, error: &StoreError) {
        self.queue.fail();
        std::mem::forget(self.disk);
        (self.on_fatal)(error);
    }

    fn carry_out(&mut self, batch: Vec<Entry>) -> Result<(), StoreError> {
        self.write(&batch)?;
        for entry in batch {
            match entry {
                Entry::Commit(commit) => {
                    self.queue.meter().carry_out();
                    self.publish(commit);
                }
                Entry::Load { owner, reply } => {
                    // The owner may have given up waiting.
                    let _ = reply.send(self.read(&owner)?);
                }
                Entry::Barrier(reply) => {
                    let _ = reply.send(());
                }
            }
        }
        Ok(())
    }

    /// Makes the writes of a batch durable, with the head as of its last submission.
    fn write(&self, entries: &[Entry]) -> Result<(), StoreError> {
        let mut batch = Batch::default();
        let mut head = None;
        let mut gathered = 0;
        for entry in entries {
            if let Entry::Commit(commit) = entry
                && !commit.writes.is_empty()
            {
                head = Some(commit.head);
                gathered += 1;
                for write in &commit.writes {
                    add(&mut batch, write);
                }
            }
        }
        let Some(head) = head else { return Ok(()) };
        let began_us = clock::monotonic_us();
        batch.put(meta::HEAD_KEY.to_vec(), meta::seal_head(&head));
        batch.put(meta::STEADY_KEY.to_vec(), meta::seal_steady(clock::steady()));
        if let Err(error) = self.ballast.tend() {
            tracing::warn!(%error, "cannot tend the ballast");
        }
        self.disk.commit(batch)?;
        let testified = self.witness.testify(head.version);
        testified.map_err(|source| StoreError::Disk { doing: "noting the newest version", source })?;
        self.queue.meter().commit(gathered, clock::monotonic_us().saturating_sub(began_us));
        Ok(())
    }

    /// Shows a durable submission to readers, then runs its effects.
    fn publish(&mut self, commit: Commit) {
        let writes = commit.writes.into_iter().filter_map(applied).collect();
        let written = self.writer.apply(writes);
        self.writer.reach(commit.head.version);
        if commit.effects.is_empty() {
            return;
        }
        let committed = Committed::new(written, self.view.clone());
        for effect in commit.effects {
            run(effect, &committed);
        }
    }

    fn read(&self, owner: &OwnerId) -> Result<Vec<Record>, StoreError> {
        let prefix = key::owner_prefix(owner);
        let pairs = self.disk.scan(&prefix);
        pairs.map(|pair| pair.and_then(|(key, value)| Ok(open::read_record(&key, &value)?.record))).collect()
    }
}

fn add(batch: &mut Batch, write: &Numbered) {
    match &write.change {
        Prepared::Put { type_version, payload, .. } => {
            let value = envelope::seal(&write.key, *type_version, write.version, payload);
            batch.put(write.key.clone(), value);
        }
        Prepared::Remove { .. } => batch.remove(write.key.clone()),
    }
}

/// What readers see of a write; nothing of a record that is not shown.
fn applied(write: Numbered) -> Option<Applied> {
    let removed = |key: Option<Key>| key.map(|key| Applied::Removed { key, version: write.version });
    match write.change {
        Prepared::Put { resource: Some(resource), .. } => {
            Some(Applied::Put(resource.with_version(write.version)))
        }
        Prepared::Put { resource: None, hides, .. } => removed(hides),
        Prepared::Remove { name } => removed(name),
    }
}

/// One owner's fault must not stop the writing of all.
fn run(effect: Effect, committed: &Committed) {
    if catch_unwind(AssertUnwindSafe(|| effect(committed))).is_err() {
        tracing::error!("an effect panicked; the committer goes on");
    }
}

//! What there is, pending writes included: whose each record is, its name and its version.

use std::collections::{BTreeSet, HashMap};

use super::meta::Head;
use super::record::RecordId;
use super::submission::{Conflict, OwnerId, Precondition};
use crate::view::Key;

/// One record, as submissions are checked against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub owner: OwnerId,
    /// None while the record is not shown: it takes no name then.
    pub key: Option<Key>,
    pub version: u64,
}

/// All records by id and by name.
#[derive(Debug, Default)]
pub(super) struct Index {
    slots: HashMap<RecordId, Slot>,
    names: HashMap<Key, RecordId>,
    head: Head,
}

impl Index {
    /// An empty index after `version`.
    pub(super) fn new(version: u64) -> Self {
        Self { head: Head { version, ..Head::default() }, ..Self::default() }
    }

    pub(super) const fn head(&self) -> Head {
        self.head
    }

    pub(super) fn owners(&self) -> Vec<OwnerId> {
        let owners: BTreeSet<&OwnerId> = self.slots.values().map(|slot| &slot.owner).collect();
        owners.into_iter().cloned().collect()
    }

    pub(super) fn check(&self, precondition: &Precondition) -> Result<(), Conflict> {
        match precondition {
            Precondition::Absent(key) if self.names.contains_key(key) => Err(Conflict::Exists(key.clone())),
            Precondition::Absent(_) => Ok(()),
            Precondition::Version(key, expected) => {
                let found = self.names.get(key).map(|id| self.slots[id].version);
                if found == Some(*expected) {
                    return Ok(());
                }
                Err(Conflict::Changed { key: key.clone(), expected: *expected, found })
            }
        }
    }

    /// The next version.
    pub(super) const fn next_version(&mut self) -> u64 {
        self.head.version += 1;
        self.head.version
    }

    /// Enters a record; returns what stood there. Its name must be free or its own, and it must
    /// be its owner's: whatever an owner believes, two objects never share a name.
    pub(super) fn put(&mut self, id: RecordId, slot: Slot) -> Result<Option<Slot>, Conflict> {
        if let Some(key) = &slot.key
            && self.names.get(key).is_some_and(|holder| *holder != id)
        {
            return Err(Conflict::Exists(key.clone()));
        }
        let renamed = |before: &Slot| slot.key.is_some() && before.key != slot.key;
        if self.slots.get(&id).is_some_and(|before| before.owner != slot.owner || renamed(before)) {
            return Err(Conflict::NotYours(id));
        }
        Ok(self.set(id, Some(slot)))
    }

    /// Takes a record of `owner` out.
    pub(super) fn remove(&mut self, id: RecordId, owner: &OwnerId) -> Result<Slot, Conflict> {
        match self.slots.get(&id) {
            Some(slot) if slot.owner == *owner => self.set(id, None).ok_or(Conflict::NotYours(id)),
            Some(_) | None => Err(Conflict::NotYours(id)),
        }
    }

    /// Puts back what stood at `id`, and the head of that time.
    pub(super) fn undo(&mut self, undone: Vec<(RecordId, Option<Slot>)>, head: Head) {
        for (id, before) in undone.into_iter().rev() {
            self.set(id, before);
        }
        self.head = head;
    }

    fn set(&mut self, id: RecordId, slot: Option<Slot>) -> Option<Slot> {
        let before = self.slots.remove(&id);
        if let Some(before) = &before {
            if let Some(key) = &before.key {
                self.names.remove(key);
            }
            self.head.subtract(before.version);
        }
        if let Some(slot) = slot {
            if let Some(key) = &slot.key {
                self.names.insert(key.clone(), id);
            }
            self.head.add(slot.version);
            self.slots.insert(id, slot);
        }
        before
    }
}

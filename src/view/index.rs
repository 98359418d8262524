//! Everything the view knows, by key, by uid, and in order.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ulid::Ulid;

use super::queue::Queues;
use super::ring::Ring;
use super::usage::Histories;
use super::{Applied, Change, Key, Resource, WatchEvent};
use crate::object::UsageRow;

/// The state behind the view's lock.
#[derive(Debug)]
pub(super) struct State {
    version: u64,
    /// Of the start of the daemon: no ring reaches further back.
    began_at: u64,
    events_kept_per_kind: usize,
    kinds: HashMap<(&'static str, &'static str), KindState>,
    by_uid: HashMap<Ulid, Arc<Resource>>,
    queues: Queues,
    histories: Histories,
    closed: bool,
}

/// The objects and events of one kind.
#[derive(Debug)]
struct KindState {
    /// By namespace, then name.
    objects: BTreeMap<String, BTreeMap<String, Arc<Resource>>>,
    ring: Ring,
}

impl State {
    pub(super) fn new(events_kept_per_kind: usize) -> Self {
        Self {
            version: 0,
            began_at: 0,
            events_kept_per_kind,
            kinds: HashMap::new(),
            by_uid: HashMap::new(),
            queues: Queues::default(),
            histories: Histories::default(),
            closed: false,
        }
    }

    pub(super) const fn version(&self) -> u64 {
        self.version
    }

    pub(super) const fn queues(&self) -> &Queues {
        &self.queues
    }

    pub(super) fn usage(&self, pool: Ulid) -> Vec<Arc<UsageRow>> {
        self.histories.of(pool)
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<Resource>> {
        let objects = &self.kinds.get(&(key.group, key.plural))?.objects;
        objects.get(&key.namespace)?.get(&key.name).cloned()
    }

    pub(super) fn by_uid(&self, uid: Ulid) -> Option<Arc<Resource>> {
        self.by_uid.get(&uid).cloned()
    }

    pub(super) fn list(
        &self,
        group: &'static str,
        plural: &'static str,
        namespace: Option<&str>,
    ) -> Vec<Arc<Resource>> {
        let Some(kind) = self.kinds.get(&(group, plural)) else { return Vec::new() };
        match namespace {
            Some(namespace) => {
                kind.objects.get(namespace).map(|names| names.values().cloned().collect()).unwrap_or_default()
            }
            None => kind.objects.values().flat_map(BTreeMap::values).cloned().collect(),
        }
    }

    pub(super) fn oldest_version(&self, group: &'static str, plural: &'static str) -> u64 {
        self.kinds.get(&(group, plural)).map_or(self.began_at, |kind| kind.ring.oldest_version())
    }

    /// The ring of a kind, if one was made.
    pub(super) fn ring(&self, group: &'static str, plural: &'static str) -> Option<&Ring> {
        self.kinds.get(&(group, plural)).map(|kind| &kind.ring)
    }

    /// The ring of a kind, made now if need be.
    pub(super) fn ring_or_new(&mut self, group: &'static str, plural: &'static str) -> &Ring {
        &self.kind(group, plural).ring
    }

    pub(super) fn begin(&mut self, version: u64, resources: Vec<Resource>) {
        self.version = version;
        self.began_at = version;
        self.kinds.clear();
        for resource in resources {
            self.insert(&Arc::new(resource));
        }
    }

    /// Applies one write; `None` when it is of no object, or a removal finds nothing to remove.
    pub(super) fn apply(&mut self, write: Applied) -> Option<Arc<Resource>> {
        let event = match write {
            Applied::Put(resource) => {
                let resource = Arc::new(resource);
                let previous = self.insert(&resource);
                let change = if previous.is_some() { Change::Modified } else { Change::Added };
                WatchEvent { change, resource, previous }
            }
            Applied::Removed { key, version } => {
                let previous = self.remove(&key)?;
                let resource = Arc::new(previous.as_ref().clone().with_version(version));
                WatchEvent { change: Change::Deleted, resource, previous: Some(previous) }
            }
            Applied::Usage(row) => {
                self.histories.put(row);
                return None;
            }
            Applied::UsageRemoved(uid) => {
                self.histories.remove(uid);
                return None;
            }
        };
        let resource = Arc::clone(&event.resource);
        debug_assert!(resource.version > self.version, "the committer applies in version order");
        self.version = resource.version;
        self.kind(resource.key.group, resource.key.plural).ring.push(event);
        Some(resource)
    }

    pub(super) fn reach(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
        for kind in self.kinds.values_mut() {
            kind.ring.close();
        }
    }

    fn insert(&mut self, resource: &Arc<Resource>) -> Option<Arc<Resource>> {
        let key = resource.key.clone();
        self.by_uid.insert(resource.uid, Arc::clone(resource));
        let objects = &mut self.kind(key.group, key.plural).objects;
        let previous = objects.entry(key.namespace).or_default().insert(key.name, Arc::clone(resource));
        if let Some(previous) = &previous {
            self.queues.forget(previous);
        }
        self.queues.admit(resource);
        previous
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Resource>> {
        let objects = &mut self.kind(key.group, key.plural).objects;
        let names = objects.get_mut(&key.namespace)?;
        let previous = names.remove(&key.name)?;
        if names.is_empty() {
            objects.remove(&key.namespace);
        }
        self.by_uid.remove(&previous.uid);
        self.queues.forget(&previous);
        Some(previous)
    }

    fn kind(&mut self, group: &'static str, plural: &'static str) -> &mut KindState {
        let (began_at, kept, closed) = (self.began_at, self.events_kept_per_kind, self.closed);
        self.kinds.entry((group, plural)).or_insert_with(|| {
            let mut ring = Ring::new(kept, began_at);
            if closed {
                ring.close();
            }
            KindState { objects: BTreeMap::new(), ring }
        })
    }
}

#[cfg(test)]
mod tests {
    use ulid::Ulid;

    use super::super::{Applied, new, samples::GROUP, samples::thing};

    #[test]
    fn a_list_is_in_the_order_of_namespaces_and_names_under_one_version() {
        let (view, mut writer) = new(10);
        let written = [("b", "one"), ("a", "two"), ("a-b", "one"), ("a", "one")];
        for (version, (namespace, name)) in (1..).zip(written) {
            writer.apply(vec![Applied::Put(thing("things", namespace, name, version))]);
        }
        let order = |namespace| {
            let listing = view.list(GROUP, "things", namespace);
            assert_eq!(listing.version, 4);
            listing.items.iter().map(|it| format!("{}/{}", it.key.namespace, it.key.name)).collect::<Vec<_>>()
        };
        assert_eq!(order(None), ["a/one", "a/two", "a-b/one", "b/one"]);
        assert_eq!(order(Some("a")), ["a/one", "a/two"]);
        assert_eq!(order(Some("none")), Vec::<String>::new());
    }

    #[test]
    fn an_object_is_found_by_key_and_uid_until_it_is_removed() {
        let (view, mut writer) = new(10);
        let one = thing("things", "a", "one", 1);
        writer.apply(vec![Applied::Put(one.clone())]);
        assert_eq!(view.get(&one.key).as_deref(), Some(&one));
        assert_eq!(view.by_uid(one.uid).as_deref(), Some(&one));
        assert_eq!(view.by_uid(Ulid(1)), None);
        let last = writer.apply(vec![Applied::Removed { key: one.key.clone(), version: 2 }]);
        assert_eq!(last[0].version, 2);
        assert_eq!((view.get(&one.key), view.by_uid(one.uid)), (None, None));
    }

    #[test]
    fn one_submission_becomes_visible_whole() {
        let (view, mut writer) = new(10);
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let listing = view.list(GROUP, "things", None);
                    let versions: Vec<u64> = listing.items.iter().map(|it| it.version).collect();
                    assert!(
                        versions.is_empty() || versions == [listing.version - 1, listing.version],
                        "{versions:?}"
                    );
                }
            });
            for version in (1..2000).step_by(2) {
                let both = [thing("things", "a", "one", version), thing("things", "a", "two", version + 1)];
                writer.apply(both.map(Applied::Put).to_vec());
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}

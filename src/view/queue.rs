//! The place of each waiting lease in its pool's queue, computed when it is read.
//!
//! Written per change, one bind would rewrite every lease behind it.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use ulid::Ulid;

use super::Resource;
use crate::object::{Time, WORKSTATIONS_GROUP};

const LEASES: &str = "workstationpoolleases";

/// The waiting leases of every pool, by the pool's uid. Cheap to clone: a copy shares the lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues(HashMap<Ulid, Arc<Line>>);

/// Oldest first, ties by uid (rule L7). Sorted, so that a place is found by bisection; leases come
/// at its end and go from its front, where a deque is cheapest.
type Line = VecDeque<(Time, Ulid)>;

/// Which line a lease stands in, and where.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    pool: Ulid,
    place: (Time, Ulid),
}

impl Queues {
    /// Puts a lease that waits into its line.
    pub(super) fn admit(&mut self, resource: &Resource) {
        let Some(waiting) = waiting(resource) else { return };
        let line = Arc::make_mut(self.0.entry(waiting.pool).or_default());
        if let Err(at) = line.binary_search(&waiting.place) {
            line.insert(at, waiting.place);
        }
    }

    /// Takes a lease that waited out of its line.
    pub(super) fn forget(&mut self, resource: &Resource) {
        let Some(waiting) = waiting(resource) else { return };
        let Some(line) = self.0.get_mut(&waiting.pool) else { return };
        if let Ok(at) = line.binary_search(&waiting.place) {
            Arc::make_mut(line).remove(at);
        }
        if line.is_empty() {
            self.0.remove(&waiting.pool);
        }
    }

    fn position(&self, resource: &Resource) -> Option<usize> {
        let waiting = waiting(resource)?;
        let at = self.0.get(&waiting.pool)?.binary_search(&waiting.place).ok()?;
        Some(at + 1)
    }
}

/// The value with `status.queuePosition`, where there is one.
pub(super) fn with_position<'a>(resource: &'a Resource, queues: &Queues) -> Cow<'a, Value> {
    let Some(position) = queues.position(resource) else { return Cow::Borrowed(&resource.value) };
    let mut value = resource.value.clone();
    if let Some(status) = value.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("queuePosition".to_owned(), Value::from(position));
    }
    Cow::Owned(value)
}

/// A lease waits while it is Pending, still needed, and not being deleted.
fn waiting(resource: &Resource) -> Option<Waiting> {
    if resource.key.plural != LEASES || resource.key.group != WORKSTATIONS_GROUP {
        return None;
    }
    let text = |pointer: &str| resource.value.pointer(pointer).and_then(Value::as_str);
    let pending = text("/status/phase") == Some("Pending")
        && text("/spec/state").is_none_or(|state| state == "Needed")
        && text("/metadata/deletionTimestamp").is_none();
    if !pending {
        return None;
    }
    let pool = Ulid::from_string(text("/status/poolUID")?).ok()?;
    let created = Time::parse(text("/metadata/creationTimestamp")?).ok()?;
    Some(Waiting { pool, place: (created, resource.uid) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::samples::{self, waiting_lease};
    use super::super::{Applied, View, new};
    use super::*;

    const POOL: Ulid = Ulid(100);
    const OTHER: Ulid = Ulid(200);

    /// The places of the leases 1, 2, 3, … as read now.
    fn places(view: &View, leases: u128) -> Vec<Value> {
        let place = |uid| {
            let lease = view.by_uid(Ulid(uid)).expect("written");
            view.read(&lease)["status"]["queuePosition"].clone()
        };
        (1..=leases).map(place).collect()
    }

    // rule L7
    #[test]
    fn the_oldest_is_next_ties_go_by_uid_and_pools_have_queues_of_their_own() {
        let (view, mut writer) = new(10);
        let leases = [(1, POOL, 3000), (2, POOL, 1000), (3, OTHER, 2000), (4, POOL, 1000)];
        for (version, (uid, pool, created_ms)) in (1..).zip(leases) {
            writer.apply(vec![Applied::Put(waiting_lease(uid, pool, created_ms, version))]);
        }
        assert_eq!(places(&view, 4), [json!(3), json!(1), json!(1), json!(2)]);
    }

    #[test]
    fn who_is_bound_deleted_or_released_leaves_the_queue_and_the_rest_move_up() {
        let (view, mut writer) = new(10);
        for uid in 1..=5 {
            let version = u64::try_from(uid).expect("small");
            writer.apply(vec![Applied::Put(waiting_lease(uid, POOL, 1000, version))]);
        }
        let mut bound = waiting_lease(1, POOL, 1000, 6);
        bound.value["status"]["phase"] = json!("Starting");
        let mut deleted = waiting_lease(2, POOL, 1000, 7);
        deleted.value["metadata"]["deletionTimestamp"] = json!(Time::from_millis(2000));
        let mut released = waiting_lease(3, POOL, 1000, 8);
        released.value["spec"]["state"] = json!("Done");
        writer.apply([bound, deleted, released].map(Applied::Put).to_vec());
        assert_eq!(places(&view, 5), [Value::Null, Value::Null, Value::Null, json!(1), json!(2)]);
        let key = waiting_lease(4, POOL, 1000, 0).key;
        writer.apply(vec![Applied::Removed { key, version: 9 }]);
        let last = view.by_uid(Ulid(5)).expect("written");
        assert_eq!(view.read(&last)["status"]["queuePosition"], json!(1));
        writer.apply(vec![Applied::Put(waiting_lease(1, POOL, 1000, 10))]);
        assert_eq!(
            view.read(&last)["status"]["queuePosition"],
            json!(2),
            "lost its member: in its old place again"
        );
    }

    #[test]
    fn a_list_tells_the_places_of_its_own_moment() {
        let (view, mut writer) = new(10);
        writer.apply(vec![
            Applied::Put(waiting_lease(1, POOL, 1000, 1)),
            Applied::Put(waiting_lease(2, POOL, 1000, 2)),
        ]);
        let listing = view.list(samples::GROUP, LEASES, Some("local"));
        writer.apply(vec![Applied::Removed { key: listing.items[0].key.clone(), version: 3 }]);
        let places: Vec<_> = listing
            .items
            .iter()
            .map(|lease| listing.read(lease)["status"]["queuePosition"].clone())
            .collect();
        assert_eq!(places, [json!(1), json!(2)]);
    }
}

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

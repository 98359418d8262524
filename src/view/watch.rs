//! Following the changes of one kind: in version order, with no gap and no duplicate.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;

use super::{Resource, View};

/// How many events one look takes out of the ring.
const EVENTS_PER_LOOK: usize = 256;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    pub change: Change,
    /// The state after the change; for `Deleted` the last one, under the version of the removal.
    pub resource: Arc<Resource>,
    /// The state before it, for selectors that the object left or entered.
    pub previous: Option<Arc<Resource>>,
}

/// The asked version is further back than events are kept, or than this start of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {asked} ({oldest}); list again and watch from the list's version")]
pub struct TooOld {
    pub asked: u64,
    /// The oldest version a watch may start from.
    pub oldest: u64,
}

/// A position in the stream of changes of one kind.
#[derive(Debug)]
pub struct Watch {
    view: View,
    group: &'static str,
    plural: &'static str,
    namespace: Option<String>,
    /// Everything up to this version was handed out or lies in `ready`.
    position: u64,
    ready: VecDeque<WatchEvent>,
    waiting: watch::Receiver<()>,
}

impl Watch {
    pub(super) fn start(
        view: View,
        group: &'static str,
        plural: &'static str,
        namespace: Option<String>,
        since: Option<u64>,
    ) -> Result<Self, TooOld> {
        let mut state = view.change();
        let ring = state.ring_or_new(group, plural);
        let (waiting, oldest) = (ring.waiting(), ring.oldest_version());
        let (position, ready) = match since {
            Some(asked) if asked < oldest => return Err(TooOld { asked, oldest }),
            Some(asked) => (asked, VecDeque::new()),
            None => {
                let present = state.list(group, plural, namespace.as_deref());
                let added = |resource| WatchEvent { change: Change::Added, resource, previous: None };
                (state.version(), present.into_iter().map(added).collect())
            }
        };
        drop(state);
        Ok(Self { view, group, plural, namespace, position, ready, waiting })
    }

    /// The next change. `None` when the daemon is going down; `TooOld` when this watcher was so
    /// slow that events it has not seen are no longer kept. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, TooOld>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            self.waiting.mark_unchanged();
            if let Err(too_old) = self.look() {
                return Some(Err(too_old));
            }
            if self.ready.is_empty() && self.waiting.changed().await.is_err() {
                return None;
            }
        }
    }

    /// For a bookmark: the newest version up to which every change has been handed out, or `None`
    /// while some that happened have not.
    pub fn caught_up(&mut self) -> Option<u64> {
        if self.ready.is_empty() && self.look().is_err() {
            return None;
        }
        self.ready.is_empty().then_some(self.position)
    }

    /// Takes what happened since `position` out of the ring.
    fn look(&mut self) -> Result<(), TooOld> {
        let state = self.view.look();
        let Some(ring) = state.ring(self.group, self.plural) else { return Ok(()) };
        let oldest = ring.oldest_version();
        if self.position < oldest {
            return Err(TooOld { asked: self.position, oldest });
        }
        let mut events = ring.after(self.position);
        while self.ready.len() < EVENTS_PER_LOOK {
            let Some(event) = events.next() else {
                // A watch may wait for a version still to come.
                self.position = self.position.max(state.version());
                return Ok(());
            };
            self.position = event.resource.version;
            if self.namespace.as_ref().is_none_or(|namespace| *namespace == event.resource.key.namespace) {
                self.ready.push_back(event.clone());
            }
        }
        Ok(())
    }
}

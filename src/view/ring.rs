//! The newest events of one kind, and who waits for the next.
//!
//! A ring for each kind, so that a busy kind neither wakes those who watch a quiet one nor pushes
//! its events out. Watchers hold a position, not a queue: a slow one costs the writer nothing.

use std::collections::VecDeque;

use tokio::sync::watch;

use super::WatchEvent;

/// The kept events of one kind, in version order.
#[derive(Debug)]
pub(super) struct Ring {
    events: VecDeque<WatchEvent>,
    kept_max: usize,
    /// The version of the newest event no longer kept (or of the daemon's start).
    oldest_version: u64,
    /// Dropped when the view closes.
    wake: Option<watch::Sender<()>>,
    waiting: watch::Receiver<()>,
}

impl Ring {
    /// An empty ring that knows of nothing up to `began_at`.
    pub(super) fn new(kept_max: usize, began_at: u64) -> Self {
        let (wake, waiting) = watch::channel(());
        Self {
            events: VecDeque::new(),
            kept_max: kept_max.max(1),
            oldest_version: began_at,
            wake: Some(wake),
            waiting,
        }
    }

    /// The oldest version after which every event is still kept.
    pub(super) const fn oldest_version(&self) -> u64 {
        self.oldest_version
    }

    /// What resolves at the next event.
    pub(super) fn waiting(&self) -> watch::Receiver<()> {
        self.waiting.clone()
    }

    pub(super) fn push(&mut self, event: WatchEvent) {
        if self.events.len() == self.kept_max
            && let Some(dropped) = self.events.pop_front()
        {
            self.oldest_version = dropped.resource.version;
        }
        self.events.push_back(event);
        if let Some(wake) = &self.wake {
            wake.send_replace(());
        }
    }

    /// The events after the version `since`, oldest first.
    pub(super) fn after(&self, since: u64) -> impl Iterator<Item = &WatchEvent> {
        let first = self.events.partition_point(|event| event.resource.version <= since);
        self.events.range(first..)
    }

    /// Ends every wait.
    pub(super) fn close(&mut self) {
        self.wake = None;
    }
}

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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::{Applied, ViewWriter, new, samples};
    use super::*;

    const GROUP: &str = samples::GROUP;

    fn write(writer: &mut ViewWriter, plural: &'static str, namespace: &str, name: &str, version: u64) {
        writer.apply(vec![Applied::Put(samples::thing(plural, namespace, name, version))]);
    }

    async fn heard(watch: &mut Watch) -> (Change, u64) {
        let event = watch.next().await.expect("the view is open").expect("not too old");
        (event.change, event.resource.version)
    }

    #[tokio::test]
    async fn a_watch_tells_what_there_is_and_then_each_change_with_the_state_before() {
        let (view, mut writer) = new(100);
        write(&mut writer, "things", "a", "one", 1);
        let mut watch = view.watch(GROUP, "things", None, None).expect("nothing is too old for everything");
        assert_eq!(heard(&mut watch).await, (Change::Added, 1));
        write(&mut writer, "things", "a", "one", 2);
        let event = watch.next().await.expect("open").expect("kept");
        assert_eq!((event.change, event.resource.version), (Change::Modified, 2));
        assert_eq!(event.previous.expect("it was there").version, 1);
        let key = samples::thing("things", "a", "one", 0).key;
        writer.apply(vec![Applied::Removed { key, version: 3 }]);
        assert_eq!(heard(&mut watch).await, (Change::Deleted, 3));
    }

    #[tokio::test]
    async fn a_watch_of_a_namespace_hears_of_no_other_and_of_no_other_kind() {
        let (view, mut writer) = new(100);
        let mut watch = view.watch(GROUP, "things", Some("a"), Some(0)).expect("kept");
        write(&mut writer, "things", "b", "one", 1);
        write(&mut writer, "others", "a", "one", 2);
        write(&mut writer, "things", "a", "one", 3);
        assert_eq!(heard(&mut watch).await, (Change::Added, 3));
        assert_eq!(watch.caught_up(), Some(3));
        write(&mut writer, "things", "b", "one", 4);
        assert_eq!(watch.caught_up(), Some(4), "a bookmark moves on although nothing was to be told");
        write(&mut writer, "things", "a", "one", 5);
        assert_eq!(watch.caught_up(), None, "there is something to be told first");
        assert_eq!(heard(&mut watch).await, (Change::Modified, 5));
    }

    #[tokio::test]
    async fn a_list_and_a_watch_from_its_version_leave_no_gap_and_no_double() {
        let (view, mut writer) = new(100);
        write(&mut writer, "things", "a", "one", 1);
        write(&mut writer, "others", "a", "one", 2);
        let listing = view.list(GROUP, "things", None);
        assert_eq!((listing.version, listing.items.len()), (2, 1));
        write(&mut writer, "things", "a", "two", 3);
        let mut watch = view.watch(GROUP, "things", None, Some(listing.version)).expect("kept");
        assert_eq!(heard(&mut watch).await, (Change::Added, 3));
    }

    #[tokio::test]
    async fn who_asks_for_what_is_no_longer_kept_or_falls_behind_is_told_how_far_it_goes_back() {
        let (view, mut writer) = new(4);
        let mut slow = view.watch(GROUP, "things", None, Some(0)).expect("kept so far");
        for version in 1..=6 {
            write(&mut writer, "things", "a", "one", version);
        }
        write(&mut writer, "others", "a", "one", 7);
        let too_old = slow.next().await.expect("open").expect_err("fell off the ring");
        assert_eq!(too_old, TooOld { asked: 0, oldest: 2 });
        assert_eq!(view.watch(GROUP, "things", None, Some(1)).expect_err("not kept").oldest, 2);
        assert_eq!(view.oldest_version(GROUP, "things"), 2);
        assert!(view.watch(GROUP, "things", None, Some(2)).is_ok());
        assert!(view.watch(GROUP, "others", None, Some(0)).is_ok(), "a quiet kind keeps its own");
    }

    #[tokio::test]
    async fn a_watch_may_wait_for_a_version_still_to_come() {
        let (view, mut writer) = new(4);
        let mut watch = view.watch(GROUP, "things", None, Some(2)).expect("the future is not too old");
        for version in 1..=3 {
            write(&mut writer, "things", "a", "one", version);
        }
        assert_eq!(heard(&mut watch).await, (Change::Modified, 3));
    }

    #[tokio::test]
    async fn every_watch_ends_when_the_writer_goes() {
        let (view, mut writer) = new(4);
        let mut watch = view.watch(GROUP, "things", None, None).expect("kept");
        write(&mut writer, "things", "a", "one", 1);
        drop(writer);
        assert_eq!(heard(&mut watch).await, (Change::Added, 1));
        assert!(watch.next().await.is_none());
        let mut late = view.watch(GROUP, "never seen", None, None).expect("kept");
        assert!(late.next().await.is_none());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn many_watchers_of_many_writers_all_hear_the_same_story_in_version_order() {
        const WRITERS: usize = 4;
        const WRITES: usize = 500;
        let total = u64::try_from(WRITERS * WRITES).expect("a few");
        let (view, writer) = new(10_000);
        let watchers: Vec<_> = (0..16)
            .map(|number| {
                // Some begin with everything, some somewhere in the middle.
                let since = (number % 2 == 1).then_some(number);
                let mut watch = view.watch(GROUP, "things", None, since).expect("kept");
                tokio::spawn(async move {
                    let mut story = Vec::new();
                    while story.last() != Some(&total) {
                        story.push(heard(&mut watch).await.1);
                    }
                    (since.unwrap_or(0), story)
                })
            })
            .collect();
        let writer = Arc::new(Mutex::new((0, writer)));
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let writer = Arc::clone(&writer);
                std::thread::spawn(move || {
                    for _ in 0..WRITES {
                        let mut locked = writer.lock().expect("no writer panicked");
                        locked.0 += 1;
                        let version = locked.0;
                        write(&mut locked.1, "things", "a", &format!("thing-{number}"), version);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("no writer panicked");
        }
        for watcher in watchers {
            let (since, story) = watcher.await.expect("no watcher panicked");
            assert_eq!(story, (since + 1..=total).collect::<Vec<_>>());
        }
    }
}

//! Watches: the changes of a selection, one JSON object a line, for as long as the client listens.
//!
//! Each watch is a task between the view's ring and the connection. It never holds the writers up:
//! a client that does not read in time is cut off, and one that fell off the ring is told 410; both
//! list again and go on from there.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, MissedTickBehavior};

use crate::clock;
use crate::object::{FieldError, FieldReason, Kind};
use crate::view::{Change, TooOld, View, Watch, WatchEvent};

use super::query::Query;
use super::read::Selection;
use super::reply::{self, JSON, Reply};
use super::serve::Server;
use super::status::Status;

/// The bookmark that ends the present state carries this, and clients wait for it.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
/// Events that are ready at once share a chunk up to this size.
const CHUNK_BYTES: usize = 32 * 1024;
/// Chunks that may wait for a slow client.
const CHUNKS_WAITING: usize = 4;
/// How long a watch lasts that does not say: this, and up to as much again, so that the clients of
/// one moment do not all come back in one.
const DEFAULT_MINUTES: u64 = 30;

/// What a client wants to be told.
#[derive(Debug)]
struct Wish {
    selection: Selection,
    start: Start,
    bookmarks: bool,
    lasting: Duration,
}

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// With an `ADDED` for each object there is.
    Present,
    /// The same, and then a bookmark that says that this was all.
    PresentThenBookmark,
    /// With the first change after this version.
    After(u64),
    /// With the next change.
    Now,
}

/// One running watch.
struct Watcher {
    view: View,
    wish: Wish,
    bookmark_every: Duration,
    slow_after: Duration,
    out: mpsc::Sender<Bytes>,
    /// Lines not yet sent.
    chunk: Vec<u8>,
}

/// Why a watch ends by itself.
enum End {
    /// The client is gone or reads too slowly, or the daemon is going down.
    Silent,
    TooOld(TooOld),
}

/// Starts a watch of `selection`.
pub fn start(server: &Arc<Server>, selection: Selection, query: &Query) -> Result<Reply, Status> {
    let wish = Wish::read(selection, query)?;
    let permit = server.admit_watch()?;
    let (out, reply) = reply::stream(JSON, CHUNKS_WAITING);
    let watcher = Watcher {
        view: server.view().clone(),
        wish,
        bookmark_every: server.options().bookmark_every,
        slow_after: server.options().slow_after,
        out,
        chunk: Vec::new(),
    };
    tokio::spawn(watcher.run(Arc::clone(server), permit));
    Ok(reply)
}

impl Wish {
    fn read(selection: Selection, query: &Query) -> Result<Self, Status> {
        let lasting = query.number("timeoutSeconds")?.filter(|seconds| *seconds > 0);
        let lasting = lasting.map_or_else(default_lasting, Duration::from_secs);
        let bookmarks = query.switch("allowWatchBookmarks").unwrap_or(false);
        Ok(Self { start: Start::read(query, bookmarks)?, selection, bookmarks, lasting })
    }
}

impl Start {
    fn read(query: &Query, bookmarks: bool) -> Result<Self, Status> {
        let matching = query.get("resourceVersionMatch");
        let since = query.resource_version()?.filter(|version| *version > 0);
        match query.switch("sendInitialEvents") {
            Some(_) if matching != Some("NotOlderThan") => Err(forbidden_match(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            )),
            None if matching.is_some() => Err(forbidden_match(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )),
            Some(true) if bookmarks => Ok(Self::PresentThenBookmark),
            Some(true) => Ok(Self::Present),
            Some(false) => Ok(since.map_or(Self::Now, Self::After)),
            None => Ok(since.map_or(Self::Present, Self::After)),
        }
    }
}

fn forbidden_match(why: &str) -> Status {
    let message = format!("Forbidden: {why}");
    let error = FieldError::new("resourceVersionMatch", FieldReason::Forbidden, message);
    Status::invalid_option("ListOptions", &error)
}

fn default_lasting() -> Duration {
    let spread = u64::try_from(clock::entropy() % u128::from(DEFAULT_MINUTES * 60)).unwrap_or_default();
    Duration::from_secs(DEFAULT_MINUTES * 60 + spread)
}

impl Watcher {
    async fn run(mut self, server: Arc<Server>, _permit: OwnedSemaphorePermit) {
        let (gone, lasting) = (self.out.clone(), self.wish.lasting);
        let end = tokio::select! {
            end = self.follow() => end,
            () = tokio::time::sleep(lasting) => End::Silent,
            () = gone.closed() => End::Silent,
            () = server.stopping() => End::Silent,
        };
        if let End::TooOld(TooOld { asked, oldest }) = end {
            let status = Status::expired(format!("too old resource version: {asked} ({oldest})"));
            self.chunk.extend(line("ERROR", &status.body()));
        }
        self.flush().await;
    }

    async fn follow(&mut self) -> End {
        match self.follow_until_end().await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn follow_until_end(&mut self) -> Result<std::convert::Infallible, End> {
        let mut watch = self.begin()?;
        if self.wish.start == Start::PresentThenBookmark {
            let version = self.drain(&mut watch).await?;
            let annotations = json!({INITIAL_EVENTS_END: "true"});
            self.bookmark(&json!({"annotations": annotations, "resourceVersion": version.to_string()}));
        }
        let mut bookmarks =
            tokio::time::interval_at(Instant::now() + self.bookmark_every, self.bookmark_every);
        bookmarks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let version = self.drain(&mut watch).await?;
            self.flush().await.then_some(()).ok_or(End::Silent)?;
            tokio::select! {
                event = watch.next() => self.tell(&taken(event)?),
                _ = bookmarks.tick(), if self.wish.bookmarks => {
                    self.bookmark(&json!({"resourceVersion": version.to_string()}));
                }
            }
        }
    }

    fn begin(&self) -> Result<Watch, End> {
        let since = match self.wish.start {
            Start::Present | Start::PresentThenBookmark => None,
            Start::After(version) => Some(version),
            Start::Now => Some(self.view.version()),
        };
        let Selection { kind, ref namespace, .. } = self.wish.selection;
        self.view.watch(kind.group, kind.plural, namespace.as_deref(), since).map_err(End::TooOld)
    }

    /// Tells everything that has happened, and returns the version this is true of.
    async fn drain(&mut self, watch: &mut Watch) -> Result<u64, End> {
        loop {
            if let Some(version) = watch.caught_up() {
                return Ok(version);
            }
            let event = taken(watch.next().await)?;
            self.tell(&event);
            if self.chunk.len() >= CHUNK_BYTES && !self.flush().await {
                return Err(End::Silent);
            }
        }
    }

    /// Writes one event down as this client sees it: an object that starts to match is new to it,
    /// one that stops to match is gone.
    fn tell(&mut self, event: &WatchEvent) {
        let selection = &self.wish.selection;
        let before = event.previous.as_ref().filter(|previous| selection.matches(&previous.value));
        let now = event.change != Change::Deleted && selection.matches(&event.resource.value);
        let line = match (before, now) {
            (None, false) => return,
            (None, true) => line("ADDED", &self.view.read(&event.resource)),
            (Some(_), true) => line("MODIFIED", &self.view.read(&event.resource)),
            (Some(_), false) if event.change == Change::Deleted => line("DELETED", &event.resource.value),
            (Some(previous), false) => {
                let mut last = previous.value.clone();
                last["metadata"]["resourceVersion"] = json!(event.resource.version.to_string());
                line("DELETED", &last)
            }
        };
        self.chunk.extend(line);
    }

    fn bookmark(&mut self, metadata: &Value) {
        let kind: &Kind = self.wish.selection.kind;
        let object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata});
        self.chunk.extend(line("BOOKMARK", &object));
    }

    /// Sends what is written down. False when the client does not take it in time.
    async fn flush(&mut self) -> bool {
        if self.chunk.is_empty() {
            return true;
        }
        let chunk = Bytes::from(std::mem::take(&mut self.chunk));
        self.out.send_timeout(chunk, self.slow_after).await.is_ok()
    }
}

fn taken(event: Option<Result<WatchEvent, TooOld>>) -> Result<WatchEvent, End> {
    event.ok_or(End::Silent)?.map_err(End::TooOld)
}

fn line(r#type: &str, object: &Value) -> Vec<u8> {
    let mut line = format!("{{\"type\":\"{type}\",\"object\":").into_bytes();
    serde_json::to_writer(&mut line, object).expect("a JSON value is written to memory");
    line.extend(b"}\n");
    line
}

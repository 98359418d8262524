//! Connections: accepted, bounded, served, and drained at the end.
//!
//! A connection is generic over its transport; what differs is how its peer is known. When the
//! daemon stops, no more are accepted and watches end at once; requests under way have
//! `drain_within` to finish, and SSH sessions end with the last of them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch};
use tokio::task::JoinSet;

use crate::actor::doors::Backend;
use crate::view::View;

use super::answer::answer;
use super::discovery::Discovery;
use super::peer::{Peer, SocketGroup};
use super::status::Status;

/// Bounds of the front end. Every one of them ends in an answer or a closed connection, never in a
/// wait without end.
#[derive(Clone, Debug)]
pub struct Options {
    pub connections: usize,
    /// Requests that are worked on at once, watches and SSH sessions apart.
    pub requests: usize,
    pub watches: usize,
    pub sessions: usize,
    /// How long a request waits for its turn before it is sent away with 429.
    pub turn_within: Duration,
    pub head_max_bytes: usize,
    /// Also how long a connection may idle between two requests.
    pub head_within: Duration,
    pub body_max_bytes: usize,
    pub body_within: Duration,
    /// How long an owner may take before the answer is 504, "outcome unknown".
    pub answer_within: Duration,
    /// How often a quiet watch is told how far it has come.
    pub bookmark_every: Duration,
    /// How long a watcher may leave events unread before it is cut off.
    pub slow_after: Duration,
    /// How long requests under way may take once the daemon stops.
    pub drain_within: Duration,
    pub who: SocketGroup,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connections: 4096,
            requests: 512,
            watches: 1024,
            sessions: 1024,
            turn_within: Duration::from_secs(1),
            head_max_bytes: 64 * 1024,
            head_within: Duration::from_mins(1),
            body_max_bytes: 3 * 1024 * 1024,
            body_within: Duration::from_secs(30),
            answer_within: Duration::from_secs(30),
            bookmark_every: Duration::from_mins(1),
            slow_after: Duration::from_secs(30),
            drain_within: Duration::from_secs(10),
            who: SocketGroup::ringleader(),
        }
    }
}

/// What all connections share.
pub(super) struct Server {
    backend: Arc<dyn Backend>,
    options: Options,
    discovery: Discovery,
    requests: Semaphore,
    watches: Arc<Semaphore>,
    sessions: Arc<Semaphore>,
    phase: watch::Receiver<Phase>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Serving,
    /// Nothing new; what is under way may finish.
    Draining,
    Stopped,
}

/// Serves the API on `listener` until `shutdown` says true (or its sender is gone), and returns
/// when everything under way has finished or had its time.
pub async fn serve(
    backend: Arc<dyn Backend>,
    listener: UnixListener,
    options: Options,
    mut shutdown: watch::Receiver<bool>,
) {
    let (phase, server) = Server::new(backend, options);
    let places = Arc::new(Semaphore::new(server.options.connections));
    let mut connections = JoinSet::new();
    let ended = async { shutdown.wait_for(|stop| *stop).await.map(drop) };
    tokio::pin!(ended);
    loop {
        tokio::select! {
            _ = &mut ended => break,
            (stream, place) = next_connection(&listener, &places) => {
                let server = Arc::clone(&server);
                connections.spawn(async move {
                    let peer = unix_peer(&stream, &server.options.who);
                    server.connection(stream, peer).await;
                    drop(place);
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    phase.send_replace(Phase::Draining);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(server.options.drain_within, drained).await.is_err() {
        tracing::warn!(left = connections.len(), "requests did not finish in time and are cut off");
    }
    phase.send_replace(Phase::Stopped);
    connections.shutdown().await;
}

/// Waits for a free place, then for someone to take it: those beyond the limit wait in the kernel's
/// queue.
async fn next_connection(
    listener: &UnixListener,
    places: &Arc<Semaphore>,
) -> (UnixStream, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, place),
            Err(error) => {
                // Out of file descriptors, most likely: others must close some first.
                tracing::warn!(%error, "no connection could be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

fn unix_peer(stream: &UnixStream, who: &SocketGroup) -> Peer {
    match stream.peer_cred() {
        Ok(credentials) => who.peer(credentials.uid(), credentials.gid()),
        Err(error) => Peer::Stranger(format!("the kernel does not say who you are: {error}")),
    }
}

impl Server {
    /// What all connections share, and the hand that ends them.
    pub(super) fn new(backend: Arc<dyn Backend>, options: Options) -> (watch::Sender<Phase>, Arc<Self>) {
        let (sender, phase) = watch::channel(Phase::Serving);
        let server = Self {
            discovery: Discovery::new(backend.registry()),
            requests: Semaphore::new(options.requests),
            watches: Arc::new(Semaphore::new(options.watches)),
            sessions: Arc::new(Semaphore::new(options.sessions)),
            backend,
            options,
            phase,
        };
        (sender, Arc::new(server))
    }

    /// Serves one connection, of whatever transport, until it ends.
    pub(super) async fn connection<S>(self: &Arc<Self>, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(|request| {
            let (server, peer) = (Arc::clone(self), peer.clone());
            async move { Ok::<_, Infallible>(answer(&server, &peer, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options.head_within)
            .max_header_size(self.options.head_max_bytes)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stopping() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke off");
        }
    }

    pub(super) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(super) fn view(&self) -> &View {
        self.backend.view()
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    pub(super) fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    /// How many watches and SSH sessions are open.
    pub(super) fn open(&self) -> (usize, usize) {
        let watches = self.options.watches - self.watches.available_permits();
        (watches, self.options.sessions - self.sessions.available_permits())
    }

    /// A turn for one request.
    pub(super) async fn admit_request(&self) -> Result<SemaphorePermit<'_>, Status> {
        let turn = tokio::time::timeout(self.options.turn_within, self.requests.acquire()).await;
        turn.ok()
            .and_then(Result::ok)
            .ok_or_else(|| Status::too_many("too many requests, please try again later", 1))
    }

    /// A place for one watch.
    pub(super) fn admit_watch(&self) -> Result<OwnedSemaphorePermit, Status> {
        let place = Arc::clone(&self.watches).try_acquire_owned();
        place.map_err(|_| Status::too_many("too many watches, please try again later", 1))
    }

    /// A place for one SSH session.
    pub(super) fn admit_session(&self) -> Result<OwnedSemaphorePermit, Status> {
        let place = Arc::clone(&self.sessions).try_acquire_owned();
        place.map_err(|_| Status::too_many("too many ssh sessions, please try again later", 1))
    }

    /// Done when the daemon begins to stop.
    pub(super) async fn stopping(&self) {
        self.reached(Phase::Draining).await;
    }

    /// Done when everything under way has finished or had its time.
    pub(super) async fn stopped(&self) {
        self.reached(Phase::Stopped).await;
    }

    async fn reached(&self, phase: Phase) {
        // An error means that `serve` is gone, which is the end as well.
        let _ = self.phase.clone().wait_for(|now| *now >= phase).await;
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("options", &self.options).finish_non_exhaustive()
    }
}

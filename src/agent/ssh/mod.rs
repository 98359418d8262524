//! The SSH server of a member, on a listener that only the daemon's host can reach.
//!
//! ```text
//!   ssh.sock ─► Gate ─► russh ─► Connection (handler)     one a connection
//!                ▲                    │ data, eof              orders: signal, resize
//!                │ pauses          Input (bounded)                  │
//!                └──── Valve ◄────────┴──────────► program.rs ◄─────┘
//!                                                   one task a session: the child and its streams
//! ```
//!
//! Publickey only, the login user only. A session is an exec or a shell, with or without a
//! terminal. What later versions bring (sftp, forwarding) is refused cleanly.

mod connection;
mod modes;
mod program;
mod valve;

use std::sync::Arc;
use std::time::Duration;

use russh::keys::PrivateKey;
use russh::{MethodKind, MethodSet, server};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};

use super::place::Place;
use connection::Connection;
use valve::{Gate, Valve};

/// Connections at once, and those of them that have not logged in.
const CONNECTIONS_MAX: usize = 256;
const STRANGERS_MAX: usize = 16;
/// How long a connection may take to log in.
const LOGIN_MAX: Duration = Duration::from_mins(1);
/// Refused keys before a connection is closed. People's agents offer many.
const REFUSALS_MAX: usize = 20;
/// A client that answers none of three questions, a minute apart, is gone.
const KEEPALIVE: Duration = Duration::from_mins(1);
const KEEPALIVES_MAX: usize = 3;
const PACKET_BYTES_MAX: u32 = 32 << 10;
/// How long to wait when a connection cannot be accepted (no descriptors are left).
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// The server; one an agent.
#[derive(Clone)]
pub(super) struct Server {
    place: Place,
    config: Arc<server::Config>,
    sessions: watch::Sender<u32>,
    connections: Arc<Semaphore>,
    strangers: Arc<Semaphore>,
}

impl Server {
    /// `sessions` is kept at the number of connections that are logged in.
    pub(super) fn new(place: Place, host_key: PrivateKey, sessions: watch::Sender<u32>) -> Self {
        Self {
            place,
            config: Arc::new(config(host_key)),
            sessions,
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            strangers: Arc::new(Semaphore::new(STRANGERS_MAX)),
        }
    }

    /// Serves clients for ever.
    pub(super) async fn serve(self, listener: UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.accept(stream),
                Err(error) => {
                    tracing::warn!(%error, "no ssh connection can be accepted");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    /// Serves one client on a task of its own; one too many is closed at once.
    fn accept(&self, stream: UnixStream) {
        let permits =
            (self.connections.clone().try_acquire_owned(), self.strangers.clone().try_acquire_owned());
        let (Ok(connected), Ok(stranger)) = permits else {
            return tracing::warn!("too many ssh connections: one was closed");
        };
        let valve = Arc::new(Valve::new(LOGIN_MAX));
        let gate = Gate::new(stream, valve.clone());
        let connection = Connection::new(self.place.clone(), valve, stranger, self.sessions.clone());
        let config = self.config.clone();
        tokio::spawn(async move {
            let _connected = connected;
            let served = async { server::run_stream(config, gate, connection).await?.await }.await;
            if let Err(error) = served {
                tracing::debug!(%error, "an ssh connection has ended");
            }
        });
    }
}

fn config(host_key: PrivateKey) -> server::Config {
    server::Config {
        server_id: russh::SshId::Standard(concat!("SSH-2.0-Ringleader_", env!("CARGO_PKG_VERSION")).into()),
        methods: MethodSet::from(&[MethodKind::PublicKey][..]),
        // Public keys are no secret to guess, so a refusal need not take the same time.
        auth_rejection_time: Duration::ZERO,
        max_auth_attempts: REFUSALS_MAX,
        keys: vec![host_key],
        window_size: valve::WINDOW_BYTES,
        maximum_packet_size: PACKET_BYTES_MAX,
        // Our handler takes every message itself: nothing is ever buffered there.
        channel_buffer_size: 1,
        inactivity_timeout: None,
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: KEEPALIVES_MAX,
        ..server::Config::default()
    }
}

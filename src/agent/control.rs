//! The agent's end of the control stream.
//!
//! Only the daemon can reach the listener, and there is one daemon: the newest connection that
//! shook hands is it, and an older one (of a daemon that was restarted) is closed. Orders are
//! carried out one after the other, over all connections.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Mutex, watch};
use tokio::task::AbortHandle;

use super::pass;
use super::place::Place;
use super::wire::{self, AgentHello, Applied, Apply, ToAgent, ToDaemon, WireError};

/// How long a new connection may take to answer the hello.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long to wait when a connection cannot be accepted (no descriptors are left).
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// What every connection needs.
pub(super) struct Control {
    pub place: Place,
    /// What a hello says beside the login user, which may change.
    pub hello: AgentHello,
    /// SSH connections that are logged in.
    pub sessions: watch::Receiver<u32>,
}

/// Who carries out orders, and for which connection.
#[derive(Default)]
struct Shared {
    /// Held during a pass, by the thread that runs it: a pass outlives a closed connection.
    pass: Arc<Mutex<()>>,
    newest: std::sync::Mutex<Option<AbortHandle>>,
}

/// Serves the daemon for ever.
pub(super) async fn serve(listener: UnixListener, control: Control) {
    let control = Arc::new(control);
    let shared = Arc::<Shared>::default();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = Connection { control: control.clone(), shared: shared.clone() };
                tokio::spawn(connection.shake_hands(stream));
            }
            Err(error) => {
                tracing::warn!(%error, "no control connection can be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

struct Connection {
    control: Arc<Control>,
    shared: Arc<Shared>,
}

impl Connection {
    async fn shake_hands(self, mut stream: UnixStream) {
        let handshake = async {
            wire::write_frame(&mut stream, &ToDaemon::Hello(self.hello())).await?;
            wire::read_frame(&mut stream).await
        };
        let daemon = match tokio::time::timeout(HANDSHAKE_MAX, handshake).await {
            Ok(Ok(Some(ToAgent::Hello(daemon)))) if daemon.protocol == wire::PROTOCOL => daemon,
            Ok(Ok(_)) => return tracing::warn!("a control connection did not shake hands in our protocol"),
            Ok(Err(error)) => return tracing::warn!(%error, "a control connection did not shake hands"),
            Err(_) => return tracing::warn!("a control connection did not shake hands in time"),
        };
        tracing::info!(version = daemon.version, "linked to the daemon");
        let newest = self.shared.clone();
        // The lock is held over the spawn, so that the task finds itself registered.
        let mut newest = newest.newest.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let task = tokio::spawn(self.run(stream)).abort_handle();
        if let Some(older) = newest.replace(task) {
            older.abort();
        }
    }

    async fn run(self, stream: UnixStream) {
        let (mut reader, mut writer) = stream.into_split();
        let (answers, mut answered) = tokio::sync::mpsc::channel(4);
        let orders = async {
            while let Some(order) = wire::read_frame(&mut reader).await? {
                let answer = match order {
                    ToAgent::Apply(apply) => ToDaemon::Applied(self.apply(apply).await),
                    ToAgent::Ping(number) => ToDaemon::Pong(number),
                    ToAgent::Hello(_) => continue,
                };
                if answers.send(answer).await.is_err() {
                    break;
                }
            }
            Ok::<(), WireError>(())
        };
        let mut sessions = self.control.sessions.clone();
        sessions.mark_changed();
        let telling = async {
            loop {
                let frame = tokio::select! {
                    Some(answer) = answered.recv() => answer,
                    Ok(()) = sessions.changed() => ToDaemon::Sessions(*sessions.borrow_and_update()),
                    else => return Ok::<(), WireError>(()),
                };
                wire::write_frame(&mut writer, &frame).await?;
            }
        };
        let ended = tokio::select! { ended = orders => ended, ended = telling => ended };
        match ended {
            Ok(()) => tracing::info!("the daemon closed the link"),
            Err(error) => tracing::warn!(%error, "the link to the daemon broke"),
        }
    }

    /// Carries out one order, on a thread that may block.
    async fn apply(&self, apply: Apply) -> Applied {
        let alone = self.shared.pass.clone().lock_owned().await;
        let (place, revision, keys) = (self.control.place.clone(), apply.revision, apply.keys.len());
        let begun = std::time::Instant::now();
        let pass = tokio::task::spawn_blocking(move || {
            let _alone = alone;
            pass::run(&place, &apply.keys, &apply.setup)
        });
        let pass = pass.await;
        let report = pass.unwrap_or_else(|_| pass::Report::broken_off());
        tracing::info!(revision, keys, micros = begun.elapsed().as_micros(), "a pass has ended: {report}");
        Applied { revision, keys: report.keys, setup: report.setup, remarks: report.remarks }
    }

    fn hello(&self) -> AgentHello {
        let login_user = pass::login_user(&self.control.place).ok().flatten().map(|account| account.name);
        AgentHello { login_user: login_user.unwrap_or_default(), ..self.control.hello.clone() }
    }
}

//! The daemon's end of the control stream to one agent.
//!
//! ```text
//!   Provider::link(id, Door::Control) ─► Link::open(stream, deadline)   handshake
//!                                           │
//!          link.apply(revision, keys, setup, deadline) ─► Applied       one at a time, newest wins
//!          link.watch().next() ─► sessions changed │ lost               level-triggered
//! ```
//!
//! One spawned task owns the stream, so every future here may be dropped at any time without
//! tearing a frame; dropping the `Link` ends the task and closes the stream. Nothing is sent
//! while nothing is asked: an idle link costs no wake-up. What the agent says is hostile input:
//! bounded by `wire`, checked and made printable by `hostile` before it is seen here.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::hostile;
use super::wire::{self, ToAgent, ToDaemon, WireError};
use crate::machine::{AgentInfo, Failure, Setup};

/// Frames that wait for the socket; `apply` waits when there are more.
const ORDERS_MAX: usize = 4;

/// An open link. Dropping it closes the stream.
#[derive(Debug)]
pub struct Link {
    agent: AgentInfo,
    boot_id: String,
    orders: mpsc::Sender<ToAgent>,
    awaited: Arc<Mutex<Awaited>>,
    state: watch::Receiver<State>,
    task: AbortHandle,
}

/// What became of one `Link::apply`. Keys and setup succeed and fail apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub revision: u64,
    pub keys: Result<(), Failure>,
    pub setup: Result<(), Failure>,
    /// Conditions that are no failure, such as `sudo: the image has no sudo`.
    pub remarks: Vec<String>,
}

/// Something changed at the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// So many SSH connections are logged in now.
    Sessions(u32),
    /// The stream has ended, and why. Open a new link; this one says nothing more.
    Lost(String),
}

/// Follows a link's changes. Cheap; as many as wanted.
#[derive(Clone, Debug)]
pub struct LinkWatch {
    state: watch::Receiver<State>,
    told: Option<u32>,
    ended: bool,
}

/// Why a link could not be opened, or an order was not answered.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("the agent did not answer in time")]
    Deadline,
    #[error("the agent closed the stream")]
    Closed,
    #[error("the agent broke the protocol: {0}")]
    Protocol(String),
    #[error("the agent speaks protocol {theirs}, this daemon {ours}")]
    Version { theirs: u32, ours: u32 },
    #[error("a newer order took this one's place")]
    Superseded,
    #[error("{0}")]
    Wire(#[from] WireError),
}

impl Link {
    /// Shakes hands over a stream to the agent, or gives up after `deadline`.
    pub async fn open<S>(mut stream: S, deadline: Duration) -> Result<Self, LinkError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let hello = tokio::time::timeout(deadline, shake_hands(&mut stream)).await;
        let hello = hello.map_err(|_| LinkError::Deadline)??;
        let (orders, orders_taken) = mpsc::channel(ORDERS_MAX);
        let (state_set, state) = watch::channel(State::default());
        let awaited = Arc::<Mutex<Awaited>>::default();
        let task = tokio::spawn(carry(stream, orders_taken, awaited.clone(), state_set)).abort_handle();
        Ok(Self { agent: hello.agent, boot_id: hello.boot_id, orders, awaited, state, task })
    }

    /// The agent as it introduced itself.
    pub const fn agent(&self) -> &AgentInfo {
        &self.agent
    }

    /// The boot the agent says it lives in; empty if it was not told.
    pub fn boot_id(&self) -> &str {
        &self.boot_id
    }

    /// Lands the whole setup and the whole managed key block, and waits for the outcome.
    ///
    /// One order is in flight at a time: a newer one makes an older one end as `Superseded`.
    pub async fn apply(
        &self,
        revision: u64,
        keys: &[String],
        setup: &Setup,
        deadline: Duration,
    ) -> Result<Applied, LinkError> {
        let (answer, answered) = oneshot::channel();
        self.awaited().applied = Some((revision, answer));
        let apply = wire::Apply { revision, keys: keys.to_vec(), setup: setup.into() };
        self.ask(ToAgent::Apply(apply), answered, deadline).await
    }

    /// Asks whether the agent answers at all.
    pub async fn ping(&self, deadline: Duration) -> Result<(), LinkError> {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut awaited = self.awaited();
            awaited.pings += 1;
            awaited.pong = Some((awaited.pings, answer));
            awaited.pings
        };
        self.ask(ToAgent::Ping(number), answered, deadline).await
    }

    /// Follows sessions and the end of the link, from its present state on.
    pub fn watch(&self) -> LinkWatch {
        LinkWatch { state: self.state.clone(), told: None, ended: false }
    }

    async fn ask<T>(
        &self,
        order: ToAgent,
        answered: oneshot::Receiver<T>,
        deadline: Duration,
    ) -> Result<T, LinkError> {
        let exchange = async {
            self.orders.send(order).await.map_err(|_| LinkError::Closed)?;
            answered.await.map_err(|_| self.unanswered())
        };
        tokio::time::timeout(deadline, exchange).await.map_err(|_| LinkError::Deadline)?
    }

    /// Why an answer can no longer come: its sender was dropped.
    fn unanswered(&self) -> LinkError {
        if self.orders.is_closed() { LinkError::Closed } else { LinkError::Superseded }
    }

    fn awaited(&self) -> std::sync::MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl LinkWatch {
    /// The next change; the present count of sessions at first. None after `Lost` was told.
    pub async fn next(&mut self) -> Option<LinkEvent> {
        loop {
            let state = self.state.borrow_and_update().clone();
            if state.sessions.is_some() && state.sessions != self.told {
                self.told = state.sessions;
                return state.sessions.map(LinkEvent::Sessions);
            }
            if self.ended {
                return None;
            }
            if let Some(why) = state.lost {
                self.ended = true;
                return Some(LinkEvent::Lost(why));
            }
            if self.state.changed().await.is_err() && self.state.borrow().lost.is_none() {
                self.ended = true;
                return Some(LinkEvent::Lost("the link was dropped".to_owned()));
            }
        }
    }
}

/// What the watchers see: only the newest counts, so a flood of frames costs nothing.
#[derive(Clone, Debug, Default)]
struct State {
    sessions: Option<u32>,
    lost: Option<String>,
}

/// Who waits for an answer.
#[derive(Debug, Default)]
struct Awaited {
    applied: Option<(u64, oneshot::Sender<Applied>)>,
    pings: u64,
    pong: Option<(u64, oneshot::Sender<()>)>,
}

/// The daemon's side of the handshake: the agent speaks first.
async fn shake_hands<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> Result<hostile::Hello, LinkError> {
    let hello = match wire::read_frame(stream).await? {
        Some(ToDaemon::Hello(hello)) => hello,
        Some(ToDaemon::Applied(_) | ToDaemon::Sessions(_) | ToDaemon::Pong(_)) => {
            return Err(LinkError::Protocol("its first frame is no hello".to_owned()));
        }
        None => return Err(LinkError::Closed),
    };
    if hello.protocol != wire::PROTOCOL {
        return Err(LinkError::Version { theirs: hello.protocol, ours: wire::PROTOCOL });
    }
    let hello = hostile::hello(hello).map_err(LinkError::Protocol)?;
    let ours = wire::DaemonHello {
        protocol: wire::PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: Vec::new(),
    };
    wire::write_frame(stream, &ToAgent::Hello(ours)).await?;
    Ok(hello)
}

/// Owns the stream until either side ends it.
async fn carry<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    mut orders: mpsc::Receiver<ToAgent>,
    awaited: Arc<Mutex<Awaited>>,
    state: watch::Sender<State>,
) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let writing = async {
        while let Some(order) = orders.recv().await {
            wire::write_frame(&mut writer, &order).await?;
        }
        Err(LinkError::Closed)
    };
    let reading = async {
        while let Some(frame) = wire::read_frame(&mut reader).await? {
            take(frame, &awaited, &state)?;
        }
        Err(LinkError::Closed)
    };
    let ended: Result<(), LinkError> = tokio::select! { ended = writing => ended, ended = reading => ended };
    orders.close();
    *awaited.lock().unwrap_or_else(PoisonError::into_inner) = Awaited::default();
    let why = ended.err().unwrap_or(LinkError::Closed).to_string();
    state.send_modify(|state| state.lost = Some(why));
}

/// Hands one frame of the agent to who waits for it. An answer nobody waits for is dropped.
fn take(frame: ToDaemon, awaited: &Mutex<Awaited>, state: &watch::Sender<State>) -> Result<(), LinkError> {
    let mut awaited = awaited.lock().unwrap_or_else(PoisonError::into_inner);
    match frame {
        ToDaemon::Hello(_) => return Err(LinkError::Protocol("a second hello".to_owned())),
        ToDaemon::Applied(applied) => {
            if let Some((_, answer)) = awaited.applied.take_if(|(revision, _)| *revision == applied.revision)
            {
                // An answer whose asker has gone is of no use to anybody.
                drop(answer.send(hostile::applied(&applied)));
            }
        }
        ToDaemon::Sessions(open) => {
            state.send_if_modified(|state| state.sessions.replace(open) != Some(open));
        }
        ToDaemon::Pong(number) => {
            if let Some((_, answer)) = awaited.pong.take_if(|(asked, _)| *asked == number) {
                let _ = answer.send(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio::io::DuplexStream;

    use super::*;
    use crate::agent::wire::{AgentHello, Outcome, read_frame, write_frame};
    use crate::object::Identity;

    const SOON: Duration = Duration::from_secs(10);

    fn hello() -> AgentHello {
        AgentHello {
            protocol: wire::PROTOCOL,
            version: "9".into(),
            login_user: "dev".into(),
            ..AgentHello::default()
        }
    }

    /// A link, and the stream of an agent that has said `hello`.
    async fn linked() -> (Link, DuplexStream) {
        let (ours, mut agent) = tokio::io::duplex(1 << 16);
        write_frame(&mut agent, &ToDaemon::Hello(hello())).await.expect("said");
        let link = Link::open(ours, SOON).await.expect("opened");
        let answer = read_frame(&mut agent).await.expect("answered");
        assert!(matches!(answer, Some(ToAgent::Hello(daemon)) if daemon.protocol == wire::PROTOCOL));
        (link, agent)
    }

    fn done(revision: u64) -> ToDaemon {
        let failed =
            Outcome::Failed { reason: "HomeFailed".into(), message: "home: no\u{1b}[2Jspace".into() };
        ToDaemon::Applied(wire::Applied {
            revision,
            keys: Outcome::Done,
            setup: failed,
            remarks: vec!["r".into()],
        })
    }

    #[tokio::test]
    async fn an_order_reaches_the_agent_and_its_outcome_comes_back_printable() {
        let (link, mut agent) = linked().await;
        let setup = Setup {
            identity: Identity { user: Some("ann".into()), ..Identity::default() },
            environment: BTreeMap::from([("A".into(), "b".into())]),
        };
        let keys = ["key".to_owned()];
        let answering = async {
            let Some(ToAgent::Apply(apply)) = read_frame(&mut agent).await.expect("read") else {
                panic!("an apply was expected")
            };
            assert_eq!((apply.revision, apply.keys.len(), apply.setup.user.as_deref()), (7, 1, Some("ann")));
            // An answer to an order that was not given is dropped.
            write_frame(&mut agent, &done(6)).await.expect("said");
            write_frame(&mut agent, &done(7)).await.expect("said");
        };
        let (applied, ()) = tokio::join!(link.apply(7, &keys, &setup, SOON), answering);
        let applied = applied.expect("applied");
        assert_eq!(applied.keys, Ok(()));
        let failure = applied.setup.expect_err("failed");
        assert_eq!(
            (failure.reason.as_str(), failure.message.as_str()),
            ("HomeFailed", "home: no\u{fffd}[2Jspace")
        );
        assert_eq!(applied.remarks, ["r"]);
    }

    #[tokio::test]
    async fn a_newer_order_supersedes_the_one_in_flight() {
        let (link, mut agent) = linked().await;
        let setup = Setup::default();
        let answering = async {
            let _older = read_frame::<ToAgent>(&mut agent).await.expect("read");
            let _newer = read_frame::<ToAgent>(&mut agent).await.expect("read");
            write_frame(&mut agent, &done(2)).await.expect("said");
        };
        let (older, newer, ()) =
            tokio::join!(link.apply(1, &[], &setup, SOON), link.apply(2, &[], &setup, SOON), answering);
        assert!(matches!(older, Err(LinkError::Superseded)));
        assert_eq!(newer.expect("applied").revision, 2);
    }

    #[tokio::test]
    async fn watchers_see_the_newest_count_and_then_the_loss_and_then_nothing() {
        let (link, mut agent) = linked().await;
        let mut watch = link.watch();
        write_frame(&mut agent, &ToDaemon::Sessions(4)).await.expect("said");
        assert_eq!(watch.next().await, Some(LinkEvent::Sessions(4)));
        drop(agent);
        assert_eq!(watch.next().await, Some(LinkEvent::Lost("the agent closed the stream".into())));
        assert_eq!(watch.next().await, None);
        let applied = link.apply(1, &[], &Setup::default(), SOON).await;
        assert!(matches!(applied, Err(LinkError::Closed)));
    }

    #[tokio::test]
    async fn a_silent_agent_and_one_of_another_protocol_and_a_rude_one_are_refused() {
        let (ours, _silent) = tokio::io::duplex(64);
        assert!(matches!(Link::open(ours, Duration::from_millis(1)).await, Err(LinkError::Deadline)));
        let (ours, mut agent) = tokio::io::duplex(1 << 10);
        write_frame(&mut agent, &ToDaemon::Hello(AgentHello { protocol: 9, ..hello() })).await.expect("said");
        assert!(matches!(Link::open(ours, SOON).await, Err(LinkError::Version { theirs: 9, ours: 1 })));
        let (ours, mut agent) = tokio::io::duplex(1 << 10);
        write_frame(&mut agent, &ToDaemon::Sessions(1)).await.expect("said");
        assert!(matches!(Link::open(ours, SOON).await, Err(LinkError::Protocol(_))));
    }

    #[tokio::test]
    async fn a_ping_is_answered_or_missed() {
        let (link, mut agent) = linked().await;
        let answering = async {
            let Some(ToAgent::Ping(number)) = read_frame(&mut agent).await.expect("read") else {
                panic!("a ping was expected")
            };
            write_frame(&mut agent, &ToDaemon::Pong(number)).await.expect("said");
        };
        let (ping, ()) = tokio::join!(link.ping(SOON), answering);
        ping.expect("answered");
        assert!(matches!(link.ping(Duration::from_millis(1)).await, Err(LinkError::Deadline)));
    }
}

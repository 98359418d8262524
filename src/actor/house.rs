//! The actors of one daemon, started together and stopped together.

use std::sync::mpsc;
use std::time::Duration;

use actix::{Actor as _, Addr, Arbiter, ArbiterHandle};
use tokio::runtime::Handle;

use super::core::Sources;
use super::directory::Directory;
use super::member::Surroundings;
use super::supervisor::{GivenUp, REAL, RunOwner, Start, Supervisor};
use super::turns::Turns;
use super::watchdog::{self, Heart, Stuck};
use crate::provider::Providers;
use crate::store::{OwnerId, Store};

/// Arbiters of owners and members; the supervisor has one more of its own, so that a stuck handler
/// never holds it up.
const ARBITERS: usize = 2;

/// Everything that runs in arbiters.
pub struct House {
    pub directory: Directory,
    pub supervisor: Addr<Supervisor>,
    pub given_up: GivenUp,
    turns: Turns,
    heart: Heart,
    arbiters: Vec<ArbiterHandle>,
    system: actix::System,
}

impl House {
    /// Starts the arbiters, the supervisor, and through it every owner that the store knows.
    /// `runtime` carries provider calls and agent traffic.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(
        runtime: Handle,
        store: &Store,
        sources: Sources,
        providers: Providers,
    ) -> std::io::Result<Self> {
        Self::start_with(runtime, store, sources, providers, REAL)
    }

    /// The same with owners that `run` starts.
    pub(super) fn start_with(
        runtime: Handle,
        store: &Store,
        sources: Sources,
        providers: Providers,
        run: RunOwner,
    ) -> std::io::Result<Self> {
        let heart = Heart::new(ARBITERS + 1);
        let (system, arbiters) = system(&heart)?;
        let directory = Directory::new(arbiters[..ARBITERS].to_vec(), providers);
        let around = Surroundings { directory: directory.clone(), runtime };
        directory.furnish(around);
        let (given_up, turns) = (GivenUp::default(), sources.turns.clone());
        let supervisor = {
            let (store, directory, given_up) = (store.clone(), directory.clone(), given_up.clone());
            Supervisor::start_in_arbiter(&arbiters[ARBITERS], move |_| {
                Supervisor::running(store, directory, sources, given_up, run)
            })
        };
        // The catalog also makes what always exists, in a new store too.
        supervisor.do_send(Start { owner: OwnerId::Catalog, ask: None });
        Ok(Self { directory, supervisor, given_up, turns, heart, arbiters, system })
    }

    /// Another number of builds at once (rule F4), from now on.
    pub fn resize_builds(&self, most: u32) {
        self.directory.call(&self.turns.resize(most));
    }

    /// Watches over the arbiters and over the committer of `store` from now on; see [`watchdog`].
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn watch(
        &self,
        store: Store,
        on_alive: impl Fn() + Send + 'static,
        on_stuck: impl Fn(Stuck) + Send + 'static,
        alive_within: Option<Duration>,
    ) -> std::io::Result<()> {
        let unwritten = move || store.oldest_unwritten_ms().map(Duration::from_millis);
        let (arbiters, heart) = (self.arbiters.clone(), self.heart.clone());
        watchdog::start(arbiters, heart, unwritten, on_alive, on_stuck, alive_within)
    }

    /// Ends every actor. What they had submitted is written all the same.
    pub fn stop(&self) {
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
        self.system.stop();
    }
}

/// actix's system in a thread of its own, and the arbiters in it, each with its heartbeat.
fn system(heart: &Heart) -> std::io::Result<(actix::System, Vec<ArbiterHandle>)> {
    let (sender, started) = mpsc::channel();
    let heart = heart.clone();
    let body = move || {
        let runner = actix::System::new();
        let arbiters: std::io::Result<Vec<Arbiter>> = runner.block_on(async {
            (0..=ARBITERS).map(|number| Arbiter::try_with_tokio_rt(beating(number, &heart))).collect()
        });
        let arbiters = match arbiters {
            Ok(arbiters) => arbiters,
            Err(error) => return drop(sender.send(Err(error))),
        };
        let handles = arbiters.iter().map(Arbiter::handle).collect();
        let _ = sender.send(Ok((actix::System::current(), handles)));
        if let Err(error) = runner.run() {
            tracing::error!(%error, "the actor system failed");
        }
        drop(arbiters);
    };
    std::thread::Builder::new().name("actors".into()).spawn(body)?;
    started.recv().map_err(std::io::Error::other)?
}

/// The runtime of an arbiter, which says when its thread wakes and sleeps.
fn beating(
    arbiter: usize,
    heart: &Heart,
) -> impl FnOnce() -> std::io::Result<tokio::runtime::Runtime> + Send + 'static {
    let (wakes, sleeps) = (heart.clone(), heart.clone());
    move || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_unpark(move || wakes.wakes(arbiter))
            .on_thread_park(move || sleeps.sleeps(arbiter))
            .build()
    }
}

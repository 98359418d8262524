//! The supervisor: starts owners, rebuilds one that died from disk, and gives up on one that keeps dying.
//!
//! actix's own supervisor is the very future of the actor it supervises, and dies with it when a
//! handler panics. This one spawns each owner's context itself, keeps the join handle, and on a
//! panic asks the store for a new incarnation: what the dead one had submitted is loaded, what it
//! only had in memory is gone, and anything it still sends is refused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::dev::ContextFutureSpawner as _;
use actix::{Actor, Addr, AsyncContext, Context, Handler, Message, WrapFuture as _};

use super::core::{Core, Sources};
use super::directory::Directory;
use super::doors::Refusal;
use super::owner::{Ask, Owner, Up};
use super::pool::PoolCore;
use crate::catalog::Catalog;
use crate::clock;
use crate::fleet::Fleet;
use crate::store::{OwnerId, Record, Store};

/// Deaths of one owner within [`MEMORY_MS`] after which it is given up.
const DEATHS_MAX: usize = 5;
/// How long a death is remembered.
const MEMORY_MS: u64 = 60_000;
/// The wait before the second rebuild in a row; it doubles.
const BACKOFF_FIRST: Duration = Duration::from_millis(50);

/// Start an owner, if it does not run; then hand it `ask`.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Start {
    pub owner: OwnerId,
    pub ask: Option<Ask>,
}

/// An owner's task has ended.
#[derive(Message)]
#[rtype(result = "()")]
struct Ended {
    owner: OwnerId,
    panicked: bool,
}

/// Its records have arrived.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Loaded {
    owner: OwnerId,
    incarnation: u64,
    records: Vec<Record>,
}

/// Owners that were given up, with the reason: what `/readyz` says.
#[derive(Clone, Debug, Default)]
pub struct GivenUp(Arc<Mutex<HashMap<OwnerId, String>>>);

impl GivenUp {
    /// One sentence for each.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Whether this owner is one of them.
    #[must_use]
    pub fn has(&self, owner: &OwnerId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(owner)
    }

    fn add(&self, owner: OwnerId, why: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(owner, why);
    }
}

/// Starts the actor of an owner whose records have arrived.
pub(super) type RunOwner = fn(&Supervisor, Loaded, Addr<Supervisor>);

/// Keeps the owners running.
pub struct Supervisor {
    store: Store,
    directory: Directory,
    sources: Sources,
    given_up: GivenUp,
    run: RunOwner,
    /// Asks that came while their owner was being loaded.
    waiting: HashMap<OwnerId, Vec<Ask>>,
    deaths_ms: HashMap<OwnerId, Vec<u64>>,
}

impl Supervisor {
    /// Over `store`, reaching everybody through `directory`.
    #[must_use]
    pub fn new(store: Store, directory: Directory, sources: Sources, given_up: GivenUp) -> Self {
        Self::running(store, directory, sources, given_up, |supervisor, loaded, addr| match &loaded.owner {
            OwnerId::Catalog => supervisor.run::<Catalog>(loaded, addr),
            OwnerId::Fleet(_) => supervisor.run::<Fleet>(loaded, addr),
            OwnerId::Pool(_) => supervisor.run::<PoolCore>(loaded, addr),
        })
    }

    /// The same with owners of another sort, for the failures that real ones do not have.
    pub(super) fn running(
        store: Store,
        directory: Directory,
        sources: Sources,
        given_up: GivenUp,
        run: RunOwner,
    ) -> Self {
        let (waiting, deaths_ms) = (HashMap::new(), HashMap::new());
        Self { store, directory, sources, given_up, run, waiting, deaths_ms }
    }

    fn load(&self, owner: OwnerId, ctx: &mut Context<Self>) {
        let (incarnation, records) = self.store.load(owner.clone());
        let addr = ctx.address();
        let loading = async move {
            // Fails only when the store has failed, which ends the process.
            if let Ok(records) = records.await {
                addr.do_send(Loaded { owner, incarnation, records });
            }
        };
        loading.into_actor(self).spawn(ctx);
    }

    pub(super) fn run<C: Core>(&self, loaded: Loaded, addr: Addr<Self>) {
        let (store, directory, sources) = (self.store.clone(), self.directory.clone(), self.sources.clone());
        let (arbiter, up) = (self.directory.arbiter().clone(), addr.clone().recipient());
        arbiter.spawn(async move {
            let owner = loaded.owner.clone();
            let forget = directory.clone();
            let task = actix::spawn(async move {
                let actor = Owner::<C>::new(
                    loaded.owner,
                    loaded.incarnation,
                    loaded.records,
                    store,
                    directory,
                    sources,
                    up,
                );
                Context::new().into_future(actor).await;
            });
            let panicked = task.await.is_err();
            if panicked {
                forget.forget_owner(&owner);
            }
            addr.do_send(Ended { owner, panicked });
        });
    }

    fn bury(&mut self, owner: OwnerId, ctx: &mut Context<Self>) {
        let now_ms = clock::monotonic_ms();
        let deaths = self.deaths_ms.entry(owner.clone()).or_default();
        deaths.retain(|at_ms| now_ms.saturating_sub(*at_ms) < MEMORY_MS);
        deaths.push(now_ms);
        let count = deaths.len();
        if count >= DEATHS_MAX {
            let why = format!(
                "the {owner} has failed {count} times in a minute and was given up: see the log, then restart the daemon"
            );
            tracing::error!(%owner, "{why}");
            for ask in self.waiting.remove(&owner).unwrap_or_default() {
                let _ = ask.reply.send(Err(Refusal::Unavailable(why.clone())));
            }
            self.sources.metrics.owners.give_up();
            self.given_up.add(owner, why);
            return;
        }
        let doublings = u32::try_from(count - 1).unwrap_or(0);
        let wait = if count == 1 { Duration::ZERO } else { BACKOFF_FIRST * 2_u32.pow(doublings) };
        tracing::error!(%owner, count, ?wait, "an owner died and is rebuilt from disk");
        self.sources.metrics.owners.restart();
        self.waiting.entry(owner.clone()).or_default();
        ctx.run_later(wait, move |supervisor, ctx| supervisor.load(owner, ctx));
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        for owner in self.store.owners() {
            ctx.notify(Start { owner, ask: None });
        }
    }
}

impl Handler<Start> for Supervisor {
    type Result = ();

    fn handle(&mut self, Start { owner, ask }: Start, ctx: &mut Self::Context) {
        if let Some(asks) = self.waiting.get_mut(&owner) {
            asks.extend(ask);
            return;
        }
        if let Some(door) = self.directory.owner(&owner) {
            if let Some(ask) = ask {
                door.ask.do_send(ask);
            }
            return;
        }
        self.waiting.insert(owner.clone(), ask.into_iter().collect());
        self.load(owner, ctx);
    }
}

impl Handler<Loaded> for Supervisor {
    type Result = ();

    fn handle(&mut self, loaded: Loaded, ctx: &mut Self::Context) {
        (self.run)(self, loaded, ctx.address());
    }
}

impl Handler<Ended> for Supervisor {
    type Result = ();

    fn handle(&mut self, Ended { owner, panicked }: Ended, ctx: &mut Self::Context) {
        if panicked {
            self.bury(owner, ctx);
        } else {
            self.deaths_ms.remove(&owner);
        }
    }
}

impl Handler<Up> for Supervisor {
    type Result = ();

    fn handle(&mut self, Up(owner): Up, _: &mut Self::Context) {
        let Some(door) = self.directory.owner(&owner) else { return };
        for ask in self.waiting.remove(&owner).unwrap_or_default() {
            door.ask.do_send(ask);
        }
    }
}

//! The supervisor: starts owners, rebuilds one that died from disk, and gives up on one that keeps dying.
//!
//! actix's own supervisor is the very future of the actor it supervises, and dies with it when a
//! handler panics. This one spawns each owner's context itself, keeps the join handle, and on a
//! panic asks the store for a new incarnation: what the dead one had submitted is loaded, what it
//! only had in memory is gone, and anything it still sends is refused.

use std::collections::{HashMap, HashSet};
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
use crate::store::{OwnerId, Record, Store, Submission};

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

impl Loaded {
    /// Whose records they are.
    pub(super) const fn owner(&self) -> &OwnerId {
        &self.owner
    }
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

    /// Why this owner was given up, if it was.
    #[must_use]
    pub fn why(&self, owner: &OwnerId) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(owner).cloned()
    }

    fn add(&self, owner: OwnerId, why: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(owner, why);
    }
}

/// Starts the actor of an owner whose records have arrived.
pub(super) type RunOwner = fn(&Supervisor, Loaded, Addr<Supervisor>);

/// What the daemon runs.
pub(super) const REAL: RunOwner = |supervisor, loaded, addr| match loaded.owner() {
    OwnerId::Catalog => supervisor.run::<Catalog>(loaded, addr),
    OwnerId::Fleet(_) => supervisor.run::<Fleet>(loaded, addr),
    OwnerId::Pool(_) => supervisor.run::<PoolCore>(loaded, addr),
};

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
    /// Owners whose task has begun and whose end was not heard of yet: none of them is loaded again
    /// meanwhile, or there would be two.
    running: HashSet<OwnerId>,
}

impl Supervisor {
    /// Over `store`, reaching everybody through `directory`, with owners that `run` starts: [`REAL`]
    /// ones, or in tests some with failures that real ones do not have.
    pub(super) fn running(
        store: Store,
        directory: Directory,
        sources: Sources,
        given_up: GivenUp,
        run: RunOwner,
    ) -> Self {
        let (waiting, deaths_ms, running) = (HashMap::new(), HashMap::new(), HashSet::new());
        Self { store, directory, sources, given_up, run, waiting, deaths_ms, running }
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
            forget.forget_owner(&owner);
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
            return self.give_up(owner, count);
        }
        let doublings = u32::try_from(count - 1).unwrap_or(0);
        let wait = if count == 1 { Duration::ZERO } else { BACKOFF_FIRST * 2_u32.pow(doublings) };
        tracing::error!(%owner, count, ?wait, "an owner died and is rebuilt from disk");
        self.sources.metrics.owners.restart();
        self.waiting.entry(owner.clone()).or_default();
        ctx.run_later(wait, move |supervisor, ctx| supervisor.load(owner, ctx));
    }
}

impl Supervisor {
    /// From now on the owner is not started any more, writes to its objects are refused with the
    /// reason, and reads, members and neighbours go on.
    fn give_up(&mut self, owner: OwnerId, deaths: usize) {
        let why = format!(
            "{} failed {deaths} times in a minute and was given up: it is read but not written, its machines \
             run on; see the daemon's log for the cause, then restart the daemon",
            self.name(&owner)
        );
        tracing::error!(%owner, "{why}");
        self.sources.metrics.owners.give_up();
        self.given_up.add(owner.clone(), why.clone());
        for ask in self.waiting.remove(&owner).unwrap_or_default() {
            let _ = ask.reply.send(Err(Refusal::Unavailable(why.clone())));
        }
        // Nobody hears any more how its builds end.
        self.directory.call(&self.sources.turns.forget(&owner));
        // A task of its own: whatever kills the owner might be met here again.
        actix::spawn(bear_witness(self.store.clone(), owner, why));
    }

    /// The owner as people know it.
    fn name(&self, owner: &OwnerId) -> String {
        let OwnerId::Pool(uid) = owner else { return format!("the {owner}") };
        let shown = self.sources.view.by_uid(*uid);
        shown.map_or_else(
            || format!("the {owner}"),
            |pool| format!("workstationpool/{} of namespace {}", pool.key.name, pool.key.namespace),
        )
    }
}

/// Writes on what a given-up owner owned that it was: as a new incarnation of it, whose only write
/// this is. Without this the status would go on saying what was true before.
async fn bear_witness(store: Store, owner: OwnerId, why: String) {
    let (incarnation, records) = store.load(owner.clone());
    // Fails only when the store has failed, which ends the process.
    let Ok(records) = records.await else { return };
    let writes = match &owner {
        OwnerId::Pool(_) => super::pool::given_up(records, &why, clock::now()),
        // Their objects have no common status: `/readyz` says it.
        OwnerId::Catalog | OwnerId::Fleet(_) => return,
    };
    let submission =
        Submission { owner, incarnation, preconditions: Vec::new(), writes, effects: Vec::new() };
    if let Err(conflict) = store.submit(submission) {
        tracing::warn!(%conflict, "the status of an owner that was given up was not written");
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
        if let Some(why) = self.given_up.why(&owner) {
            if let Some(ask) = ask {
                let _ = ask.reply.send(Err(Refusal::Unavailable(why)));
            }
            return;
        }
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
        // One that has just died or ended is loaded again when its end is heard of.
        if !self.running.contains(&owner) {
            self.load(owner, ctx);
        }
    }
}

impl Handler<Loaded> for Supervisor {
    type Result = ();

    fn handle(&mut self, loaded: Loaded, ctx: &mut Self::Context) {
        self.running.insert(loaded.owner.clone());
        (self.run)(self, loaded, ctx.address());
    }
}

impl Handler<Ended> for Supervisor {
    type Result = ();

    fn handle(&mut self, Ended { owner, panicked }: Ended, ctx: &mut Self::Context) {
        self.running.remove(&owner);
        if panicked {
            return self.bury(owner, ctx);
        }
        self.deaths_ms.remove(&owner);
        if self.waiting.contains_key(&owner) {
            self.load(owner, ctx);
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

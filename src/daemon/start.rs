//! From settings to a serving daemon, and back.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::{Actor as _, Addr, Arbiter, ArbiterHandle};
use anyhow::Context as _;
use sd_notify::NotifyState;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch as channel};

use super::log::LevelSwitch;
use super::signals::{Asked, Signals};
use super::{LOST, log, socket};
use crate::actor::adoption;
use crate::actor::backend::Doors;
use crate::actor::core::Sources;
use crate::actor::directory::Directory;
use crate::actor::member::Surroundings;
use crate::actor::supervisor::{GivenUp, Start, Supervisor};
use crate::actor::watchdog;
use crate::object;
use crate::provider::sandbox::{Sandbox, SandboxOptions, launcher};
use crate::provider::{Availability, Provider, Providers};
use crate::settings::{self, Overrides, Settings};
use crate::store::{OwnerId, Store, StoreOptions};
use crate::{http, view};

/// Arbiters of owners and members; the supervisor has one more of its own, so that a stuck handler
/// never holds it up.
const ARBITERS: usize = 2;

/// Runs the daemon until it is told to stop.
pub fn run(settings: Settings, overrides: Overrides) -> anyhow::Result<()> {
    // Before any thread: a process with threads cannot make user namespaces.
    let launcher = launcher::spawn().context("cannot start the launcher of machines")?;
    let level = log::start(&settings.log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .thread_name("io")
        .build()
        .context("cannot start the runtime")?;
    let _inside = runtime.enter();

    let (view, writer) = view::new(settings.store.watch_events_max);
    let store = Store::open(settings.data_dir.clone(), store_options(&settings), writer)?;
    tracing::info!(data_dir = %settings.data_dir.display(), instance = %store.instance(), "the store is open");
    let sandbox = Arc::new(Sandbox::new(sandbox_options(&settings, &store), launcher)?);
    let providers: Providers = Arc::from(vec![Arc::clone(&sandbox) as Arc<dyn Provider>]);
    if let Availability::Unavailable(why) = sandbox.availability() {
        tracing::warn!(provider = sandbox.name(), "no machine can be made here: {why}");
    }
    let space = store.clone();
    let sources = Sources {
        view: view.clone(),
        registry: object::registry(),
        providers: Arc::clone(&providers),
        space: Arc::new(move || space.space()),
    };

    let actors = Actors::start(&runtime, &settings, &store, sources.clone(), Arc::clone(&providers))?;
    let doors = Arc::new(Doors {
        sources,
        directory: actors.directory.clone(),
        supervisor: actors.supervisor.clone(),
        given_up: actors.given_up.clone(),
        instance: store.instance(),
        data_dir: settings.data_dir.display().to_string(),
    });
    let listener = socket::bind(&settings.socket)?;
    let outcome = runtime.block_on(async {
        wait_for_the_catalog(&view).await?;
        tokio::spawn(adoption::sweep(providers, view));
        let (stop, stopping) = channel::channel(false);
        let listener = tokio::net::UnixListener::from_std(listener).context("cannot use the socket")?;
        let serving = tokio::spawn(http::serve(doors, listener, http_options(&settings), stopping));
        ready(&settings);
        serve_until_stopped(&level, &overrides, &actors).await?;
        tracing::info!("stopping: members live on");
        notify(&[NotifyState::Stopping]);
        stop.send_replace(true);
        serving.await.context("the front end failed")
    });
    if let Err(error) = std::fs::remove_file(&settings.socket) {
        tracing::debug!(%error, "the socket was not there any more");
    }
    actors.stop();
    store.close();
    outcome
}

/// Everything actix.
struct Actors {
    directory: Directory,
    supervisor: Addr<Supervisor>,
    given_up: GivenUp,
    builds: Builds,
    arbiters: Vec<ArbiterHandle>,
    system: actix::System,
}

/// How many machines may be built at once, and how many of those places there are now.
struct Builds {
    places: Arc<Semaphore>,
    most: Mutex<usize>,
}

impl Builds {
    fn new(most: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(most)), most: Mutex::new(most) }
    }

    /// Builds under way keep their places; fewer places are taken back as they come free.
    fn resize(&self, most: usize) {
        let mut now = self.most.lock().unwrap_or_else(PoisonError::into_inner);
        if most >= *now {
            self.places.add_permits(most - *now);
        } else {
            let (places, fewer) = (Arc::clone(&self.places), u32::try_from(*now - most).unwrap_or(u32::MAX));
            tokio::spawn(async move {
                if let Ok(taken) = places.acquire_many(fewer).await {
                    taken.forget();
                }
            });
        }
        *now = most;
    }
}

impl Actors {
    fn start(
        runtime: &Runtime,
        settings: &Settings,
        store: &Store,
        sources: Sources,
        providers: Providers,
    ) -> anyhow::Result<Self> {
        let (system, arbiters) = system()?;
        let supervisors = arbiters[ARBITERS].clone();
        let directory = Directory::new(arbiters[..ARBITERS].to_vec(), providers);
        let builds = Builds::new(settings.builds_at_once_max);
        directory.furnish(Surroundings {
            directory: directory.clone(),
            runtime: runtime.handle().clone(),
            builds: Arc::clone(&builds.places),
        });
        let given_up = GivenUp::default();
        let supervisor = {
            let (store, directory, given_up) = (store.clone(), directory.clone(), given_up.clone());
            Supervisor::start_in_arbiter(&supervisors, move |_| {
                Supervisor::new(store, directory, sources, given_up)
            })
        };
        // The catalog also makes what always exists, in a new store too.
        supervisor.do_send(Start { owner: OwnerId::Catalog, ask: None });
        watch_over(arbiters.clone())?;
        Ok(Self { directory, supervisor, given_up, builds, arbiters, system })
    }

    fn stop(&self) {
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
        self.system.stop();
    }
}

/// actix's system in a thread of its own, and the arbiters in it.
fn system() -> anyhow::Result<(actix::System, Vec<ArbiterHandle>)> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let body = move || {
        let runner = actix::System::new();
        let arbiters: Vec<Arbiter> =
            runner.block_on(async { (0..=ARBITERS).map(|_| Arbiter::new()).collect() });
        let handles = arbiters.iter().map(Arbiter::handle).collect();
        let _ = sender.send((actix::System::current(), handles));
        if let Err(error) = runner.run() {
            tracing::error!(%error, "the actor system failed");
        }
        drop(arbiters);
    };
    std::thread::Builder::new().name("actors".into()).spawn(body).context("cannot start the actors")?;
    receiver.recv().context("the actors did not start")
}

fn watch_over(arbiters: Vec<ArbiterHandle>) -> anyhow::Result<()> {
    let within = sd_notify::watchdog_enabled();
    let alive = || notify(&[NotifyState::Watchdog]);
    let stuck = |arbiter| {
        tracing::error!(arbiter, "an arbiter does not answer: the daemon ends, members live on");
        end_at_once();
    };
    watchdog::start(arbiters, alive, stuck, within).context("cannot start the watchdog")
}

/// For a daemon whose store or arbiters are lost: nothing that is left may run on.
#[expect(clippy::disallowed_methods, reason = "main cannot return while a thread of it is stuck")]
fn end_at_once() {
    std::process::exit(LOST);
}

/// `local` exists once the catalog is up: before that every request would be told it does not.
async fn wait_for_the_catalog(view: &view::View) -> anyhow::Result<()> {
    let registry = object::registry();
    let namespaces = registry.by_word("namespace").context("namespaces are a kind")?;
    let (group, plural) = (namespaces.group, namespaces.plural);
    let mut watch = view.watch(group, plural, None, None).context("cannot watch the catalog")?;
    let appears = async {
        while view.list(group, plural, None).items.is_empty()
            && watch.next().await.is_some_and(|event| event.is_ok())
        {}
    };
    tokio::time::timeout(Duration::from_secs(30), appears).await.context("the catalog did not come up")
}

async fn serve_until_stopped(
    level: &LevelSwitch,
    overrides: &Overrides,
    actors: &Actors,
) -> anyhow::Result<()> {
    let mut signals = Signals::listen().context("cannot listen to signals")?;
    loop {
        match signals.next().await {
            Asked::Stop => return Ok(()),
            Asked::Reload => reload(level, overrides, actors),
        }
    }
}

/// Takes what may change while the daemon runs. Settings that are wrong change nothing.
fn reload(level: &LevelSwitch, overrides: &Overrides, actors: &Actors) {
    let reread = settings::load(overrides).map_err(anyhow::Error::from);
    match reread.and_then(|settings| level.set(&settings.log.level).map(|()| settings)) {
        Ok(settings) => {
            actors.builds.resize(settings.builds_at_once_max);
            tracing::info!(
                log.level = settings.log.level,
                builds_at_once_max = settings.builds_at_once_max,
                "settings read again"
            );
        }
        Err(error) => tracing::error!("the settings stay as they were: {error:#}"),
    }
}

fn ready(settings: &Settings) {
    tracing::info!(socket = %settings.socket.display(), version = env!("CARGO_PKG_VERSION"), "ready");
    notify(&[NotifyState::Ready]);
}

fn notify(states: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "systemd was not told");
    }
}

fn store_options(settings: &Settings) -> StoreOptions {
    StoreOptions {
        cache_bytes: settings.store.cache_mib << 20,
        ballast_bytes: settings.store.ballast_mib << 20,
        no_builds_below_percent: settings.store.builds_free_percent_min,
        releases_only_below_percent: settings.store.writes_free_percent_min,
        ..StoreOptions::new(|_| end_at_once())
    }
}

fn sandbox_options(settings: &Settings, store: &Store) -> SandboxOptions {
    SandboxOptions {
        images_dir: settings.images.directory_in(&settings.data_dir),
        images: settings.images.named.clone(),
        default_image: settings.images.default.clone().unwrap_or_else(|| "host".into()),
        host_includes: settings.images.host_includes.clone(),
        id_base: settings.sandbox.first_id,
        ..SandboxOptions::new(store.instance(), settings.data_dir.clone())
    }
}

fn http_options(settings: &Settings) -> http::Options {
    let drain = u64::try_from(settings.drain_timeout.millis()).unwrap_or(0);
    http::Options {
        requests: settings.requests_at_once_max,
        drain_within: Duration::from_millis(drain),
        ..http::Options::default()
    }
}

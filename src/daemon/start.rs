//! From settings to a serving daemon, and back.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use sd_notify::NotifyState;
use tokio::sync::watch as channel;

use super::log::LevelSwitch;
use super::signals::{Asked, Signals};
use super::{LOST, log, socket};
use crate::actor::adoption;
use crate::actor::backend::Doors;
use crate::actor::core::Sources;
use crate::actor::house::House;
use crate::metrics::Metrics;
use crate::object;
use crate::provider::sandbox::{Sandbox, SandboxOptions, launcher};
use crate::provider::{Availability, Provider, Providers};
use crate::settings::{self, Overrides, Settings};
use crate::store::{Store, StoreOptions};
use crate::{http, view};

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
    let metrics = Metrics::new(view.clone());
    let options = StoreOptions { meter: metrics.commits.clone(), ..store_options(&settings) };
    let store = Store::open(settings.data_dir.clone(), options, writer)?;
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
        metrics,
    };

    let (places, watched) = (settings.builds_at_once_max, Arc::clone(&providers));
    let house = House::start(runtime.handle().clone(), places, &store, sources.clone(), watched)
        .context("cannot start the actors")?;
    watch_over(&house)?;
    let doors = Arc::new(Doors {
        sources,
        directory: house.directory.clone(),
        supervisor: house.supervisor.clone(),
        given_up: house.given_up.clone(),
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
        serve_until_stopped(&level, &overrides, &house).await?;
        tracing::info!("stopping: members live on");
        notify(&[NotifyState::Stopping]);
        stop.send_replace(true);
        serving.await.context("the front end failed")
    });
    if let Err(error) = std::fs::remove_file(&settings.socket) {
        tracing::debug!(%error, "the socket was not there any more");
    }
    house.stop();
    store.close();
    outcome
}

fn watch_over(house: &House) -> anyhow::Result<()> {
    let alive = || notify(&[NotifyState::Watchdog]);
    let stuck = |arbiter| {
        tracing::error!(arbiter, "an arbiter does not answer: the daemon ends, members live on");
        end_at_once();
    };
    house.watch(alive, stuck, sd_notify::watchdog_enabled()).context("cannot start the watchdog")
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
    house: &House,
) -> anyhow::Result<()> {
    let mut signals = Signals::listen().context("cannot listen to signals")?;
    loop {
        match signals.next().await {
            Asked::Stop => return Ok(()),
            Asked::Reload => reload(level, overrides, house),
        }
    }
}

/// Takes what may change while the daemon runs. Settings that are wrong change nothing.
fn reload(level: &LevelSwitch, overrides: &Overrides, house: &House) {
    let reread = settings::load(overrides).map_err(anyhow::Error::from);
    match reread.and_then(|settings| level.set(&settings.log.level).map(|()| settings)) {
        Ok(settings) => {
            house.builds.resize(settings.builds_at_once_max);
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

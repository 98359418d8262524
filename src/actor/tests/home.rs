//! A daemon without its front end and its machines: real arbiters, owners, member actors and store.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::flawed::FlawedPool;
use super::toy::Toy;
use crate::actor::backend::Doors;
use crate::actor::core::Sources;
use crate::actor::doors::{Backend as _, Refusal, Verb, Write, Written};
use crate::actor::house::House;
use crate::actor::supervisor::RunOwner;
use crate::actor::turns::{self, Turns};
use crate::catalog::Catalog;
use crate::fleet::Fleet;
use crate::metrics::Metrics;
use crate::object::{FieldValidation, Mutation, Part, Subject, registry};
use crate::provider::{Provider, Providers};
use crate::store::{OwnerId, Space, Store, StoreOptions};
use crate::view::{self, Key, Resource, View};

/// Nothing here takes longer, however busy the machine is.
pub const SOON: Duration = Duration::from_secs(30);

/// The daemon.
pub struct Home {
    pub toy: Arc<Toy>,
    running: Running,
    dir: TempDir,
}

/// What a restart replaces.
struct Running {
    doors: Doors,
    house: House,
    store: Store,
    view: View,
}

/// Real owners, but for pools that panic where a lease's name says so.
pub const FLAWED: RunOwner = |supervisor, loaded, addr| match loaded.owner() {
    OwnerId::Catalog => supervisor.run::<Catalog>(loaded, addr),
    OwnerId::Fleet(_) => supervisor.run::<Fleet>(loaded, addr),
    OwnerId::Pool(_) => supervisor.run::<FlawedPool>(loaded, addr),
};

impl Home {
    /// Starts one on a new store and waits until the namespace `local` is there.
    pub async fn open(run: RunOwner, builds_at_once_max: u32) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let toy = Arc::new(Toy::default());
        let running = Running::start(dir.path(), &toy, run, builds_at_once_max);
        let home = Self { toy, running, dir };
        home.until("the catalog is up", || home.shown("namespace", "local").is_some()).await;
        home
    }

    /// Stops it and starts it again on the same store, with owners of another sort. The machines
    /// live on.
    pub async fn reopen(&mut self, run: RunOwner) {
        self.running.house.stop();
        self.running.store.close();
        self.running = Running::start(self.dir.path(), &self.toy, run, 8);
        self.until("the catalog is up", || self.shown("namespace", "local").is_some()).await;
    }

    /// Waits for a condition.
    pub async fn until(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + SOON;
        while !condition() {
            assert!(Instant::now() < deadline, "waited in vain until {what}; {:#?}", self.everything());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// A pool of this name.
    pub async fn pool(&self, name: &str, max: u32, running: u32) {
        let spec = json!({
            "template": {"spec": {}}, "size": {"max": max}, "warm": {"running": running}
        });
        self.create("workstationpool", name, spec).await.expect("created");
    }

    /// Asks `pool` for a lease.
    pub async fn lease(&self, pool: &str, name: &str) -> Result<Written, Refusal> {
        let key = format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} {name}", "A".repeat(43));
        let spec = json!({"workstationPoolRef": {"name": pool}, "authorizedKeys": [key]});
        self.create("workstationpoollease", name, spec).await
    }

    /// Releases a lease.
    pub async fn release(&self, name: &str) -> Result<Written, Refusal> {
        self.patch("workstationpoollease", name, json!({"spec": {"state": "Done"}})).await
    }

    /// Writes a part of an object.
    pub async fn patch(&self, word: &str, name: &str, patch: Value) -> Result<Written, Refusal> {
        let (name, mutation) = (name.to_owned(), Mutation::MergePatch(patch));
        self.write(word, Verb::Update { name, mutation, part: Part::Main }).await
    }

    /// The present object, as everybody reads it.
    pub fn shown(&self, word: &str, name: &str) -> Option<Arc<Resource>> {
        let kind = registry().by_word(word).expect("a kind");
        self.running.view.get(&Key::new(kind, kind.namespaced.then_some("local"), name))
    }

    /// One text of an object; empty where it has none.
    pub fn text(&self, word: &str, name: &str, pointer: &str) -> String {
        let shown = self.shown(word, name);
        let value = shown.as_ref().and_then(|object| object.value.pointer(pointer));
        value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default()
    }

    /// Waits until a lease is Ready, and says on which member.
    pub async fn ready(&self, lease: &str) -> String {
        let phase = || self.text("workstationpoollease", lease, "/status/phase");
        self.until(&format!("{lease} is Ready"), || phase() == "Ready").await;
        self.text("workstationpoollease", lease, "/status/workstationName")
    }

    /// What `/readyz` says against being ready.
    pub fn not_ready(&self) -> Vec<String> {
        self.running.doors.health().not_ready
    }

    async fn create(&self, word: &str, name: &str, spec: Value) -> Result<Written, Refusal> {
        let body = json!({"metadata": {"name": name}, "spec": spec});
        self.write(word, Verb::Create { body }).await
    }

    async fn write(&self, word: &str, verb: Verb) -> Result<Written, Refusal> {
        let kind = registry().by_word(word).expect("a kind");
        let (namespace, by) = (Some("local".to_owned()), Subject::user("local"));
        let field_validation = FieldValidation::Strict;
        self.running.doors.write(Write { kind, namespace, by, verb, dry_run: false, field_validation }).await
    }

    fn everything(&self) -> Vec<Value> {
        let group = crate::object::WORKSTATIONS_GROUP;
        let kinds = ["workstationpools", "workstationpoolleases"];
        let listed = kinds.into_iter().flat_map(|plural| self.running.view.list(group, plural, None).items);
        listed.map(|object| json!({object.key.name.as_str(): object.value["status"]})).collect()
    }
}

impl Running {
    fn start(dir: &Path, toy: &Arc<Toy>, run: RunOwner, builds_at_once_max: u32) -> Self {
        let (view, writer) = view::new(1000);
        let mut options = StoreOptions::new(|error| panic!("the store failed: {error}"));
        options.ballast_bytes = 0;
        let store = Store::open(dir.join("data"), options, writer).expect("opens");
        let providers: Providers = Arc::from(vec![Arc::clone(toy) as Arc<dyn Provider>]);
        let sources = Sources {
            view: view.clone(),
            registry: registry(),
            providers: Arc::clone(&providers),
            space: Arc::new(|| Space::Ample),
            turns: Turns::new(builds_at_once_max, turns::in_flight(&view)),
            metrics: Metrics::new(view.clone()),
        };
        let runtime = tokio::runtime::Handle::current();
        let house = House::start_with(runtime, &store, sources.clone(), providers, run).expect("threads");
        let doors = Doors {
            sources,
            directory: house.directory.clone(),
            supervisor: house.supervisor.clone(),
            given_up: house.given_up.clone(),
            instance: store.instance(),
            data_dir: String::new(),
        };
        Self { doors, house, store, view }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.house.stop();
        self.store.close();
    }
}

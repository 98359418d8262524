//! Owners that die: rebuilt from disk, with nothing lost that was said, and given up when they
//! keep dying. The owner here is the catalog with a flaw, since real ones do not panic on request.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor as _, Arbiter};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::core::{Core, Decided, Reading, Sources};
use super::directory::Directory;
use super::doors::{Refusal, Verb, Write, Written};
use super::owner::Ask;
use super::supervisor::{GivenUp, Start, Supervisor};
use crate::catalog::{Catalog, Change, Command};
use crate::machine::{Fact, Want};
use crate::metrics::{Form, Metrics};
use crate::object::{CORE_GROUP, FieldValidation, Subject, Tick, Time, registry};
use crate::store::{self, OwnerId, Record, Space, Store, StoreOptions};
use crate::view::{self, View};

/// Nothing here takes longer, however busy the machine is.
const SOON: Duration = Duration::from_secs(30);

/// A catalog that panics where a user's name says so.
struct Flawed(Catalog);

impl Core for Flawed {
    type Command = Command;
    type Change = Change;
    type Inputs = ();

    fn load(owner: &OwnerId, records: Vec<Record>) -> Self {
        Self(<Catalog as Core>::load(owner, records))
    }

    fn read(&self, write: &Write, tick: &Tick, sources: &Sources) -> Result<Reading<Command>, Refusal> {
        assert_ne!(write.verb.name(), "panic-before-submit", "as asked");
        self.0.read(write, tick, sources)
    }

    fn heard(_: Fact) -> Command {
        Command::Pass
    }

    fn pass() -> Command {
        Command::Pass
    }

    fn decide(&self, command: Command, tick: &Tick, inputs: &()) -> Result<Decided<Change>, Refusal> {
        Core::decide(&self.0, command, tick, inputs)
    }

    fn evolve(&mut self, changes: &[Change]) {
        for change in changes {
            let Change::Put(item) = change else { continue };
            // The change is submitted by now.
            assert_ne!(item.metadata().name, "panic-in-evolve", "as asked");
        }
        Core::evolve(&mut self.0, changes);
    }

    fn stored(change: &Change) -> store::Write {
        Catalog::stored(change)
    }

    fn next_deadline(&self, _: &Tick) -> Option<Time> {
        None
    }

    fn wants(&self, (): &()) -> Vec<Want> {
        Vec::new()
    }

    fn inputs(&self, _: &Sources) {}

    fn note_status_in_flight((): &mut (), _: bool) {}

    fn is_over(&self) -> bool {
        false
    }
}

/// A store, a supervisor of flawed catalogs, and what was given up.
struct House {
    view: View,
    supervisor: actix::Addr<Supervisor>,
    given_up: GivenUp,
    metrics: Metrics,
    _dir: TempDir,
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let (view, writer) = view::new(100);
        let mut options = StoreOptions::new(|error| panic!("the store failed: {error}"));
        options.ballast_bytes = 0;
        let store = Store::open(dir.path().join("data"), options, writer).expect("opens");
        let arbiters: Vec<_> = (0..2).map(|_| Arbiter::new().handle()).collect();
        let directory = Directory::new(arbiters, Arc::from(Vec::new()));
        let metrics = Metrics::new(view.clone());
        let sources = Sources {
            view: view.clone(),
            registry: registry(),
            providers: Arc::from(Vec::new()),
            space: Arc::new(|| Space::Ample),
            metrics: metrics.clone(),
        };
        let given_up = GivenUp::default();
        let supervisor =
            Supervisor::running(store, directory, sources, given_up.clone(), |supervisor, loaded, addr| {
                supervisor.run::<Flawed>(loaded, addr);
            });
        Self { view, supervisor: supervisor.start(), given_up, metrics, _dir: dir }
    }

    /// Creates a user; none where the owner died over it.
    async fn create(&self, name: &str) -> Option<Result<Written, Refusal>> {
        let kind = registry().by_plural(CORE_GROUP, "v1", "users").expect("a kind");
        let write = Write {
            kind,
            namespace: None,
            by: Subject::user("local"),
            verb: Verb::Create { body: json!({"metadata": {"name": name}}) },
            dry_run: false,
            field_validation: FieldValidation::Strict,
        };
        let (reply, answer) = oneshot::channel();
        self.supervisor.do_send(Start { owner: OwnerId::Catalog, ask: Some(Ask { write, reply }) });
        tokio::time::timeout(SOON, answer).await.expect("an end, one way or the other").ok()
    }

    fn has(&self, name: &str) -> bool {
        self.view.list(CORE_GROUP, "users", None).items.iter().any(|user| user.key.name == name)
    }

    /// Creates a user as soon as the owner is up again.
    async fn create_once_rebuilt(&self, name: &str) {
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            match self.create(name).await {
                Some(Ok(_) | Err(Refusal::AlreadyExists)) => return,
                Some(Err(refusal)) => panic!("refused: {refusal}"),
                None => assert!(tokio::time::Instant::now() < deadline, "the owner did not come back"),
            }
        }
    }
}

#[actix::test]
async fn an_owner_that_panics_before_submit_is_rebuilt_and_has_written_nothing() {
    let house = House::new();
    assert!(house.create("ada").await.expect("answered").is_ok());
    assert!(house.create("panic-before-submit").await.is_none(), "its reply is dropped, not invented");
    house.create_once_rebuilt("bob").await;
    assert!(house.has("ada") && !house.has("panic-before-submit"));
    assert!(house.given_up.sentences().is_empty());
    let scraped = house.metrics.scrape(Form::Prometheus).expect("written");
    assert!(scraped.contains("\nringleader_owner_restarts_total 1\n"), "{scraped}");
    assert!(scraped.contains("\nringleader_owners_given_up 0\n"), "{scraped}");
}

#[actix::test]
async fn what_was_submitted_before_a_panic_is_there_and_its_answer_came() {
    let house = House::new();
    let answer = house.create("panic-in-evolve").await;
    assert!(answer.expect("the effect belongs to the submission, not to the actor").is_ok());
    house.create_once_rebuilt("bob").await;
    assert!(house.has("panic-in-evolve"));
}

#[actix::test]
async fn an_owner_that_keeps_panicking_is_given_up_with_a_sentence() {
    let house = House::new();
    let deadline = tokio::time::Instant::now() + SOON;
    while house.given_up.sentences().is_empty() {
        assert!(tokio::time::Instant::now() < deadline, "never given up");
        house.create("panic-before-submit").await;
    }
    assert!(house.given_up.has(&OwnerId::Catalog));
    assert!(house.given_up.sentences()[0].starts_with("the catalog has failed 5 times in a minute"));
    let scraped = house.metrics.scrape(Form::Prometheus).expect("written");
    assert!(scraped.contains("\nringleader_owners_given_up 1\n"), "{scraped}");
}

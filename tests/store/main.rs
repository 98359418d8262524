//! The store from outside: what owners and operators may rely on.

mod crash;
mod damage;
mod idle;
mod owners;
mod power;
mod space;
mod startup;
mod submit;
#[path = "../trace/mod.rs"]
mod trace;

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ringleader::object::{Metadata, Namespace, NamespaceSpec, Time, User, UserSpec};
use ringleader::store::{
    Conflict, Effect, OwnerId, Precondition, Record, RecordId, RecordKind, Store, StoreError, StoreOptions,
    Submission, Versions, Write,
};
use ringleader::view::{self, Key, View};
use ulid::Ulid;

/// An open store and its view.
struct Opened {
    store: Store,
    view: View,
}

/// Opens the store in `dir` without ballast; a failure of the disk fails the test.
fn open(dir: &Path) -> Opened {
    try_open(dir).unwrap_or_else(|error| panic!("the store opens: {error}"))
}

fn try_open(dir: &Path) -> Result<Opened, StoreError> {
    let (view, writer) = view::new(view::EVENTS_KEPT_PER_KIND);
    let store = Store::open(dir, options(), writer)?;
    Ok(Opened { store, view })
}

fn refusal(dir: &Path) -> StoreError {
    try_open(dir).err().expect("the store refuses to open")
}

fn options() -> StoreOptions {
    let mut options = StoreOptions::new(|error| panic!("the store failed: {error}"));
    options.ballast_bytes = 0;
    options
}

impl Opened {
    /// Begins a new incarnation of `owner` and waits for its records.
    fn load(&self, owner: OwnerId) -> (Author<'_>, Vec<Record>) {
        let (incarnation, records) = self.store.load(owner.clone());
        let records = records.blocking_recv().expect("the committer answers a load");
        (Author { store: &self.store, owner, incarnation }, records)
    }

    fn settle(&self) {
        self.store.barrier().blocking_recv().expect("the committer passes a barrier");
    }
}

/// One incarnation of an owner.
#[derive(Clone)]
struct Author<'a> {
    store: &'a Store,
    owner: OwnerId,
    incarnation: u64,
}

impl Author<'_> {
    fn submit(
        &self,
        preconditions: Vec<Precondition>,
        writes: Vec<Write>,
        effects: Vec<Effect>,
    ) -> Result<Versions, Conflict> {
        let (owner, incarnation) = (self.owner.clone(), self.incarnation);
        self.store.submit(Submission { owner, incarnation, preconditions, writes, effects })
    }

    /// Writes and waits until the write is durable and visible.
    fn write(&self, writes: Vec<Write>) -> Versions {
        let (done, wait) = mpsc::channel();
        let effect: Effect = Box::new(move |_| done.send(()).expect("the test waits"));
        let versions = self.submit(vec![], writes, vec![effect]).expect("nothing conflicts");
        wait.recv().expect("the effect runs");
        versions
    }
}

fn user(uid: u128, name: &str, display_name: &str) -> User {
    User {
        metadata: Metadata {
            name: name.into(),
            uid: Some(Ulid(uid)),
            generation: 1,
            creation_timestamp: Some(Time::from_millis(1_790_000_000_000)),
            ..Metadata::default()
        },
        spec: UserSpec { display_name: display_name.into(), ..UserSpec::default() },
    }
}

fn put(uid: u128, name: &str, display_name: &str) -> Write {
    Write::Put(Record::User(user(uid, name, display_name)))
}

fn put_namespace(uid: u128, name: &str) -> Write {
    let metadata = Metadata { name: name.into(), uid: Some(Ulid(uid)), ..Metadata::default() };
    Write::Put(Record::Namespace(Namespace { metadata, spec: NamespaceSpec::default() }))
}

fn remove(uid: u128) -> Write {
    Write::Remove(user_id(uid))
}

fn user_id(uid: u128) -> RecordId {
    RecordId { kind: RecordKind::User, uid: Ulid(uid) }
}

fn user_key(name: &str) -> Key {
    Key {
        group: ringleader::object::CORE_GROUP,
        plural: "users",
        namespace: String::new(),
        name: name.into(),
    }
}

/// Waits for a condition, or fails the test.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A directory that is not there yet, inside one that goes with the test.
fn fresh() -> (tempfile::TempDir, std::path::PathBuf) {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let dir = parent.path().join("data");
    (parent, dir)
}

//! A store to measure, on the disk that the build uses.

#![allow(dead_code, reason = "no bench uses all of it")]

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use ringleader::object::{Device, DeviceSpec, Metadata, Time};
use ringleader::store::{
    Effect, OwnerId, Record, RecordId, RecordKind, Store, StoreOptions, Submission, Versions, Write,
};
use ringleader::view::{self, View};
use ulid::Ulid;

/// An open store with one loaded owner.
pub struct Measured {
    pub store: Store,
    pub view: View,
    pub dir: tempfile::TempDir,
    incarnation: u64,
}

impl Measured {
    /// A new store.
    pub fn new() -> Self {
        let dir = tempfile::tempdir_in(scratch()).expect("the build directory can be written");
        let (view, writer) = view::new(view::EVENTS_KEPT_PER_KIND);
        let mut options = StoreOptions::new(|error| panic!("the store failed: {error}"));
        options.ballast_bytes = 0;
        let store = Store::open(dir.path(), options, writer).expect("a new store opens");
        let (incarnation, records) = store.load(OwnerId::Catalog);
        records.blocking_recv().expect("the committer answers");
        Self { store, view, dir, incarnation }
    }

    /// Queues one submission.
    pub fn submit(&self, writes: Vec<Write>, effects: Vec<Effect>) -> Versions {
        let (owner, incarnation) = (OwnerId::Catalog, self.incarnation);
        let submission = Submission { owner, incarnation, preconditions: vec![], writes, effects };
        self.store.submit(submission).expect("nothing conflicts")
    }

    /// One submission, from handing over to its effect.
    pub fn commit(&self, writes: Vec<Write>) {
        let (done, wait) = mpsc::sync_channel(1);
        self.submit(writes, vec![Box::new(move |_| done.send(()).expect("somebody waits"))]);
        wait.recv().expect("the effect runs");
    }
}

/// A directory on the file system that is measured.
pub fn scratch() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned()
}

/// Writes a record of about the size of a lease (half a KiB).
pub fn put(uid: u128, revision: u64) -> Write {
    let pairs = (0..4).map(|n| (format!("example.org/label-{n}"), format!("some value {revision}")));
    let metadata = Metadata {
        name: format!("build-{uid:026}"),
        namespace: None,
        uid: Some(Ulid(uid)),
        generation: i64::try_from(revision).unwrap_or_default(),
        creation_timestamp: Some(Time::from_millis(1_790_000_000_000)),
        labels: pairs.clone().collect(),
        annotations: pairs.collect(),
        finalizers: vec!["pools.ringleader.dev/release".into()],
        ..Metadata::default()
    };
    let public_key = format!("ssh-ed25519 {} laptop", "A".repeat(68));
    Write::Put(Record::Device(Device { metadata, spec: DeviceSpec { owner: "ada".into(), public_key } }))
}

pub fn remove(uid: u128) -> Write {
    Write::Remove(RecordId { kind: RecordKind::Device, uid: Ulid(uid) })
}

//! What one submission may rely on: checks, versions, order.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use ringleader::object::{PoolStatus, Subject};
use ringleader::pool::{Health, PoolRow};

use super::*;

#[test]
fn a_write_is_in_the_view_under_its_version_when_its_effect_runs() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    let (told, hear) = mpsc::channel();
    let view = opened.view.clone();
    let effect: Effect = Box::new(move |committed| {
        let written = committed.resource(&user_key("ada")).expect("what was written");
        let seen = view.get(&user_key("ada")).expect("the view shows it");
        told.send((written, seen, view.version())).expect("the test listens");
    });
    let versions = catalog.submit(vec![], vec![put(1, "ada", "Ada")], vec![effect]).expect("accepted");
    let (written, seen, version) = hear.recv().expect("the effect ran");
    assert_eq!(written, seen);
    assert_eq!((written.version, version), (versions.first, versions.last()));
    let expected = serde_json::json!({
        "apiVersion": "core.ringleader.dev/v1", "kind": "User",
        "metadata": {
            "name": "ada", "uid": Ulid(1).to_string(), "generation": 1,
            "creationTimestamp": "2026-09-21T14:13:20Z", "resourceVersion": versions.first.to_string(),
        },
        "spec": { "displayName": "Ada", "disabled": false },
    });
    assert_eq!(written.value, expected);
}

#[test]
fn a_removed_object_is_told_in_its_last_state_under_the_version_of_its_removal() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    catalog.write(vec![put(1, "ada", "Ada")]);
    let (told, hear) = mpsc::channel();
    let effect: Effect = Box::new(move |committed| {
        told.send(committed.resource(&user_key("ada")).expect("the last state")).expect("the test listens");
    });
    let versions = catalog.submit(vec![], vec![remove(1)], vec![effect]).expect("accepted");
    let last = hear.recv().expect("the effect ran");
    assert_eq!(last.version, versions.first);
    assert_eq!(last.value["metadata"]["resourceVersion"], versions.first.to_string());
    assert_eq!(last.value["spec"]["displayName"], "Ada");
    assert_eq!(opened.view.get(&user_key("ada")), None);
}

#[test]
fn a_name_is_taken_as_soon_as_its_write_is_queued() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    let (release, hold) = mpsc::channel::<()>();
    let wait: Effect = Box::new(move |_| hold.recv().expect("the test lets go"));
    catalog.submit(vec![], vec![], vec![wait]).expect("accepted");
    let absent = || vec![Precondition::Absent(user_key("ada"))];
    catalog.submit(absent(), vec![put(1, "ada", "first")], vec![]).expect("the name is free");
    assert_eq!(opened.view.get(&user_key("ada")), None, "the write still waits");
    let refused = catalog.submit(absent(), vec![put(2, "ada", "second")], vec![]);
    assert_eq!(refused, Err(Conflict::Exists(user_key("ada"))));
    catalog.submit(vec![], vec![remove(1)], vec![]).expect("accepted");
    catalog
        .submit(absent(), vec![put(2, "ada", "second")], vec![])
        .expect("free again, though nothing is written yet");
    release.send(()).expect("the committer waits");
    opened.settle();
    assert_eq!(opened.view.get(&user_key("ada")).expect("written").uid, Ulid(2));
}

#[test]
fn a_stale_version_is_refused_with_the_version_that_is_there() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    let first = catalog.write(vec![put(1, "ada", "1")]).first;
    let at = |version| vec![Precondition::Version(user_key("ada"), version)];
    let second = catalog.submit(at(first), vec![put(1, "ada", "2")], vec![]).expect("unchanged so far").first;
    let refused = catalog.submit(at(first), vec![put(1, "ada", "3")], vec![]).expect_err("changed since");
    assert_eq!(refused, Conflict::Changed { key: user_key("ada"), expected: first, found: Some(second) });
    assert_eq!(
        refused.to_string(),
        format!(
            "users \"ada\" has changed: version {first} was expected, version {second} is there; read it again and retry"
        )
    );
    catalog.write(vec![remove(1)]);
    let gone = catalog.submit(at(second), vec![], vec![]);
    assert_eq!(gone, Err(Conflict::Changed { key: user_key("ada"), expected: second, found: None }));
}

#[test]
fn a_refused_submission_leaves_nothing_behind_not_even_a_version() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    let before = catalog.write(vec![put(1, "ada", "Ada"), put(2, "bob", "Bob")]);
    let effect: Effect = Box::new(|_| panic!("an effect of a refused submission ran"));
    let writes =
        vec![put(1, "ada", "changed"), remove(2), put(3, "eve", "Eve"), put(4, "ada", "a second ada")];
    let refused = catalog.submit(vec![], writes, vec![effect]);
    assert_eq!(refused, Err(Conflict::Exists(user_key("ada"))));
    let after = catalog.write(vec![put(2, "bob", "Bob again")]);
    assert_eq!(after.first, before.last() + 1);
    assert_eq!(opened.view.get(&user_key("ada")).expect("still there").value["spec"]["displayName"], "Ada");
    assert_eq!(opened.view.get(&user_key("eve")), None);
    drop(catalog);
    drop(opened);
    let opened = open(&dir);
    assert_eq!(opened.view.list(ringleader::object::CORE_GROUP, "users", None).items.len(), 2);
}

#[test]
fn versions_follow_each_other_in_the_order_of_the_queue_whoever_submits() {
    const WRITERS: u128 = 8;
    const WRITES: u128 = 100;
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let order = Arc::new(Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (opened, order) = (&opened, &order);
            scope.spawn(move || {
                let (pool, _) = opened.load(OwnerId::Pool(Ulid(writer)));
                for write in 0..WRITES {
                    let uid = writer * WRITES + write;
                    let (name, order) = (format!("user-{uid}"), Arc::clone(order));
                    let key = user_key(&name);
                    let effect: Effect = Box::new(move |committed| {
                        let version = committed.resource(&key).expect("written").version;
                        order.lock().expect("no effect panicked").push(version);
                    });
                    pool.submit(vec![], vec![put(uid, &name, "")], vec![effect]).expect("accepted");
                }
            });
        }
    });
    opened.settle();
    let order = order.lock().expect("no effect panicked");
    let expected: Vec<u64> = (1..=u64::try_from(WRITERS * WRITES).expect("a few")).collect();
    assert_eq!(*order, expected);
}

#[test]
fn an_empty_submission_waits_for_what_was_queued_before_it() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    let written = catalog.submit(vec![], vec![put(1, "ada", "Ada")], vec![]).expect("accepted");
    let (told, hear) = mpsc::channel();
    let effect: Effect = Box::new(move |committed| {
        told.send(committed.resource(&user_key("ada"))).expect("the test listens");
    });
    let versions = catalog.submit(vec![], vec![], vec![effect]).expect("accepted");
    assert_eq!((versions.count, versions.last()), (0, written.last()));
    assert!(hear.recv().expect("the effect ran").is_some(), "a no-op's answer shows the object as it stands");
}

#[test]
fn a_panicking_effect_stops_neither_its_neighbours_nor_the_committer() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    let (told, hear) = mpsc::channel();
    let effects: Vec<Effect> = vec![
        Box::new(|_| panic!("this owner has a fault")),
        Box::new(move |_| told.send(()).expect("the test listens")),
    ];
    catalog.submit(vec![], vec![put(1, "ada", "Ada")], effects).expect("accepted");
    hear.recv().expect("the next effect ran");
    catalog.write(vec![put(2, "bob", "Bob")]);
}

#[test]
fn a_committer_that_hangs_shows_in_the_age_of_what_waits_for_it() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    let idle = |opened: &Opened| eventually("idle", || opened.store.oldest_unwritten_ms().is_none());
    idle(&opened);
    let (release, hold) = mpsc::channel::<()>();
    let hang: Effect = Box::new(move |_| hold.recv().expect("the test lets go"));
    catalog.submit(vec![], vec![put(1, "ada", "")], vec![hang]).expect("accepted");
    eventually("the age of what hangs grows", || opened.store.oldest_unwritten_ms() >= Some(20));
    catalog.submit(vec![], vec![put(2, "bob", "")], vec![]).expect("accepted");
    assert!(opened.store.oldest_unwritten_ms() >= Some(20), "what came later makes it no younger");
    release.send(()).expect("the committer waits");
    idle(&opened);
}

#[test]
fn closing_writes_what_is_queued_and_refuses_the_rest() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    for uid in 0..50 {
        catalog.submit(vec![], vec![put(uid, &format!("user-{uid}"), "")], vec![]).expect("accepted");
    }
    opened.store.close();
    assert_eq!(opened.view.version(), 50);
    assert_eq!(catalog.submit(vec![], vec![], vec![]), Err(Conflict::Closed));
    assert!(opened.store.barrier().blocking_recv().is_err(), "a closed store has nothing to wait for");
    assert_eq!(open(&dir).view.version(), 50, "the directory is free for the next");
}

#[test]
fn the_last_handle_may_go_with_an_effect() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    let (release, hold) = mpsc::channel::<()>();
    let (told, hear) = mpsc::channel();
    let last = opened.store.clone();
    let effect: Effect = Box::new(move |_| {
        hold.recv().expect("the test lets go");
        drop(last);
        told.send(()).expect("the test listens");
    });
    catalog.submit(vec![], vec![], vec![effect]).expect("accepted");
    let Opened { store, .. } = opened;
    let waiting = thread::spawn(move || drop(store));
    release.send(()).expect("the committer waits");
    hear.recv().expect("the effect came to its end");
    waiting.join().expect("the other handle went too");
}

#[test]
fn a_record_that_is_too_large_is_refused_by_name() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    let refused = catalog.submit(vec![], vec![put(1, "ada", &"x".repeat(2 << 20))], vec![]);
    assert!(matches!(refused, Err(Conflict::TooLarge { id, .. }) if id == user_id(1)), "{refused:?}");
    catalog.write(vec![put(1, "ada", &"x".repeat(300 << 10))]);
    drop(catalog);
    drop(opened);
    let ada =
        open(&dir).view.get(&user_key("ada")).expect("what sled keeps in a file of its own is read back");
    assert_eq!(ada.value["spec"]["displayName"].as_str().map(str::len), Some(300 << 10));
}

// rule D4
#[test]
fn a_record_that_is_no_longer_shown_is_deleted_to_readers_frees_its_name_and_stays_its_owners() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let owner = OwnerId::Pool(Ulid(1));
    let (pool, _) = opened.load(owner.clone());
    let row = |uid: u128, deleted: Option<Time>| {
        let spec = serde_json::json!({"template": {"spec": {}}, "size": {"max": 1}});
        Record::Pool(PoolRow {
            metadata: Metadata {
                name: "pool".into(),
                namespace: Some("local".into()),
                uid: Some(Ulid(uid)),
                deletion_timestamp: deleted,
                ..Metadata::default()
            },
            spec: serde_json::from_value(spec).expect("a valid spec"),
            owner: Subject::user("ada"),
            template_hash: String::new(),
            ever_ready: false,
            health: Health::default(),
            status: PoolStatus::default(),
        })
    };
    let versions = pool.write(vec![Write::Put(row(1, None))]);
    let key = opened.view.by_uid(Ulid(1)).expect("shown").key.clone();
    let hidden = pool.write(vec![Write::Put(row(1, Some(Time::from_millis(5))))]);
    assert_eq!(opened.view.get(&key), None);
    assert_eq!(opened.view.version(), versions.last() + 1);
    let again = pool.write(vec![Write::Put(row(1, Some(Time::from_millis(6))))]);
    assert_eq!(opened.view.version(), again.last(), "writes of what is hidden count too");
    assert!(hidden.last() < again.first);
    let (next, _) = opened.load(OwnerId::Pool(Ulid(2)));
    let absent = vec![Precondition::Absent(key.clone())];
    next.submit(absent, vec![Write::Put(row(2, None))], vec![]).expect("the name is free");
    opened.settle();
    drop((pool, next));
    drop(opened);
    let opened = open(&dir);
    assert_eq!(opened.view.get(&key).expect("the new one").uid, Ulid(2));
    assert_eq!(opened.load(owner).1, [row(1, Some(Time::from_millis(6)))]);
}

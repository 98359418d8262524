//! Owners: one writer for each record, incarnations, loading.

use std::sync::mpsc;
use std::thread;

use super::*;

#[test]
fn who_was_never_loaded_may_not_write() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let owner = OwnerId::Pool(Ulid(1));
    for incarnation in [0, 1] {
        let stranger = Author { store: &opened.store, owner: owner.clone(), incarnation };
        let refused = stranger.submit(vec![], vec![], vec![]);
        assert_eq!(refused, Err(Conflict::Superseded { owner: owner.clone(), incarnation, current: 0 }));
    }
}

#[test]
fn a_load_reads_all_that_was_queued_and_ends_the_older_incarnation_at_once() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let pool = OwnerId::Pool(Ulid(1));
    let (old, _) = opened.load(pool.clone());
    let (release, hold) = mpsc::channel::<()>();
    let wait: Effect = Box::new(move |_| hold.recv().expect("the test lets go"));
    old.submit(vec![], vec![], vec![wait]).expect("accepted");
    for uid in 0..10 {
        old.submit(vec![], vec![put(uid, &format!("user-{uid}"), "")], vec![]).expect("accepted");
    }
    let (incarnation, mut records) = opened.store.load(pool.clone());
    let refused = old.submit(vec![], vec![put(10, "late", "")], vec![]);
    assert_eq!(refused, Err(Conflict::Superseded { owner: pool.clone(), incarnation: 1, current: 2 }));
    assert!(records.try_recv().is_err(), "the load stands behind what is queued");
    let new = Author { store: &opened.store, owner: pool, incarnation };
    new.submit(vec![], vec![put(11, "next", "")], vec![]).expect("the new one may write");
    release.send(()).expect("the committer waits");
    let records = records.blocking_recv().expect("the committer answers");
    let uids: Vec<Ulid> = records.iter().map(|record| record.id().uid).collect();
    assert_eq!(
        uids,
        (0..10).map(Ulid).collect::<Vec<_>>(),
        "all that was queued before the load, nothing after"
    );
}

#[test]
fn what_an_owner_loads_is_what_it_wrote() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    catalog.write(vec![put(2, "bob", "Bob"), put_namespace(1, "local"), put(3, "eve", "Eve")]);
    catalog.write(vec![put(2, "bob", "Robert"), remove(3)]);
    let (_, records) = opened.load(OwnerId::Catalog);
    let Write::Put(namespace) = put_namespace(1, "local") else { unreachable!("put makes a put") };
    assert_eq!(records, [namespace, Record::User(user(2, "bob", "Robert"))]);
}

#[test]
fn two_owners_at_once_never_see_each_others_records() {
    const ROUNDS: u128 = 200;
    let (_parent, dir) = fresh();
    let owners = [OwnerId::Pool(Ulid(1)), OwnerId::Fleet("local".into())];
    let opened = open(&dir);
    thread::scope(|scope| {
        for (number, owner) in (0_u128..).zip(&owners) {
            let opened = &opened;
            scope.spawn(move || {
                let (author, _) = opened.load(owner.clone());
                for round in 0..ROUNDS {
                    let uid = number * 1000 + round;
                    author
                        .submit(vec![], vec![put(uid, &format!("user-{uid}"), "")], vec![])
                        .expect("accepted");
                }
            });
        }
    });
    assert_eq!(opened.store.owners(), [owners[1].clone(), owners[0].clone()]);
    drop(opened);
    let opened = open(&dir);
    for (number, owner) in (0_u128..).zip(owners) {
        let (_, records) = opened.load(owner);
        let uids: Vec<u128> = records.iter().map(|record| record.id().uid.0).collect();
        assert_eq!(uids, (0..ROUNDS).map(|round| number * 1000 + round).collect::<Vec<_>>());
    }
}

#[test]
fn no_owner_touches_anothers_record_or_takes_its_name() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (one, _) = opened.load(OwnerId::Pool(Ulid(1)));
    let (other, _) = opened.load(OwnerId::Pool(Ulid(2)));
    one.write(vec![put(1, "ada", "")]);
    assert_eq!(
        other.submit(vec![], vec![put(1, "ada", "mine")], vec![]),
        Err(Conflict::NotYours(user_id(1)))
    );
    assert_eq!(other.submit(vec![], vec![remove(1)], vec![]), Err(Conflict::NotYours(user_id(1))));
    assert_eq!(other.submit(vec![], vec![put(2, "ada", "")], vec![]), Err(Conflict::Exists(user_key("ada"))));
    assert_eq!(one.submit(vec![], vec![put(1, "renamed", "")], vec![]), Err(Conflict::NotYours(user_id(1))));
    assert_eq!(one.submit(vec![], vec![remove(7)], vec![]), Err(Conflict::NotYours(user_id(7))));
}

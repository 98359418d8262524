//! Opening: what is kept, what is refused, and in which words.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

#[test]
fn everything_is_there_after_a_restart_and_the_instance_stays() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    catalog.write(vec![put(1, "ada", "Ada"), put_namespace(2, "local")]);
    let (instance, before) = (opened.store.instance(), opened.view.get(&user_key("ada")));
    drop(catalog);
    drop(opened);
    let opened = open(&dir);
    assert_eq!(opened.store.instance(), instance);
    assert_eq!(opened.view.get(&user_key("ada")), before);
    assert_eq!(opened.store.owners(), [OwnerId::Catalog]);
    let (_other_parent, other) = fresh();
    assert_ne!(open(&other).store.instance(), instance);
}

#[test]
fn a_version_is_never_given_twice_even_when_the_newest_object_is_gone() {
    let (_parent, dir) = fresh();
    let mut newest = 0;
    for round in 0..3_u128 {
        let opened = open(&dir);
        assert_eq!(opened.view.version(), newest);
        let (catalog, _) = opened.load(OwnerId::Catalog);
        let put = catalog.write(vec![put(round, "ada", "")]);
        assert_eq!(put.first, newest + 1);
        newest = catalog.write(vec![remove(round)]).last();
    }
}

#[test]
fn a_watch_from_before_the_start_is_too_old_and_one_from_its_version_is_not() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    let newest = catalog.write(vec![put(1, "ada", ""), put(2, "bob", "")]).last();
    drop(catalog);
    drop(opened);
    let opened = open(&dir);
    let watch = |since| opened.view.watch(ringleader::object::CORE_GROUP, "users", None, Some(since));
    assert_eq!(watch(newest - 1).expect_err("not kept over a restart").oldest, newest);
    assert!(watch(newest).is_ok(), "nothing has happened since");
}

#[test]
fn a_second_daemon_is_told_whose_the_directory_is() {
    let (_parent, dir) = fresh();
    let first = open(&dir);
    let error = refusal(&dir);
    assert!(
        matches!(error, StoreError::InUse { pid: Some(pid), .. } if pid == std::process::id()),
        "{error:?}"
    );
    let (pid, path) = (std::process::id(), dir.display());
    assert_eq!(
        error.to_string(),
        format!("another daemon (process {pid}) uses {path}: stop it, or choose another data directory")
    );
    drop(first);
    open(&dir);
}

#[test]
fn others_cannot_look_into_the_directory() {
    let (_parent, dir) = fresh();
    fs::create_dir(&dir).expect("a directory");
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("open to all");
    open(&dir);
    assert_eq!(fs::metadata(&dir).expect("there").permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    fs::write(parent.path().join("file"), "").expect("a file");
    let error = refusal(&parent.path().join("file/data"));
    assert!(matches!(error, StoreError::Directory { .. }), "{error:?}");
    assert!(error.to_string().starts_with("cannot make the directory "), "{error}");
    assert!(
        error.to_string().ends_with("the daemon needs a directory of its own that it can write"),
        "{error}"
    );
}

#[test]
fn half_a_snapshot_left_by_a_crash_does_not_keep_the_store_shut() {
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    opened.load(OwnerId::Catalog).0.write(vec![put(1, "ada", "")]);
    drop(opened);
    fs::write(dir.join("sled/snap.00000000000000FF.generating"), "half").expect("written");
    assert!(sled::Config::new().path(dir.join("sled")).open().is_err(), "sled alone would refuse");
    assert!(open(&dir).view.get(&user_key("ada")).is_some());
}

#[test]
fn a_newer_format_is_refused_by_number() {
    let (_parent, dir) = fresh();
    drop(open(&dir));
    tamper(&dir, |tree| {
        let key = b"m/format".as_slice();
        let value = sealed(key, 1, &7_u32.to_be_bytes());
        tree.insert(key, value).expect("written");
    });
    let error = refusal(&dir);
    assert!(matches!(error, StoreError::Newer { found: 7, known: 1, .. }), "{error:?}");
    assert!(
        error.to_string().contains("written by a newer version (format 7, this one reads up to 1)"),
        "{error}"
    );
}

#[test]
fn a_strange_sled_directory_is_left_alone() {
    let (_parent, dir) = fresh();
    drop(open(&dir));
    tamper(&dir, |tree| drop(tree.remove("m/format").expect("removed")));
    assert!(matches!(refusal(&dir), StoreError::Foreign { .. }));
}

#[test]
fn a_flipped_bit_a_cut_and_a_newer_type_each_stop_the_start_and_name_the_record() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(Damage, &str); 4] = [
        (|value| *value.last_mut().expect("not empty") ^= 1, "its checksum is wrong"),
        (|value| value.truncate(9), "it is cut off"),
        (|value| value.truncate(40), "its checksum is wrong"),
        (|value| value.clear(), "it is cut off"),
    ];
    for (damage, why) in damages {
        let (_parent, dir) = with_one_user();
        let key = record_key(&dir);
        tamper(&dir, |tree| {
            let mut value = tree.get(&key).expect("read").expect("there").to_vec();
            damage(&mut value);
            tree.insert(key.as_slice(), value).expect("written");
        });
        assert_names_ada(&refusal(&dir), why);
    }
    let (_parent, dir) = with_one_user();
    let key = record_key(&dir);
    tamper(&dir, |tree| drop(tree.insert(key.as_slice(), sealed(&key, 9, b"future")).expect("written")));
    assert_names_ada(&refusal(&dir), "it is of version 9 of its type and this daemon knows 1 to 1");
    tamper(&dir, |tree| drop(tree.insert(key.as_slice(), sealed(&key, 1, b"\x01")).expect("written")));
    assert_names_ada(&refusal(&dir), "its content does not fit its type");
}

#[test]
fn a_record_under_a_key_of_no_known_kind_stops_the_start() {
    let (_parent, dir) = with_one_user();
    tamper(&dir, |tree| drop(tree.insert(b"r\x01\xee", b"?").expect("written")));
    let error = refusal(&dir).to_string();
    assert!(
        error.starts_with("cannot read key r\\x01\\xee: its key is none that this version writes"),
        "{error}"
    );
}

#[test]
fn a_record_that_sled_lost_or_brought_back_stops_the_start() {
    let (_parent, dir) = with_one_user();
    let key = record_key(&dir);
    let mut older = None;
    tamper(&dir, |tree| older = tree.get(&key).expect("read"));
    let opened = open(&dir);
    opened.load(OwnerId::Catalog).0.write(vec![put(1, "ada", "Lady Lovelace")]);
    drop(opened);
    tamper(&dir, |tree| drop(tree.insert(key.as_slice(), older.expect("read above")).expect("written")));
    assert!(matches!(refusal(&dir), StoreError::Incomplete { found: 1, expected: 1 }));
    tamper(&dir, |tree| drop(tree.remove(&key).expect("removed")));
    assert!(matches!(refusal(&dir), StoreError::Incomplete { found: 0, expected: 1 }));
}

#[test]
fn a_flipped_bit_in_the_log_never_brings_back_an_older_state_in_silence() {
    const FLIPS: usize = 24;
    let (_parent, dir) = fresh();
    let opened = open(&dir);
    let (catalog, _) = opened.load(OwnerId::Catalog);
    for round in 0..20 {
        catalog.write((0..20).map(|uid| put(uid, &format!("user-{uid}"), &round.to_string())).collect());
    }
    let newest = opened.view.version();
    drop(catalog);
    drop(opened);
    let log = dir.join("sled/db");
    let intact = fs::read(&log).expect("read");
    let used = intact.iter().rposition(|byte| *byte != 0).expect("not empty");
    let mut cut_short = 0;
    for flip in 0..FLIPS {
        let mut flipped = intact.clone();
        flipped[used * flip / FLIPS] ^= 1;
        fs::write(&log, flipped).expect("written");
        match try_open(&dir) {
            Ok(opened) => assert_eq!(opened.view.version(), newest, "flip {flip}"),
            Err(StoreError::CutShort { acknowledged, .. }) => {
                assert_eq!(acknowledged, newest);
                cut_short += 1;
            }
            Err(error) => assert!(error.to_string().contains("store"), "{error}"),
        }
        restore(&dir, &intact);
    }
    assert!(cut_short > FLIPS / 2, "sled no longer cuts its log short: {cut_short} of {FLIPS}");
    fs::write(dir.join("witness"), "rubbish").expect("written");
    assert_eq!(open(&dir).view.version(), newest, "a damaged witness says nothing against the store");
}

/// Puts sled's log back, without the snapshots it made of a damaged one.
fn restore(dir: &Path, log: &[u8]) {
    for entry in fs::read_dir(dir.join("sled")).expect("there") {
        let path = entry.expect("there").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("snap.")) {
            fs::remove_file(path).expect("removed");
        }
    }
    fs::write(dir.join("sled/db"), log).expect("written");
}

fn refusal(dir: &Path) -> StoreError {
    try_open(dir).err().expect("the store refuses to open")
}

fn assert_names_ada(error: &StoreError, why: &str) {
    let what = format!("cannot read record User {} of the catalog (key ", Ulid(1));
    let text = error.to_string();
    assert!(text.starts_with(&what) && text.contains(why), "{text}\nshould begin with {what}\nand say {why}");
}

fn with_one_user() -> (tempfile::TempDir, PathBuf) {
    let (parent, dir) = fresh();
    let opened = open(&dir);
    opened.load(OwnerId::Catalog).0.write(vec![put(1, "ada", "Ada")]);
    (parent, dir)
}

/// Changes the tree behind the store's back.
fn tamper(dir: &Path, change: impl FnOnce(&sled::Db)) {
    // sled lets go of its lock a moment after the last handle has gone.
    let deadline = Instant::now() + Duration::from_secs(20);
    let tree = loop {
        match sled::Config::new().path(dir.join("sled")).open() {
            Ok(tree) => break tree,
            Err(error) => assert!(Instant::now() < deadline, "sled does not open: {error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    change(&tree);
    tree.flush().expect("flushed");
}

/// The key of the one record there is.
fn record_key(dir: &Path) -> Vec<u8> {
    let mut keys = Vec::new();
    tamper(dir, |tree| keys.extend(tree.scan_prefix("r").keys().map(|key| key.expect("read").to_vec())));
    assert_eq!(keys.len(), 1);
    keys.remove(0)
}

/// An envelope as another version of the daemon would write it.
fn sealed(key: &[u8], type_version: u8, payload: &[u8]) -> Vec<u8> {
    let body = [&1_u64.to_be_bytes(), payload].concat();
    let crc = crc32fast::hash(&[key, &[type_version], &body].concat());
    [&[type_version], crc.to_be_bytes().as_slice(), &body].concat()
}

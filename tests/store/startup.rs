//! Opening: what is kept, what is refused, and in which words.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};

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

/// A daemon that was killed may still be dying when the next one starts.
#[test]
fn a_lock_that_is_let_go_soon_is_waited_for_ours_and_that_of_sled() {
    let (_parent, dir) = with_one_user();
    for file in ["lock", "sled/db"] {
        let held = fs::File::open(dir.join(file)).expect("there");
        flock(&held, FlockOperation::LockExclusive).expect("nobody else has it");
        std::thread::scope(|scope| {
            let opening = scope.spawn(|| open(&dir).view.version());
            eventually("the opening waits for the lock", || waits_for(&dir.join(file)));
            assert!(!opening.is_finished(), "{file}");
            drop(held);
            assert_eq!(opening.join().expect("it opens"), 1, "{file}");
        });
    }
}

#[test]
fn an_old_signature_in_the_lock_names_nobody() {
    let (_parent, dir) = with_one_user();
    // Process 1 lives and has nothing to do with it.
    fs::write(dir.join("lock"), "1         \n").expect("written");
    let held = fs::File::open(dir.join("lock")).expect("there");
    flock(&held, FlockOperation::LockExclusive).expect("nobody else has it");
    assert!(matches!(refusal(&dir), StoreError::InUse { pid: None, .. }));
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
    assert!(matches!(refusal(&dir), StoreError::Incomplete { found: 1, expected: 1, .. }));
    tamper(&dir, |tree| drop(tree.remove(&key).expect("removed")));
    assert!(matches!(refusal(&dir), StoreError::Incomplete { found: 0, expected: 1, .. }));
}

fn assert_names_ada(error: &StoreError, why: &str) {
    let what = format!("cannot read record User {} of the catalog (key ", Ulid(1));
    let text = error.to_string();
    assert!(text.starts_with(&what) && text.contains(why), "{text}\nshould begin with {what}\nand say {why}");
}

/// Whether this process has the file open twice: the test, and the store that waits for it.
fn waits_for(file: &Path) -> bool {
    let open = fs::read_dir("/proc/self/fd").expect("proc is mounted").flatten();
    open.filter(|descriptor| fs::read_link(descriptor.path()).is_ok_and(|target| target == file)).count() > 1
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

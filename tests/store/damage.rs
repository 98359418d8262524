//! Files that were flipped, cut or lost: everything is there, or a sentence says which file is
//! damaged. Never an older state, never a part of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::*;

/// At how many places of each file.
const PLACES: usize = 40;

#[test]
fn a_flipped_bit_anywhere_is_named_or_harms_nothing() {
    let store = Sample::make();
    for (file, bytes) in store.files.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        for place in places(bytes) {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1 << (place % 8);
            store.replace(file, &flipped);
            store.must_be_whole_or_named(&format!("{} flipped at {place}", file.display()));
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_named_or_harms_nothing() {
    let store = Sample::make();
    for (file, bytes) in &store.files {
        for place in places(bytes) {
            store.replace(file, &bytes[..place]);
            store.must_be_whole_or_named(&format!("{} cut at {place}", file.display()));
        }
    }
}

#[test]
fn a_lost_file_is_named_or_harms_nothing() {
    let store = Sample::make();
    for file in store.files.keys() {
        fs::remove_file(store.dir.join(file)).expect("removed");
        store.must_be_whole_or_named(&format!("{} lost", file.display()));
    }
    fs::remove_dir_all(store.dir.join("sled")).expect("removed");
    let error = refusal(&store.dir);
    assert!(matches!(error, StoreError::CutShort { found: 0, .. }), "the witness remembers: {error:?}");
}

#[test]
fn the_cures_that_are_told_for_damaged_settings_and_snapshots_heal() {
    let store = Sample::make();
    let snapshot = store.snapshot();
    for file in [Path::new("sled/conf"), &snapshot] {
        let mut flipped = store.files[file].clone();
        flipped[9] ^= 1;
        store.replace(file, &flipped);
        let path = store.dir.join(file);
        assert_eq!(
            refusal(&store.dir).to_string(),
            format!(
                "the store's file {} is damaged (sled cannot read it): move that file away and start again: it is \
                 made anew",
                path.display()
            )
        );
        fs::rename(&path, store.dir.join("moved-away")).expect("moved away");
        assert_eq!(store.whole(), contents(&open(&store.dir)), "{}", file.display());
        store.restore();
    }
}

/// sled takes the first damaged message of its log for the log's end.
#[test]
fn a_log_that_sled_cuts_short_is_noticed_by_the_witness() {
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
    let mut bytes = fs::read(&log).expect("read");
    let used = bytes.iter().rposition(|byte| *byte != 0).expect("not empty");
    bytes[used / 2] ^= 1;
    fs::write(&log, bytes).expect("written");
    for snapshot in snapshots(&dir) {
        fs::remove_file(dir.join(snapshot)).expect("removed");
    }
    // sled changes the log when it opens it: the next start must not believe it either.
    for _ in 0..3 {
        let error = refusal(&dir);
        assert!(
            matches!(error, StoreError::CutShort { acknowledged, found, .. } if acknowledged == newest && found < newest),
            "{error:?}"
        );
        assert!(
            error
                .to_string()
                .starts_with(&format!("the store in {} is damaged: its log ends at", dir.display())),
            "{error}"
        );
    }
}

/// What a kill in the middle of an opening leaves, whole or half written, once or more often.
#[test]
fn snapshots_left_half_made_by_crashes_do_not_keep_the_store_shut() {
    let store = Sample::make();
    let snapshot = fs::read(store.dir.join(store.snapshot())).expect("read");
    let leftovers: [&[u8]; 4] = [b"", b"half", &snapshot[..snapshot.len() / 2], &snapshot];
    for leftover in leftovers {
        for name in ["snap.0000000000000001.generating", "snap.00000000FFFFFFFF.generating"] {
            fs::write(store.dir.join("sled").join(name), leftover).expect("written");
        }
        if leftover != snapshot {
            let alone = sled::Config::new().path(store.dir.join("sled")).open();
            assert!(alone.is_err(), "sled alone would refuse");
        }
        assert_eq!(store.whole(), contents(&open(&store.dir)));
        store.restore();
    }
}

/// A closed store with something of everything: several segments of history, an object removed,
/// one that sled keeps in a file of its own, a snapshot. Its files are put back after each damage.
struct Sample {
    dir: PathBuf,
    files: BTreeMap<PathBuf, Vec<u8>>,
    contents: Contents,
    _parent: tempfile::TempDir,
}

/// The version, and every user.
type Contents = (u64, Vec<(String, u64, String)>);

impl Sample {
    fn make() -> Self {
        let (parent, dir) = fresh();
        let opened = open(&dir);
        let (catalog, _) = opened.load(OwnerId::Catalog);
        let (pool, _) = opened.load(OwnerId::Pool(Ulid(7)));
        for round in 0..40 {
            catalog.write((0..40).map(|uid| put(uid, &format!("user-{uid}"), &round.to_string())).collect());
            pool.write((50..60).map(|uid| put(uid, &format!("user-{uid}"), &round.to_string())).collect());
        }
        catalog.write(vec![put(100, "big", &"x".repeat(300 << 10)), remove(3)]);
        drop((catalog, pool));
        drop(opened);
        // The second opening makes a snapshot.
        let opened = open(&dir);
        let contents = contents(&opened);
        drop(opened);
        let files = files_below(&dir, &dir);
        let sample = Self { dir, files, contents, _parent: parent };
        for name in ["sled/conf", "sled/db", "witness", "lock"] {
            assert!(sample.files.contains_key(Path::new(name)), "{name} is no file of a store any more");
        }
        assert!(sample.files.keys().any(|file| file.starts_with("sled/blobs")), "no file for what is large");
        sample
    }

    fn snapshot(&self) -> PathBuf {
        snapshots(&self.dir).pop().expect("sled makes snapshots")
    }

    fn replace(&self, file: &Path, bytes: &[u8]) {
        fs::write(self.dir.join(file), bytes).expect("written");
    }

    fn whole(&self) -> Contents {
        self.contents.clone()
    }

    /// Opens more than once, since sled changes damaged files when it opens them.
    fn must_be_whole_or_named(&self, damage: &str) {
        for attempt in 1..=3 {
            match try_open(&self.dir) {
                Ok(opened) => {
                    assert!(contents(&opened) == self.contents, "{damage}, start {attempt}: not whole");
                }
                Err(StoreError::Damaged { file, why, cure }) => {
                    assert!(
                        file.starts_with(&self.dir) && !why.is_empty() && !cure.is_empty(),
                        "{}",
                        file.display()
                    );
                }
                Err(StoreError::CutShort { acknowledged, .. }) => assert_eq!(acknowledged, self.contents.0),
                Err(StoreError::Incomplete { .. } | StoreError::Unreadable { .. }) => {}
                Err(error) => panic!("{damage}, start {attempt}: {error}"),
            }
        }
        self.restore();
    }

    fn restore(&self) {
        fs::remove_dir_all(&self.dir).expect("removed");
        for (file, bytes) in &self.files {
            let path = self.dir.join(file);
            fs::create_dir_all(path.parent().expect("below the directory")).expect("made");
            fs::write(path, bytes).expect("written");
        }
        fs::create_dir_all(self.dir.join("sled/blobs")).expect("made");
    }
}

/// Places over the used part of a file, its first and last bytes among them.
fn places(bytes: &[u8]) -> impl Iterator<Item = usize> + use<> {
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
    let places = used.min(PLACES);
    (0..=places).map(move |place| used * place / places.max(1))
}

fn contents(opened: &Opened) -> Contents {
    let users = opened.view.list(ringleader::object::CORE_GROUP, "users", None);
    let rows = users.items.iter().map(|user| {
        let text = user.value["spec"]["displayName"].as_str().unwrap_or_default().to_owned();
        (user.key.name.clone(), user.version, text)
    });
    (users.version, rows.collect())
}

fn snapshots(dir: &Path) -> Vec<PathBuf> {
    let files = files_below(dir, dir).into_keys();
    files.filter(|file| file.to_string_lossy().starts_with("sled/snap.")).collect()
}

fn files_below(root: &Path, dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("there") {
        let path = entry.expect("there").path();
        if path.is_dir() {
            files.extend(files_below(root, &path));
        } else {
            let bytes = fs::read(&path).expect("read");
            files.insert(path.strip_prefix(root).expect("below").to_owned(), bytes);
        }
    }
    files
}

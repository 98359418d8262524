//! A disk that fills up, on a small file system of its own. Needs root.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;

use ringleader::store::Space;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};

use super::*;

const MIB: u64 = 1 << 20;

#[test]
fn the_limits_follow_what_is_free_and_the_ballast_does_not_count_as_free() {
    let disk = SmallDisk::of_mib(64);
    let opened = open_with_ballast(&disk, 8 * MIB);
    let catalog = opened.load(OwnerId::Catalog).0;
    assert_eq!(opened.store.space(), Space::Ample);
    assert_eq!(disk.ballast_bytes(), Some(8 * MIB));
    disk.leave(2 * MIB + MIB / 2);
    assert_eq!(opened.store.space(), Space::NoBuilds);
    disk.leave(MIB);
    assert_eq!(opened.store.space(), Space::ReleasesOnly);
    catalog.write(vec![put(1, "ada", "")]);
    assert_eq!(disk.ballast_bytes(), None, "given up before the write");
    assert_eq!(opened.store.space(), Space::ReleasesOnly, "what the ballast freed is for releases");
    disk.leave(32 * MIB);
    assert_eq!(opened.store.space(), Space::Ample);
    catalog.write(vec![put(1, "ada", "again")]);
    assert_eq!(disk.ballast_bytes(), Some(8 * MIB), "laid again");
}

#[test]
fn a_full_disk_still_takes_releases_and_a_restart() {
    let disk = SmallDisk::of_mib(64);
    let opened = open_with_ballast(&disk, 16 * MIB);
    opened.load(OwnerId::Catalog).0.write((0..100).map(|uid| put(uid, &format!("user-{uid}"), "")).collect());
    drop(opened);
    disk.leave(0);
    let opened = open_with_ballast(&disk, 16 * MIB);
    assert_eq!(opened.store.space(), Space::ReleasesOnly);
    let catalog = opened.load(OwnerId::Catalog).0;
    for uid in 0..100 {
        catalog.write(vec![remove(uid)]);
    }
    drop(catalog);
    drop(opened);
    assert_eq!(open_with_ballast(&disk, 16 * MIB).view.version(), 200);
}

#[test]
fn a_write_that_fails_is_never_acknowledged_and_tells_main_once() {
    let disk = SmallDisk::of_mib(8);
    let (told, fatal) = mpsc::channel();
    let mut options = StoreOptions::new(move |error| told.send(error.to_string()).expect("the test listens"));
    options.ballast_bytes = 0;
    let (view, writer) = view::new(100);
    let opened = Opened { store: Store::open(disk.path.join("data"), options, writer).expect("opens"), view };
    let catalog = opened.load(OwnerId::Catalog).0;
    let mut acknowledged = 0;
    let error = loop {
        let (done, wait) = mpsc::channel();
        let effect: Effect = Box::new(move |_| done.send(()).expect("the test waits"));
        let uid = acknowledged + 1;
        let write = put(uid, &format!("user-{uid}"), &"x".repeat(50_000));
        let taken = catalog.submit(vec![], vec![write], vec![effect]);
        if taken.is_ok() && wait.recv().is_ok() {
            acknowledged += 1;
            assert!(acknowledged < 1000, "the disk never filled");
            continue;
        }
        break fatal.recv().expect("main is told");
    };
    let data = disk.path.join("data");
    assert!(error.starts_with(&format!("the disk of {} is full: ", data.display())), "{error}");
    assert_eq!(
        u128::from(opened.view.version()),
        acknowledged,
        "nothing is visible that was not acknowledged"
    );
    assert_eq!(catalog.submit(vec![], vec![], vec![]), Err(Conflict::Closed));
    assert!(fatal.recv().is_err(), "told once");
    // The failed store keeps sled's lock for as long as this process lives: a copy is opened.
    let (_parent, copy) = fresh();
    let copied = Command::new("cp").arg("-r").args([&disk.path.join("data"), &copy]).status();
    assert!(copied.expect("cp runs").success());
    let opened = open(&copy);
    for uid in 1..=acknowledged {
        assert!(opened.view.by_uid(Ulid(uid)).is_some(), "user {uid} was acknowledged and is lost");
    }
}

#[test]
fn a_disk_too_full_to_start_is_named_and_with_space_freed_nothing_is_lost() {
    let disk = SmallDisk::of_mib(16);
    let opened = open_with_ballast(&disk, 2 * MIB);
    let written = opened.load(OwnerId::Catalog).0.write(vec![put(1, "ada", "Ada")]);
    drop(opened);
    disk.leave(0);
    drop(open_with_ballast(&disk, 2 * MIB));
    assert_eq!(disk.ballast_bytes(), None, "given up by a start; then its room is taken too");
    disk.leave(0);
    for _ in 0..2 {
        let before = disk.files();
        let refused = refusal(&disk.path.join("data"));
        assert_eq!(
            refused.to_string(),
            format!(
                "the disk of {} is full: {} KiB are free. Free some space there and start the daemon again; nothing \
                 that was acknowledged is lost",
                disk.path.join("data").display(),
                disk.free_bytes() / 1024
            )
        );
        assert_eq!(disk.files(), before, "a refused start takes nothing and leaves nothing");
    }
    disk.leave(4 * MIB);
    let opened = open(&disk.path.join("data"));
    assert_eq!(opened.view.get(&user_key("ada")).expect("kept").version, written.first);
}

#[test]
fn a_new_store_on_a_full_disk_is_told_so_too() {
    let disk = SmallDisk::of_mib(8);
    disk.leave(0);
    assert!(matches!(refusal(&disk.path.join("data")), StoreError::Full { free_kib: 0, .. }));
    disk.leave(4 * MIB);
    open(&disk.path.join("data"));
}

#[test]
fn a_store_on_a_disk_that_became_read_only_is_named_and_unharmed() {
    let disk = SmallDisk::of_mib(8);
    let data = disk.path.join("data");
    open(&data).load(OwnerId::Catalog).0.write(vec![put(1, "ada", "Ada")]);
    mount_remount(&disk.path, MountFlags::RDONLY, "").expect("root may remount");
    let error = refusal(&data).to_string();
    assert!(error.contains(&*data.to_string_lossy()) && error.contains("Read-only file system"), "{error}");
    assert!(error.ends_with("the daemon needs a directory of its own that it can write"), "{error}");
    mount_remount(&disk.path, MountFlags::empty(), "").expect("root may remount");
    assert!(open(&data).view.get(&user_key("ada")).is_some());
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let disk = SmallDisk::of_mib(8);
    mount_remount(&disk.path, MountFlags::RDONLY, "").expect("root may remount");
    let error = try_open(&disk.path.join("data")).err().expect("refused").to_string();
    assert!(
        error.contains("cannot make the directory") && error.contains("Read-only file system"),
        "{error}"
    );
}

/// A tmpfs that goes with the test.
pub struct SmallDisk {
    pub path: PathBuf,
    _parent: tempfile::TempDir,
}

impl SmallDisk {
    pub fn of_mib(mib: u64) -> Self {
        let parent = tempfile::tempdir().expect("a temporary directory");
        let path = parent.path().to_owned();
        let size = std::ffi::CString::new(format!("size={mib}m")).expect("no zero byte");
        mount("small", &path, "tmpfs", MountFlags::empty(), size.as_c_str()).expect("this test needs root");
        Self { path, _parent: parent }
    }

    /// Fills (or empties) the disk until this much is free.
    fn leave(&self, free_bytes: u64) {
        let filler = self.path.join("filler");
        fs::write(&filler, "").expect("room for a name");
        let excess = self.free_bytes().saturating_sub(free_bytes);
        let file = fs::OpenOptions::new().write(true).open(&filler).expect("made above");
        if excess > 0 {
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, excess)
                .expect("there is so much");
        }
    }

    fn free_bytes(&self) -> u64 {
        let stat = rustix::fs::statvfs(&self.path).expect("there");
        stat.f_bavail * stat.f_frsize
    }

    /// Everything in the store's directory.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for folder in [self.path.join("data"), self.path.join("data/sled")] {
            files.extend(fs::read_dir(folder).expect("there").map(|entry| entry.expect("there").path()));
        }
        files.sort();
        files
    }

    fn ballast_bytes(&self) -> Option<u64> {
        fs::metadata(self.path.join("data/ballast")).ok().map(|file| file.len())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.path, UnmountFlags::DETACH).expect("mounted by this test");
    }
}

fn open_with_ballast(disk: &SmallDisk, ballast_bytes: u64) -> Opened {
    let (view, writer) = view::new(100);
    let mut options = StoreOptions::new(|error| panic!("the store failed: {error}"));
    options.ballast_bytes = ballast_bytes;
    Opened { store: Store::open(disk.path.join("data"), options, writer).expect("opens"), view }
}

//! A disk that fills up, on a small file system of its own. Needs root.

use std::fs;
use std::path::PathBuf;
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
    assert!(error.contains("failed while"), "{error}");
    assert_eq!(
        u128::from(opened.view.version()),
        acknowledged,
        "nothing is visible that was not acknowledged"
    );
    assert_eq!(catalog.submit(vec![], vec![], vec![]), Err(Conflict::Closed));
    assert!(fatal.recv().is_err(), "told once");
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
struct SmallDisk {
    path: PathBuf,
    _parent: tempfile::TempDir,
}

impl SmallDisk {
    fn of_mib(mib: u64) -> Self {
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
        let stat = rustix::fs::statvfs(&self.path).expect("there");
        let excess = (stat.f_bavail * stat.f_frsize).saturating_sub(free_bytes);
        let file = fs::OpenOptions::new().write(true).open(&filler).expect("made above");
        if excess > 0 {
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, excess)
                .expect("there is so much");
        }
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

//! The disk of the data directory full, beyond what the ballast gives back: the daemon ends rather
//! than to say what is not written, the next start says what to do, and nothing is lost.

use std::fs;
use std::process::Command;

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::harness::{Daemon, rl, text};

const USERS: usize = 200;

// rule F5
#[test]
fn a_disk_full_beyond_the_ballast_ends_the_daemon_with_70_and_the_next_start_says_what_to_do() {
    let mut daemon = Daemon::prepare();
    let disk = SmallDisk::at(&daemon);
    daemon.settle("[store]\nballast_mib = 2\n");
    daemon.run();
    let users: Vec<String> = (0..USERS).map(|user| format!("user-{user}")).collect();
    for user in &users {
        let manifest =
            format!("apiVersion: core.ringleader.dev/v1\nkind: User\nmetadata: {{name: {user}}}\n");
        fs::write(daemon.path("user.yaml"), manifest).expect("written");
        daemon.ok(&["apply", "-f", &daemon.path("user.yaml").display().to_string()]);
    }
    let mut gone = Vec::new();
    for user in &users {
        disk.fill();
        if daemon.rl(&["delete", "user", user, "-y"]).status.success() {
            gone.push(user.clone());
        } else {
            break;
        }
    }
    assert!(!gone.is_empty(), "the ballast lets releases through");
    assert!(gone.len() < USERS, "the disk never filled");
    assert_eq!(daemon.ends_by_itself(), 70);
    disk.fill();
    for _ in 0..2 {
        let refused = daemon.daemon_command(Command::new(rl())).output().expect("rl runs");
        assert_eq!(refused.status.code(), Some(1));
        let said = text(&refused.stderr);
        let last = said.lines().last().unwrap_or_default();
        let start =
            format!("rl: the daemon could not start: the disk of {} is full: ", daemon.data().display());
        let end = " KiB are free. Free some space there and start the daemon again; nothing that was acknowledged is \
                   lost";
        assert!(last.starts_with(&start) && last.ends_with(end), "{said}");
    }
    disk.free();
    daemon.run();
    let there = daemon.names("user");
    let undecided = &users[gone.len()];
    for user in users.iter().filter(|user| *user != undecided) {
        assert_eq!(there.contains(user), !gone.contains(user), "{user}: {there:?}");
    }
    assert_eq!(daemon.stop(), 0);
}

/// A tmpfs on a daemon's data directory, gone with the test.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn at(daemon: &Daemon) -> Self {
        fs::create_dir(daemon.data()).expect("a data directory");
        mount("small", daemon.data(), "tmpfs", MountFlags::empty(), c"size=16m").expect("root may mount");
        Self(daemon.data())
    }

    fn fill(&self) {
        let filler = fs::File::options()
            .append(true)
            .create(true)
            .open(self.0.join("filler"))
            .expect("room for a name");
        let size = filler.metadata().expect("open").len();
        let disk = statvfs(&self.0).expect("mounted");
        let free = disk.f_bavail * disk.f_frsize;
        if free > 0 {
            fallocate(&filler, FallocateFlags::empty(), size, free).expect("there is so much");
        }
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).expect("removed");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

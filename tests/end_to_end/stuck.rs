//! A daemon that hangs ends, and its machines live on.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::crash::init_of;
use crate::harness::{Daemon, text};

/// The exit code of a daemon that has lost its store or an arbiter.
const LOST: i32 = 70;

/// A lease, and what must outlive the daemon.
struct Held {
    member: String,
    machine: Pid,
}

impl Held {
    fn take(daemon: &Daemon) -> Self {
        let member = daemon.lease("my-build");
        daemon.ok(&["shell", &member, "--", "echo mine > note"]);
        Self { machine: init_of(daemon, &member), member }
    }

    /// Its machine runs while no daemon does.
    fn runs_on(&self) {
        rustix::process::test_kill_process(self.machine).expect("the machine runs on without a daemon");
    }

    /// And the next daemon has the lease as it was.
    fn outlives(&self, daemon: &mut Daemon) {
        self.runs_on();
        daemon.settle_with_images("");
        daemon.run();
        assert_eq!(daemon.value("workstationpoollease", "my-build", "{.status.phase}"), "Ready");
        assert_eq!(
            daemon.value("workstationpoollease", "my-build", "{.status.workstationName}"),
            self.member
        );
        let note = || daemon.rl(&["shell", &self.member, "--", "cat note"]);
        daemon.until("the member is adopted", || text(&note().stdout).trim() == "mine");
        assert_eq!(init_of(daemon, &self.member), self.machine, "the very same machine");
    }
}

/// An arbiter is blocked as they are in the field: by a log that nobody reads any more. Only member
/// actors have something to say at this level, so that nothing else is blocked beside it.
#[test]
fn a_stuck_arbiter_ends_the_daemon_and_its_machines_live_on() {
    let mut daemon = Daemon::with_pool();
    let held = Held::take(&daemon);
    daemon.ok(&["wait", "workstationpool", "agents-linux", "--timeout", "90s"]);
    assert_eq!(daemon.stop(), 0);
    daemon.settle_with_images("[log]\nlevel = \"error,ringleader::actor::member=debug\"\n");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    daemon.run_into(writer.try_clone().expect("a descriptor").into(), &[]);
    let idle = idle_member(&daemon, &held.member);
    daemon.until("it is adopted", || daemon.rl(&["shell", &idle, "--", "true"]).status.success());
    let machine = init_of(&daemon, &idle);
    fill(&writer);

    kill_process(machine, Signal::KILL).expect("killed");
    assert_eq!(daemon.ends_by_itself(), LOST);
    drop((reader, writer));
    held.outlives(&mut daemon);
    daemon.clear();
}

#[test]
fn a_disk_that_hangs_ends_the_daemon_and_its_machines_live_on() {
    let mut daemon = Daemon::prepare();
    daemon.settle_with_images("");
    let disk = Disk::mount(&daemon.path("disk"), daemon.data());
    daemon.run();
    daemon.warm();
    let held = Held::take(&daemon);

    disk.freeze();
    let mut writing =
        daemon.command(&["workstationpoollease", "release", "my-build"]).spawn().expect("rl runs");
    daemon.until("it says what does not answer", || daemon.has_logged("the store's disk does not answer"));
    disk.thaw();
    assert_eq!(daemon.ends_by_itself(), LOST);
    assert!(!writing.wait().expect("it ends").success(), "nothing that was not written was acknowledged");
    // Whether the release was written before the disk hung, nobody knows: only the machine is looked at.
    held.runs_on();
    daemon.run();
    daemon.clear();
    assert_eq!(daemon.stop(), 0);
}

/// A running member that nobody holds.
fn idle_member(daemon: &Daemon, held: &str) -> String {
    let state = "{.metadata.annotations.pools\\.ringleader\\.dev/state}";
    let mut members = daemon.names("workstation").into_iter();
    members
        .find(|member| member != held && daemon.value("workstation", member, state) == "IdleRunning")
        .expect("a warm member")
}

/// Leaves no room in a pipe for another byte.
fn fill(pipe: &impl std::os::fd::AsRawFd) {
    // A description of its own, so that only our end does not wait for room.
    let path = format!("/proc/self/fd/{}", pipe.as_raw_fd());
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a flag");
    let mut ours = File::options().write(true).custom_flags(flags).open(path).expect("the same pipe");
    for chunk in [&[b'.'; 4096][..], b"."] {
        loop {
            match ours.write(chunk) {
                Ok(_) => {}
                Err(full) if full.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the pipe cannot be filled: {error}"),
            }
        }
    }
}

/// A small ext4 file system of the test's own, which can be made to hang.
struct Disk {
    at: PathBuf,
}

impl Disk {
    fn mount(image: &Path, at: PathBuf) -> Self {
        File::create(image).and_then(|file| file.set_len(2 << 30)).expect("an image");
        std::fs::create_dir_all(&at).expect("a directory");
        run("mkfs.ext4", &["-q", "-F", &image.display().to_string()]);
        run("mount", &["-o", "loop", &image.display().to_string(), &at.display().to_string()]);
        Self { at }
    }

    fn freeze(&self) {
        run("fsfreeze", &["--freeze", &self.at.display().to_string()]);
    }

    fn thaw(&self) {
        run("fsfreeze", &["--unfreeze", &self.at.display().to_string()]);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let at = self.at.display().to_string();
        if std::thread::panicking() {
            let _ = Command::new("fsfreeze").args(["--unfreeze", &at]).output();
        }
        let _ = Command::new("umount").args(["--lazy", &at]).output();
    }
}

fn run(program: &str, words: &[&str]) {
    let output = Command::new(program).args(words).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error}"));
    assert!(output.status.success(), "{program} {words:?}: {}", text(&output.stderr));
}

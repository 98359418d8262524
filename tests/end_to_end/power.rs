//! Nothing is said before it is written: over the whole way of a request, from the order of the
//! daemon's system calls.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{DEADLINE, Daemon, rl};
use crate::trace::{Trace, traced};

const WRITES: usize = 20;

// rule F5
#[test]
fn the_answer_201_leaves_the_daemon_after_the_sync_that_covers_its_write() {
    let daemon = Daemon::prepare();
    let file = daemon.path("trace");
    let mut traced = Traced::start(&daemon);
    for write in 0..WRITES {
        let answer = post(&daemon, &marker(write));
        assert!(answer.starts_with("HTTP/1.1 201 ") && answer.contains(&marker(write)), "{answer}");
    }
    traced.stop();
    let trace = Trace::read(&file);
    let data = daemon.data();
    for path in [data.parent().expect("it has one"), &data, &data.join("sled")] {
        trace.path_synced_before_said(path, &marker(0)).unwrap_or_else(|lie| panic!("{lie}"));
    }
    for write in 0..WRITES {
        // The object's record, and the answer that shows the object.
        let told =
            trace.synced_before_said(&marker(write), "/sled/db>", &["fsync", "fdatasync"], &marker(write));
        told.unwrap_or_else(|lie| panic!("{lie}"));
    }
}

/// A daemon under strace, which never outlives the test.
struct Traced(Child);

impl Traced {
    fn start(daemon: &Daemon) -> Self {
        let log = fs::File::create(daemon.path("daemon.log")).expect("a log");
        let mut command = daemon.daemon_command(traced(&daemon.path("trace"), rl()));
        command.stderr(log);
        let traced = Self(command.spawn().expect("strace is there: scripts/setup installs it"));
        daemon.until("the traced daemon answers (strace may trace here?)", || {
            daemon.rl(&["status"]).status.success()
        });
        traced
    }

    /// strace does not pass signals on, so its child is told itself.
    fn child(&self) -> Option<Pid> {
        let id = self.0.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok().and_then(Pid::from_raw)
    }

    fn stop(&mut self) {
        kill_process(self.child().expect("it runs"), Signal::TERM).expect("told to stop");
        assert!(self.0.wait().expect("it ends").success(), "the daemon stops well");
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if let Some(child) = self.child() {
            let _ = kill_process(child, Signal::KILL);
        }
        let deadline = Instant::now() + DEADLINE;
        while Instant::now() < deadline && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// Creates a user over a connection of its own; the answer whole.
fn post(daemon: &Daemon, name: &str) -> String {
    let user = serde_json::json!({
        "apiVersion": "core.ringleader.dev/v1",
        "kind": "User",
        "metadata": {"name": name},
        "spec": {},
    })
    .to_string();
    let mut stream = UnixStream::connect(daemon.socket()).expect("the daemon listens");
    write!(
        stream,
        "POST /apis/core.ringleader.dev/v1/users HTTP/1.1\r\nhost: rl\r\nconnection: close\r\ncontent-type: \
         application/json\r\ncontent-length: {}\r\n\r\n{user}",
        user.len()
    )
    .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

fn marker(write: usize) -> String {
    format!("traced-{write}-user")
}

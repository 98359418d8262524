//! `rl launcher`: the single-threaded program that makes machines for the daemon.
//!
//! ```text
//!  daemon (threads)                 launcher (one thread)
//!  LauncherHandle ── BootOrder ──►  forks a worker per order     host root, own mount table
//!        ▲                            │ cgroups, clone, id maps, idmapped lower, overlay,
//!        │                            │ boot.json, "go"
//!        └──────── Booted ──────────  │        └──►  the machine: mounts, pivot, exec `rl init`
//!                                     ▼ ends
//! ```
//!
//! Why a program of its own: forking without exec, which is what making a machine is, is unsound
//! in a process with threads. Why a worker per order: a slow or crashing one holds up nobody, and
//! its mount table dies with it. Workers are not tied to the daemon's life: an order that was
//! taken is finished and recorded even if the daemon is killed meanwhile.
//!
//! The launcher ends when the daemon closes its socket. Machines stay.

mod boot;
mod channel;
mod handle;
mod inside;
mod root;
mod wire;

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, set_child_subreaper, setsid, wait};

pub use handle::{LaunchError, LauncherHandle};
pub use wire::{BootOrder, Booted, Failure, Group, Network, Privileges, Program};

use crate::sys::namespaces::{Cloned, Signals, fork};
use wire::{Answer, Request};

/// Starts `rl launcher`. `main` calls it before the runtime, where it is cheapest; the launcher
/// ends with the daemon.
///
/// # Errors
/// When the process cannot be started.
pub fn spawn() -> io::Result<LauncherHandle> {
    spawn_program(Path::new("/proc/self/exe"))
}

/// Starts `PROGRAM launcher`, for programs that are not `rl` themselves.
///
/// # Errors
/// When the process cannot be started.
pub fn spawn_program(program: &Path) -> io::Result<LauncherHandle> {
    LauncherHandle::start(program)
}

/// The program `rl launcher`; its socket is standard input. Returns the exit code.
#[must_use]
pub fn main() -> i32 {
    match serve() {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("rl launcher: {error}");
            1
        }
    }
}

fn serve() -> io::Result<()> {
    // A Ctrl-C at the daemon's terminal is the daemon's to answer.
    let _ = setsid();
    // Machines are children of workers that end; this makes their end seen, and waited for, here.
    set_child_subreaper(Some(getpid()))?;
    let signals = Signals::block(&[libc::SIGCHLD])?;
    let program = File::open("/proc/self/exe")?;
    let socket = rustix::stdio::stdin();
    let mut workers: HashMap<Pid, u64> = HashMap::new();
    loop {
        let mut ready = [PollFd::new(&socket, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        rustix::io::retry_on_intr(|| poll(&mut ready, None))?;
        let asked = !ready[0].revents().is_empty();
        while signals.take().is_some() {}
        reap(&mut workers);
        if !asked {
            continue;
        }
        let Some((request, descriptors)) = channel::receive::<Request>(socket)? else { return Ok(()) };
        match fork() {
            Ok(Cloned::Child) => {
                signals.unblock()?;
                work(&request, descriptors, &program);
                return Ok(());
            }
            Ok(Cloned::Parent { child, .. }) => {
                workers.insert(child, request.number);
            }
            Err(error) => answer(request.number, Err(failed("fork a worker", &error)))?,
        }
    }
}

/// What a worker does with its one order.
fn work(request: &Request, descriptors: Vec<OwnedFd>, program: &File) {
    let outcome = match <[OwnedFd; 3]>::try_from(descriptors) {
        Ok([control, ssh, lock]) => {
            boot::boot(&request.order, &boot::Descriptors { program, control, ssh, lock })
        }
        Err(_) => Err(failed("take the order", &io::Error::other("its descriptors are missing"))),
    };
    // The daemon may be gone. The machine is recorded, so whoever comes next finds it.
    drop(answer(request.number, outcome));
}

/// Waits for every child that has ended, and answers for workers that could not.
fn reap(workers: &mut HashMap<Pid, u64>) {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        let Some(number) = workers.remove(&pid) else { continue };
        if status.exit_status() == Some(0) {
            continue;
        }
        let cause = io::Error::other(format!("the worker ended with {}", describe(status)));
        drop(answer(number, Err(failed("make the machine", &cause))));
    }
}

fn describe(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".into(),
    }
}

fn failed(step: &str, error: &io::Error) -> Failure {
    Failure { step: step.into(), message: error.to_string(), errno: error.raw_os_error() }
}

fn answer(number: u64, outcome: Result<Booted, Failure>) -> io::Result<()> {
    channel::send(rustix::stdio::stdin().as_fd(), &Answer { number, outcome }, &[])
}

//! `rl init`: PID 1 inside a member.
//!
//! It reaps whatever ends, keeps the agent running, and ends the machine in an orderly way when
//! asked. It is single-threaded and never uses tokio, which would fight it for the children's
//! statuses. The two listeners stay open here, so that a restarted agent serves the same sockets
//! and a client that connects meanwhile waits instead of being refused.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, wait};

use crate::sys::namespaces::{Signals, adopt};

/// What the launcher tells init.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arguments {
    control_fd: i32,
    ssh_fd: i32,
    /// How long processes have to end when the machine stops.
    grace: Duration,
}

/// The program `rl init`, with the arguments after the word `init`. Returns the exit code.
#[must_use]
pub fn main(arguments: &[String]) -> i32 {
    let Some(arguments) = Arguments::parse(arguments) else {
        eprintln!("rl init is what runs first inside a member; the daemon starts it");
        return 64;
    };
    match Init::start(arguments).and_then(Init::run) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("rl init: {error}");
            1
        }
    }
}

impl Arguments {
    fn parse(arguments: &[String]) -> Option<Self> {
        let option = |name: &str| {
            arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
        };
        let grace = Duration::from_millis(u64::try_from(option("--grace-ms")?).ok()?);
        Some(Self { control_fd: option("--control-fd")?, ssh_fd: option("--ssh-fd")?, grace })
    }
}

/// Everything init knows.
struct Init {
    arguments: Arguments,
    signals: Signals,
    agent: Agent,
    /// Kept open for the agents to come.
    _listeners: [OwnedFd; 2],
}

/// The agent, or when to start it.
#[derive(Clone, Copy, Debug)]
enum Agent {
    Running { pid: Pid, started: Instant, pause: Duration },
    Due { at: Instant, pause: Duration },
}

/// An agent that dies is started again at once, then after a pause that doubles; one that lived
/// this long starts afresh.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const SETTLED_AFTER: Duration = Duration::from_secs(30);

const STOPPING: [libc::c_int; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGPWR];
const FORWARDED: [libc::c_int; 3] = [libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2];

impl Init {
    fn start(arguments: Arguments) -> io::Result<Self> {
        let signals: Vec<_> = [libc::SIGCHLD].into_iter().chain(STOPPING).chain(FORWARDED).collect();
        let signals = Signals::block(&signals)?;
        let listeners = [adopt(arguments.control_fd), adopt(arguments.ssh_fd)];
        for listener in &listeners {
            // The agent inherits them by number.
            fcntl_setfd(listener, FdFlags::empty())?;
        }
        let agent = Agent::Due { at: Instant::now(), pause: SHORTEST_PAUSE };
        Ok(Self { arguments, signals, agent, _listeners: listeners })
    }

    fn run(mut self) -> io::Result<()> {
        loop {
            let limit = self.drive_agent();
            match self.signals.wait(limit)? {
                Some(signal) if STOPPING.contains(&signal) => return self.stop(),
                Some(signal) if FORWARDED.contains(&signal) => self.forward(signal),
                // SIGCHLD, a deadline, or nothing: signals merge, so children are always looked at.
                Some(_) | None => {}
            }
            self.reap();
        }
    }

    /// Starts the agent when it is due; says how long there is to wait otherwise.
    fn drive_agent(&mut self) -> Option<Duration> {
        let Agent::Due { at, pause } = self.agent else { return None };
        let left = at.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            return Some(left);
        }
        match self.spawn_agent() {
            Ok(pid) => {
                self.agent = Agent::Running { pid, started: Instant::now(), pause };
                None
            }
            Err(error) => {
                eprintln!("rl init: cannot start the agent: {error}");
                self.agent = Agent::due_after(pause);
                Some(pause)
            }
        }
    }

    fn spawn_agent(&self) -> io::Result<Pid> {
        let mut command = Command::new("/proc/self/exe");
        self.signals.release_in(&mut command);
        let child = command
            .arg0("rl")
            .arg("agent")
            .arg("--control-fd")
            .arg(self.arguments.control_fd.to_string())
            .arg("--ssh-fd")
            .arg(self.arguments.ssh_fd.to_string())
            .current_dir("/")
            .spawn()?;
        // Dropping the child does not wait for it: `reap` does.
        i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("no process id"))
    }

    fn forward(&self, signal: libc::c_int) {
        if let (Agent::Running { pid, .. }, Some(signal)) = (self.agent, Signal::from_named_raw(signal)) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits for every child that has ended. Says whether there are any left.
    fn reap(&mut self) -> Children {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if let Agent::Running { pid: agent, started, pause } = self.agent
                        && agent == pid
                    {
                        eprintln!("rl init: the agent ended: {status:?}");
                        self.agent = Agent::after_end(started, pause);
                    }
                }
                Ok(None) => return Children::Some,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Children::None,
            }
        }
    }

    /// Asks everything inside to end, waits, and ends. What is left dies with this process, as
    /// everything does in a pid namespace whose first process is gone.
    fn stop(mut self) -> io::Result<()> {
        let deadline = Instant::now() + self.arguments.grace;
        // Interactive shells ignore SIGTERM and end with their terminal; stopped processes hear
        // neither before they continue.
        for signal in [Signal::TERM, Signal::HUP, Signal::CONT] {
            // The group of process 1, negated, is every process there is but this one.
            let _ = kill_process_group(Pid::INIT, signal);
        }
        while self.reap() == Children::Some {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.signals.wait(Some(left))?;
        }
        Ok(())
    }
}

/// Whether this process has children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Children {
    Some,
    None,
}

impl Agent {
    fn after_end(started: Instant, pause: Duration) -> Self {
        if started.elapsed() >= SETTLED_AFTER {
            return Self::Due { at: Instant::now(), pause: SHORTEST_PAUSE };
        }
        Self::due_after(pause)
    }

    fn due_after(pause: Duration) -> Self {
        Self::Due { at: Instant::now() + pause, pause: (pause * 2).min(LONGEST_PAUSE) }
    }
}

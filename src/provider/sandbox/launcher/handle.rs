//! The daemon's side of the launcher.
//!
//! When the launcher dies, the calls it had not answered fail, and the next call starts another
//! one: machines do not depend on it, and the callers bring everything to its state by asking
//! again. A launcher that dies at once again is not started more than once a second.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::channel;
use super::wire::{Answer, BootOrder, Booted, Failure, Request};

/// The daemon's hold on its launcher. Cheap to clone; every clone speaks to the same process.
#[derive(Clone)]
pub struct LauncherHandle {
    shared: Arc<Shared>,
}

/// Why a machine was not launched.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The launcher did its work, and the machine did not come up.
    #[error(transparent)]
    Machine(#[from] Failure),
    /// The launcher ended before it answered. What it did meanwhile is found by inspection.
    #[error("the launcher ended before it answered")]
    Gone,
    /// No answer in time. What it did meanwhile is found by inspection.
    #[error("the launcher did not answer within {} s", .0.as_secs())]
    Late(Duration),
    /// It cannot be started or spoken to.
    #[error("the launcher cannot be reached: {0}")]
    Unreachable(#[from] io::Error),
}

struct Shared {
    program: PathBuf,
    process: Mutex<Process>,
}

/// One launcher process.
struct Process {
    socket: Arc<OwnedFd>,
    started: Instant,
    alive: Arc<AtomicBool>,
    waiting: Arc<Waiting>,
    next_number: u64,
}

/// Who waits for which answer.
type Waiting = Mutex<HashMap<u64, SyncSender<Result<Booted, Failure>>>>;

/// A launcher that died sooner than this after its start is not replaced before this has passed.
const RESPAWN_PAUSE: Duration = Duration::from_secs(1);

impl LauncherHandle {
    /// Starts `PROGRAM launcher`.
    pub(super) fn start(program: &Path) -> io::Result<Self> {
        let process = Process::start(program)?;
        Ok(Self { shared: Arc::new(Shared { program: program.into(), process: Mutex::new(process) }) })
    }

    /// Boots a machine; blocks until it runs `rl init` or has failed, at most for `limit`.
    ///
    /// # Errors
    /// When the machine does not come up, or the launcher does not answer.
    pub fn boot(
        &self,
        order: BootOrder,
        descriptors: &[BorrowedFd<'_>],
        limit: Duration,
    ) -> Result<Booted, LaunchError> {
        let answer = self.living_process()?.ask(order, descriptors)?;
        match answer.recv_timeout(limit) {
            Ok(outcome) => Ok(outcome?),
            Err(RecvTimeoutError::Disconnected) => Err(LaunchError::Gone),
            Err(RecvTimeoutError::Timeout) => Err(LaunchError::Late(limit)),
        }
    }

    fn living_process(&self) -> io::Result<MutexGuard<'_, Process>> {
        let mut process = self.shared.process.lock().unwrap_or_else(PoisonError::into_inner);
        if !process.alive.load(Ordering::Acquire) {
            if process.started.elapsed() < RESPAWN_PAUSE {
                return Err(io::Error::other("it has just died; try again in a second"));
            }
            *process = Process::start(&self.shared.program)?;
            tracing::warn!("started another launcher in place of the one that died");
        }
        Ok(process)
    }
}

impl fmt::Debug for LauncherHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LauncherHandle").field("program", &self.shared.program).finish_non_exhaustive()
    }
}

impl Process {
    fn start(program: &Path) -> io::Result<Self> {
        let (ours, theirs) = channel::pair()?;
        // Standard input, so that no descriptor needs to stay open across exec by number, which a
        // child started at the same moment by another thread would inherit too.
        let child =
            Command::new(program).arg("launcher").stdin(Stdio::from(theirs)).stdout(Stdio::null()).spawn()?;
        let process = Self {
            socket: Arc::new(ours),
            started: Instant::now(),
            alive: Arc::new(AtomicBool::new(true)),
            waiting: Arc::new(Mutex::new(HashMap::new())),
            next_number: 0,
        };
        let reader = Reader {
            socket: Arc::clone(&process.socket),
            alive: Arc::clone(&process.alive),
            waiting: Arc::clone(&process.waiting),
        };
        thread::Builder::new().name("launcher".into()).spawn(move || reader.run(child))?;
        Ok(process)
    }

    fn ask(
        &mut self,
        order: BootOrder,
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<Receiver<Result<Booted, Failure>>> {
        let number = self.next_number;
        self.next_number += 1;
        let (sender, receiver) = sync_channel(1);
        lock(&self.waiting).insert(number, sender);
        let sent = channel::send(&*self.socket, &Request { number, order }, descriptors);
        if let Err(error) = sent {
            lock(&self.waiting).remove(&number);
            return Err(error);
        }
        Ok(receiver)
    }
}

/// The thread that hands answers to their callers.
struct Reader {
    socket: Arc<OwnedFd>,
    alive: Arc<AtomicBool>,
    waiting: Arc<Waiting>,
}

impl Reader {
    fn run(self, mut child: Child) {
        self.hand_out_until_death(&child);
        self.alive.store(false, Ordering::Release);
        // What the launcher had forked may still be at work and answer; the last of them closes
        // the socket.
        while let Ok(Some((answer, _))) = channel::receive::<Answer>(&*self.socket) {
            self.hand_out(answer);
        }
        lock(&self.waiting).clear();
        match child.wait() {
            Ok(status) => tracing::error!(%status, "the launcher ended"),
            Err(error) => tracing::error!(%error, "the launcher ended"),
        }
    }

    /// Hands out answers as long as the launcher itself lives.
    fn hand_out_until_death(&self, child: &Child) {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let Some(pidfd) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return };
        loop {
            let mut ready = [PollFd::new(&*self.socket, PollFlags::IN), PollFd::new(&pidfd, PollFlags::IN)];
            if rustix::io::retry_on_intr(|| poll(&mut ready, None)).is_err() {
                return;
            }
            if ready[0].revents().is_empty() {
                return;
            }
            match channel::receive::<Answer>(&*self.socket) {
                Ok(Some((answer, _))) => self.hand_out(answer),
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(%error, "the launcher's answer cannot be read");
                    return;
                }
            }
        }
    }

    fn hand_out(&self, answer: Answer) {
        let Some(caller) = lock(&self.waiting).remove(&answer.number) else {
            tracing::debug!(number = answer.number, "nobody waits for this answer any more");
            return;
        };
        // A caller that has given up is no error: inspection shows what was done.
        drop(caller.try_send(answer.outcome));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

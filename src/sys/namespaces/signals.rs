//! Signals read from a descriptor instead of interrupting the program.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::adopt;

/// A set of signals that this process blocked in order to read them.
#[derive(Debug)]
pub struct Signals {
    descriptor: OwnedFd,
    set: libc::sigset_t,
}

impl Signals {
    /// Blocks `signals` and opens them for reading. Children inherit the blocking over fork.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn block(signals: &[libc::c_int]) -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigemptyset initializes the set that the other calls read.
        let (set, number) = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in signals {
                libc::sigaddset(set.as_mut_ptr(), *signal);
            }
            let set = set.assume_init();
            if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) < 0 {
                return Err(io::Error::last_os_error());
            }
            (set, libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))
        };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { descriptor: adopt(number), set })
    }

    /// Undoes the blocking, as a forked child must before it becomes another program.
    ///
    /// # Errors
    /// Never in practice.
    pub fn unblock(&self) -> io::Result<()> {
        // SAFETY: the set was initialized by `block`.
        let result =
            unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const self.set, std::ptr::null_mut()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Undoes the blocking in the program that `command` starts, which otherwise inherits it.
    pub fn release_in(&self, command: &mut Command) {
        let set = self.set;
        let unblock = move || {
            // SAFETY: the set was initialized by `block`.
            let result =
                unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        };
        // SAFETY: the closure makes one async-signal-safe call and allocates nothing on success.
        unsafe { command.pre_exec(unblock) };
    }

    /// The next signal that came, if one did.
    pub fn take(&self) -> Option<libc::c_int> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes, and a full read initializes all of it.
        let info = unsafe {
            let count = libc::read(self.descriptor.as_raw_fd(), info.as_mut_ptr().cast(), size);
            if usize::try_from(count) != Ok(size) {
                return None;
            }
            info.assume_init()
        };
        libc::c_int::try_from(info.ssi_signo).ok()
    }

    /// Waits for the next signal, at most for `limit` where there is one.
    ///
    /// # Errors
    /// When polling fails, which it does not on an open descriptor.
    pub fn wait(&self, limit: Option<Duration>) -> io::Result<Option<libc::c_int>> {
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        match poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], limit.as_ref()) {
            Ok(_) => Ok(self.take()),
            Err(rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Blocks no signal any more. A program that was started by one that reads its signals from a
/// descriptor inherits their blocking, and would pass it on to everything it starts.
///
/// # Errors
/// Never in practice.
pub fn block_no_signals() -> io::Result<()> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initializes the set that sigprocmask reads.
    let result = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, set.as_ptr(), std::ptr::null_mut())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

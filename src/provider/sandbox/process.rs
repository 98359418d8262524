//! A process that can be found again: never by bare pid, which the kernel gives out anew.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

/// One process of one boot of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// When it started, in clock ticks since the host booted.
    pub start_ticks: u64,
    /// The host's boot, from `/proc/sys/kernel/random/boot_id`.
    pub host_boot: String,
}

impl ProcessIdentity {
    /// The identity of a process that is known to exist, such as one's own child.
    ///
    /// # Errors
    /// When `/proc` does not show it.
    pub fn of(pid: Pid) -> io::Result<Self> {
        let pid = pid.as_raw_pid();
        Ok(Self { pid, start_ticks: start_ticks(pid)?, host_boot: host_boot()? })
    }

    /// A descriptor of the process, if it still runs. What it refers to cannot change any more.
    ///
    /// # Errors
    /// When `/proc` cannot be read or there is no descriptor left.
    pub fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid).filter(|_| self.pid > 0) else { return Ok(None) };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(rustix::io::Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Verified after it was opened: had the pid been given out anew before, this would show it.
        let same = match start_ticks(self.pid) {
            Ok(ticks) => ticks == self.start_ticks && host_boot()? == self.host_boot,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => false,
            Err(error) => return Err(error),
        };
        Ok((same && !has_ended(&pidfd)?).then_some(pidfd))
    }
}

/// Whether the process of `pidfd` has ended, be it waited for or not.
///
/// # Errors
/// When polling fails, which it does not on an open descriptor.
pub fn has_ended(pidfd: &OwnedFd) -> io::Result<bool> {
    wait_for_end(pidfd, &Timespec::default())
}

/// Waits at most `limit` for the process of `pidfd` to end; says whether it did.
///
/// # Errors
/// When polling fails, which it does not on an open descriptor.
pub fn wait_for_end(pidfd: &OwnedFd, limit: &Timespec) -> io::Result<bool> {
    let mut poll_fds = [PollFd::new(pidfd, PollFlags::IN)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut poll_fds, Some(limit)))?;
    Ok(ready > 0)
}

fn start_ticks(pid: i32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_start_ticks(&stat).ok_or_else(|| io::Error::other("/proc/PID/stat has an unknown form"))
}

/// The 22nd field. The second, the program's name, may hold spaces and parentheses itself.
fn parse_start_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn host_boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_process_is_found_by_its_identity() {
        let identity = ProcessIdentity::of(rustix::process::getpid()).expect("this process is in /proc");
        assert!(identity.open().expect("readable").is_some());
    }

    #[test]
    fn the_same_pid_with_another_start_is_another_process() {
        let mut identity = ProcessIdentity::of(rustix::process::getpid()).expect("this process is in /proc");
        identity.start_ticks += 1;
        assert!(identity.open().expect("readable").is_none());
    }

    #[test]
    fn the_same_pid_of_an_earlier_boot_of_the_host_is_another_process() {
        let mut identity = ProcessIdentity::of(rustix::process::getpid()).expect("this process is in /proc");
        identity.host_boot = "an earlier one".into();
        assert!(identity.open().expect("readable").is_none());
    }

    #[test]
    fn a_program_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        assert_eq!(parse_start_ticks(stat), Some(4242));
    }
}

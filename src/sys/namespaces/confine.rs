//! Single steps by which a process leaves what it shared with its parent.

use std::io;
use std::os::fd::AsRawFd;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Gives this process its own mount table, from which nothing leaks back.
///
/// # Errors
/// Without the right to mount.
pub fn enter_mount_namespace() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// Makes the cgroups this process is in the roots of what it can see.
///
/// # Errors
/// Without the right to do so in this user namespace.
pub fn enter_cgroup_namespace() -> io::Result<()> {
    unshare(UnshareFlags::NEWCGROUP)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only a shared descriptor table would make this unsafe, and the callers are
    // single-threaded (module doc).
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// Leaves the session keyring behind: whoever inherits it possesses the caller's keys. A kernel
/// without keyrings has nothing to leave.
///
/// # Errors
/// When the user has no quota for another keyring.
pub fn join_new_session_keyring() -> io::Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: a null name asks for an anonymous keyring; no memory is passed.
    let result = unsafe {
        libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>())
    };
    if result >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        error => Err(error),
    }
}

/// Brings up the loopback interface of this network namespace; the kernel gives it its addresses.
///
/// # Errors
/// Without the right to change this network namespace.
pub fn raise_loopback() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(c"lo".to_bytes()) {
        *to = from.cast_signed();
    }
    let flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(io::Error::other)?;
    let request =
        libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags } };
    // SAFETY: SIOCSIFFLAGS reads one ifreq, whose name is null-terminated and whose flags are set.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

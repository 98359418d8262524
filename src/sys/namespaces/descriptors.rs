//! File descriptors by number: what is inherited, and what an exec passes on.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use tokio::io::unix::AsyncFd;

/// Takes ownership of a descriptor that this process was given by number: by the kernel as a
/// call's result, or by whoever executed it.
///
/// The caller must be the only one who adopts that number.
pub fn adopt(number: RawFd) -> OwnedFd {
    // SAFETY: by contract the number is open and nobody else owns it.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Watches a descriptor from within a tokio runtime.
///
/// # Errors
/// When the runtime cannot poll it.
pub fn watch(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped.
    unsafe { AsyncFd::register(descriptor) }.map_err(|error| error.into_parts().1)
}

/// Duplicates `descriptor` to `number`, which the next exec passes on; whatever was open under
/// that number is closed. The number must not belong to an `OwnedFd` of this process.
///
/// # Errors
/// When the number is out of range.
pub fn place_at(descriptor: impl AsFd, number: RawFd) -> io::Result<()> {
    let descriptor = descriptor.as_fd().as_raw_fd();
    if descriptor == number {
        // dup2 onto itself would leave the close-on-exec flag as it is.
        // SAFETY: F_SETFD touches only the flags of an open descriptor.
        return succeeded(unsafe { libc::fcntl(number, libc::F_SETFD, 0) });
    }
    // SAFETY: dup2 touches only the descriptor table; by contract nobody owns `number`.
    succeeded(unsafe { libc::dup2(descriptor, number) })
}

/// Closes every descriptor from `first` on at the next exec.
///
/// # Errors
/// When the kernel is older than 5.11.
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC.cast_signed();
    // SAFETY: sets flags of descriptors, closes none now.
    succeeded(unsafe { libc::close_range(first, u32::MAX, flags) })
}

fn succeeded(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

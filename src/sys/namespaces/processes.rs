//! Fork, clone into namespaces, and exec by descriptor.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use rustix::process::Pid;

use super::adopt;

/// Which network namespace a clone gets. All its other namespaces are always its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespaces {
    /// Its own network, with nothing in it yet.
    OwnNetwork,
    /// The network of the caller.
    SharedNetwork,
}

/// Which side of a fork or clone this is.
#[derive(Debug)]
pub enum Cloned {
    Child,
    /// `pidfd` is none after a plain fork.
    Parent {
        child: Pid,
        pidfd: Option<File>,
    },
}

/// `fork(2)`.
///
/// # Errors
/// When the kernel has no room for another process.
pub fn fork() -> io::Result<Cloned> {
    // SAFETY: the callers are single-threaded (module doc), so the child owns every lock it sees.
    let result = unsafe { libc::fork() };
    side_of(libc::c_long::from(result), None)
}

/// Forks into new user, pid, mount, uts and ipc namespaces, and a network one where asked.
/// The child owns them all and has no identity in them until the parent writes its maps.
///
/// # Errors
/// When the kernel refuses namespaces or has no room.
pub fn clone_into(namespaces: Namespaces) -> io::Result<Cloned> {
    let network = match namespaces {
        Namespaces::OwnNetwork => libc::CLONE_NEWNET,
        Namespaces::SharedNetwork => 0,
    };
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_PIDFD
        | libc::SIGCHLD
        | network;
    let mut pidfd: libc::c_int = -1;
    // The old call rather than clone3: container runtimes' filters often hide the new one. The
    // first three arguments are the same on every architecture this is built for.
    //
    // SAFETY: a null stack means fork semantics; the callers are single-threaded (module doc), so
    // the child owns every lock it sees; `pidfd` outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::c_long::from(flags),
            ptr::null_mut::<libc::c_void>(),
            &raw mut pidfd,
            ptr::null_mut::<libc::c_int>(),
            ptr::null_mut::<libc::c_void>(),
        )
    };
    side_of(result, Some(pidfd))
}

fn side_of(result: libc::c_long, pidfd: Option<libc::c_int>) -> io::Result<Cloned> {
    match result {
        0 => Ok(Cloned::Child),
        child => {
            let child = i32::try_from(child).ok().filter(|number| *number > 0).and_then(Pid::from_raw);
            let child = child.ok_or_else(io::Error::last_os_error)?;
            Ok(Cloned::Parent { child, pidfd: pidfd.map(|number| File::from(adopt(number))) })
        }
    }
}

/// Ends this process at once. What was registered to run at exit is the parent's, not a clone's.
pub fn end(code: i32) -> ! {
    // SAFETY: never returns, and touches no memory.
    unsafe { libc::_exit(code) }
}

/// Replaces this process by the program that `program` is open on, wherever its file may be.
/// Returns only on failure.
pub fn execute(program: impl AsFd, arguments: &[CString], environment: &[CString]) -> io::Error {
    let arguments = null_terminated(arguments);
    let environment = null_terminated(environment);
    let here: &CStr = c"";
    // SAFETY: both arrays end in a null pointer and point into strings that outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_fd().as_raw_fd(),
            here.as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
    }
    io::Error::last_os_error()
}

fn null_terminated(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

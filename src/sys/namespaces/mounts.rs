//! `mount_setattr(2)`, which rustix does not offer yet.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::CWD;
use rustix::mount::{OpenTreeFlags, open_tree};

/// What may be done through one mount, whatever its file system allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// A detached clone of the mount at `path`, without what is mounted below it.
///
/// # Errors
/// When the path is not there, or the kernel is older than 5.2.
pub fn clone_mount(path: &Path) -> io::Result<OwnedFd> {
    Ok(open_tree(CWD, path, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?)
}

/// Shows the files of a detached `mount` with the ids that `user_namespace` maps theirs to.
///
/// # Errors
/// When the kernel is older than 5.12 or the file system cannot be idmapped.
pub fn map_ids(mount: impl AsFd, user_namespace: impl AsFd) -> io::Result<()> {
    let descriptor = user_namespace.as_fd().as_raw_fd();
    let userns_fd = u64::try_from(descriptor).map_err(io::Error::other)?;
    set(mount, &libc::mount_attr { attr_set: libc::MOUNT_ATTR_IDMAP, userns_fd, attr_clr: 0, propagation: 0 })
}

/// Narrows what may be done through a detached `mount`; device files and setuid never work there.
///
/// # Errors
/// When the kernel is older than 5.12.
pub fn set_access(mount: impl AsFd, access: Access) -> io::Result<()> {
    let read_only = match access {
        Access::ReadOnly => libc::MOUNT_ATTR_RDONLY,
        Access::ReadWrite => 0,
    };
    let attr_set = read_only | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
    set(mount, &libc::mount_attr { attr_set, attr_clr: 0, propagation: 0, userns_fd: 0 })
}

fn set(mount: impl AsFd, attributes: &libc::mount_attr) -> io::Result<()> {
    // SAFETY: the path is a C string, and `attributes` is read for its own size only.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const *attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

//! The root file system of a machine: overlayfs over an idmapped clone of an image generation.
//!
//! The clone is attached over the generation itself, but only in this worker's own mount table:
//! older kernels refuse a detached mount as a layer. The overlay keeps its own hold on it. All
//! layers are named by descriptor, so that a path with a comma or a colon needs no escaping, and
//! the machine's `/proc/mounts` tells nothing of the host's directories.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, open};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen, move_mount,
};

use super::wire::{At, Failure};
use crate::sys::namespaces::{clone_mount, map_ids};

/// Makes the overlay of one machine. The mount it returns is attached nowhere.
///
/// # Errors
/// The step that failed.
pub fn overlay(lower: &Path, machine_dir: &Path, user_namespace: &File) -> Result<OwnedFd, Failure> {
    let clone = clone_mount(lower).at("open the image generation")?;
    map_ids(&clone, user_namespace).at("map the ids of the image generation")?;
    move_mount(&clone, "", CWD, lower, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .at("attach the image generation")?;

    let lower = directory(lower).at("open the image generation")?;
    let upper = directory(&machine_dir.join("upper")).at("open the machine's disk")?;
    let work = directory(&machine_dir.join("work")).at("open the machine's disk")?;
    let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC).at("open overlayfs")?;
    let settings = [
        ("source", "ringleader".to_owned()),
        ("lowerdir", by_descriptor(&lower)),
        ("upperdir", by_descriptor(&upper)),
        ("workdir", by_descriptor(&work)),
        // Directories that came with the image can be renamed.
        ("redirect_dir", "on".to_owned()),
        // The disk may be copied or restored elsewhere, where inode numbers differ.
        ("index", "off".to_owned()),
        ("metacopy", "off".to_owned()),
    ];
    for (key, value) in settings {
        fsconfig_set_string(overlay.as_fd(), key, value).at("set up overlayfs")?;
    }
    fsconfig_create(overlay.as_fd()).at("make the overlay")?;
    fsmount(overlay.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NODEV)
        .at("mount the overlay")
}

fn directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn by_descriptor(descriptor: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd())
}

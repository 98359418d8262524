//! Step `home`: a new home starts as a copy of /etc/skel.
//!
//! It is filled beside its place and moved there whole, so a home that exists is one that was
//! finished. Root makes the directory in its parent (root's); everything inside is written with
//! the user's rights.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Failure, as_user};
use crate::agent::accounts::Account;
use crate::agent::place::Place;

/// Bounds on /etc/skel.
const DEPTH_MAX: usize = 8;
const ENTRIES_MAX: usize = 4096;

pub(super) fn settle(place: &Place, account: &Account) -> Result<(), Failure> {
    let home = place.path(&account.home);
    if home.exists() {
        return Ok(());
    }
    make(place, account, &home).map_err(|error| Failure {
        reason: "HomeFailed",
        message: format!("home: {}: {error}", account.home.display()),
    })
}

fn make(place: &Place, account: &Account, home: &Path) -> io::Result<()> {
    let parent = account.home.parent().ok_or(io::ErrorKind::InvalidInput)?;
    place.make_directory(parent, 0o755)?;
    let unfinished = place.path(parent).join(format!(".{}.ringleader", account.name));
    if let Err(error) = fs::create_dir(&unfinished)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    std::os::unix::fs::lchown(&unfinished, Some(account.user.uid), Some(account.user.gid))?;
    let (skel, target) = (place.path("etc/skel"), unfinished.clone());
    as_user(account, move || {
        fs::set_permissions(&target, Permissions::from_mode(0o700))?;
        let mut entries_left = ENTRIES_MAX;
        copy(&skel, &target, DEPTH_MAX, &mut entries_left)
    })?;
    fs::rename(unfinished, home)
}

/// Copies what is in a directory. What is there already stays: an earlier try wrote it.
fn copy(from: &Path, to: &Path, depth_left: usize, entries_left: &mut usize) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        *entries_left = entries_left.checked_sub(1).ok_or(io::ErrorKind::FileTooLarge)?;
        let target = to.join(entry.file_name());
        let made = copy_entry(&entry, target, depth_left, entries_left);
        if made.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists) {
            return made;
        }
    }
    Ok(())
}

fn copy_entry(
    entry: &fs::DirEntry,
    target: PathBuf,
    depth_left: usize,
    entries_left: &mut usize,
) -> io::Result<()> {
    let metadata = entry.metadata()?;
    if metadata.is_dir() {
        let depth_left = depth_left.checked_sub(1).ok_or(io::ErrorKind::FileTooLarge)?;
        if !target.is_dir() {
            fs::create_dir(&target)?;
        }
        return copy(&entry.path(), &target, depth_left, entries_left);
    }
    if metadata.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(entry.path())?, target);
    }
    if metadata.is_file() {
        let mode = metadata.permissions().mode() & 0o777;
        let mut copy = File::options().write(true).create_new(true).mode(mode).open(target)?;
        io::copy(&mut File::open(entry.path())?, &mut copy)?;
    }
    // Anything else (a socket, a device) is no part of a home.
    Ok(())
}

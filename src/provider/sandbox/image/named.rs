//! Images that the settings name: a directory or a tar archive of a root file system.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;

use super::tree::{IDS, Tree};
use super::{ImageError, not_taken};

/// Compressed archives begin with these bytes.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const XZ: [u8; 6] = [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00];

/// An os-release file is a screenful.
const RELEASE_BYTES_MAX: u64 = 64 * 1024;

/// Builds the tree at `root` from `source`. What is built is below `images`, which may not be part
/// of the source.
pub fn take(name: &str, source: &Path, images: &Path, root: &Path) -> Result<(), ImageError> {
    let taken = if source.is_dir() { directory(source, images, root) } else { archive(source, root) };
    taken.and_then(|()| is_a_system(root)).map_err(|error| {
        let said = io::Error::new(error.kind(), format!("{}: {error}", source.display()));
        not_taken(name, root, said)
    })
}

/// What changes files under the source's /usr in place, changes them in here: package managers do
/// not.
fn directory(source: &Path, images: &Path, root: &Path) -> io::Result<()> {
    if images.canonicalize()?.starts_with(source.canonicalize()?) {
        return Err(io::Error::other(format!(
            "the images themselves are kept in it, in {}: name a directory that holds nothing but the \
             root file system",
            images.display()
        )));
    }
    let mut tree = Tree::of_everything(root)?;
    tree.take_all(source, Path::new("/"))?;
    tracing::info!(files = tree.files, left_out = tree.left_out, "the image's files are in place");
    Ok(())
}

fn archive(source: &Path, root: &Path) -> io::Result<()> {
    let mut start = [0_u8; 6];
    let read = File::open(source)?.read(&mut start)?;
    let start = &start[..read];
    if start.starts_with(&GZIP) || start.starts_with(&ZSTD) || start.starts_with(&XZ) {
        return Err(io::Error::other(
            "it is compressed: unpack it to a plain .tar first (gunzip, unzstd, unxz)",
        ));
    }
    fs::create_dir_all(root)?;
    let mut archive = tar::Archive::new(BufReader::new(File::open(source)?));
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(true);
    archive.set_overwrite(true);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let (uid, gid) = (entry.header().uid()?, entry.header().gid()?);
        if uid >= u64::from(IDS) || gid >= u64::from(IDS) {
            return Err(io::Error::other(format!(
                "{} belongs to {uid}:{gid}, and only owners below {IDS} exist in a machine: pack it anew \
                 as root (tar --numeric-owner)",
                entry.path()?.display()
            )));
        }
        let kind = entry.header().entry_type();
        if kind.is_file() || kind.is_dir() || kind.is_symlink() || kind.is_hard_link() || kind.is_contiguous()
        {
            // Refuses to leave `root`, whatever the names in the archive say.
            entry.unpack_in(root)?;
        }
    }
    // The root of a machine is ours to say: one of mode 0700 would shut its login user out.
    chown(root, Some(0), Some(0))?;
    fs::set_permissions(root, fs::Permissions::from_mode(0o755))
}

/// The text of the archive's os-release, if it has one.
pub fn release_in_archive(source: &Path) -> Option<String> {
    let mut archive = tar::Archive::new(File::open(source).ok()?);
    for entry in archive.entries_with_seek().ok()? {
        let entry = entry.ok()?;
        let path = entry.path().ok()?;
        let path = path.strip_prefix(".").unwrap_or(&path);
        let is_it = path == Path::new("usr/lib/os-release") || path == Path::new("etc/os-release");
        if is_it && entry.header().entry_type().is_file() {
            return io::read_to_string(entry.take(RELEASE_BYTES_MAX)).ok();
        }
    }
    None
}

/// Tells an archive of something else, or a directory too high or too low, from a system.
fn is_a_system(root: &Path) -> io::Result<()> {
    if ["usr", "bin"].iter().any(|name| root.join(name).symlink_metadata().is_ok()) {
        return Ok(());
    }
    Err(io::Error::other("it is no root file system: there is neither usr nor bin at its top"))
}

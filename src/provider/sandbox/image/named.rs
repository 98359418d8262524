//! Images that the settings name: a directory or a tar archive of a root file system.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use super::ImageError;
use super::tree::Tree;

/// Compressed archives begin with these bytes.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const XZ: [u8; 6] = [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00];

/// Builds the tree at `root` from `source`.
pub fn take(name: &str, source: &Path, root: &Path) -> Result<(), ImageError> {
    let unusable = |why: String| ImageError::Unusable { name: name.to_owned(), why };
    if source.is_dir() {
        return directory(source, root).map_err(|error| unusable(format!("{}: {error}", source.display())));
    }
    archive(source, root).map_err(|error| unusable(format!("{}: {error}", source.display())))
}

/// By hard link where possible: what changes the files in place, changes them in here, so the
/// directory should be left alone or replaced as a whole.
fn directory(source: &Path, root: &Path) -> io::Result<()> {
    let mut tree = Tree::of_everything(root)?;
    tree.take_all(source, Path::new("/"))?;
    tracing::info!(files = tree.files, "the image's files are in place");
    Ok(())
}

fn archive(source: &Path, root: &Path) -> io::Result<()> {
    let mut start = [0_u8; 6];
    let read = File::open(source)?.read(&mut start)?;
    let start = &start[..read];
    if start.starts_with(&GZIP) || start.starts_with(&ZSTD) || start.starts_with(&XZ) {
        return Err(io::Error::other("it is compressed: unpack it to a plain .tar first (gunzip, unzstd, unxz)"));
    }
    std::fs::create_dir_all(root)?;
    let mut archive = tar::Archive::new(BufReader::new(File::open(source)?));
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(true);
    archive.set_overwrite(true);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        if kind.is_file() || kind.is_dir() || kind.is_symlink() || kind.is_hard_link() || kind.is_contiguous() {
            // Refuses to leave `root`, whatever the names in the archive say.
            entry.unpack_in(root)?;
        }
    }
    Ok(())
}

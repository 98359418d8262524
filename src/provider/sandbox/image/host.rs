//! The image `host`: this host's packages, without this host.
//!
//! What packages own under /usr comes in by hard link, so a generation costs directory entries and
//! no space. dpkg replaces files by rename, so a link keeps the file of its day. Everything that
//! makes the host this host (users, keys, machine id, what an administrator wrote) stays out:
//! `/etc` is one of its own.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::etc;
use super::tree::Tree;
use super::{HOST, ImageError, not_taken};

const DPKG: &str = "var/lib/dpkg";

/// Directories that are links into /usr on a merged system, and roots of packages' files elsewhere.
const ROOTS: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Whether the host has packages to take.
pub fn can_be_taken(host: &Path) -> bool {
    host.join(DPKG).join("status").is_file() && host.join(DPKG).join("info").is_dir()
}

/// Builds the tree at `root`.
pub fn take(host: &Path, includes: &[PathBuf], root: &Path) -> Result<(), ImageError> {
    let build = || {
        let mut tree = Tree::new(root)?;
        top_level(host, &mut tree)?;
        packages(host, &mut tree)?;
        for include in includes {
            tree.take_all(include, include)?;
        }
        dpkg_database(host, &mut tree)?;
        etc::take(host, &mut tree)?;
        skeleton(&mut tree)?;
        tracing::info!(files = tree.files, left_out = tree.left_out, "the host image's files are in place");
        Ok(())
    };
    build().map_err(|error: io::Error| not_taken(HOST, root, error))
}

/// On a merged system /bin and its like are links, whose targets must be there before anything is
/// put through them.
fn top_level(host: &Path, tree: &mut Tree) -> io::Result<()> {
    for name in ROOTS {
        if let Ok(target) = fs::read_link(host.join(name)) {
            // Relative, so that it leads into the tree while that is being filled.
            let target = target.strip_prefix("/").unwrap_or(&target).to_owned();
            tree.take(&host.join(&target), &Path::new("/").join(&target))?;
            tree.link(&format!("/{name}"), &target.display().to_string())?;
        }
    }
    Ok(())
}

/// Every path of every package, once. Lists name parents before what is in them.
fn packages(host: &Path, tree: &mut Tree) -> io::Result<()> {
    let mut seen = BTreeSet::new();
    for list in sorted(&host.join(DPKG).join("info"))? {
        if list.extension().is_none_or(|extension| extension != "list") {
            continue;
        }
        for line in fs::read_to_string(&list)?.lines() {
            let path = Path::new(line);
            if !is_plain(path) || !seen.insert(line.to_owned()) {
                continue;
            }
            let source = host.join(path.strip_prefix("/").unwrap_or(path));
            if is_taken(path) || is_skeleton(path, &source) {
                tree.take(&source, path)?;
            }
        }
    }
    Ok(())
}

/// Under /usr and its like, but not what an administrator puts there.
fn is_taken(path: &Path) -> bool {
    let first = path.components().nth(1);
    let rooted = ROOTS.iter().any(|root| first == Some(Component::Normal(root.as_ref())));
    rooted && !path.starts_with("/usr/local")
}

/// The directories that packages expect under /var and elsewhere, without what is in them.
fn is_skeleton(path: &Path, source: &Path) -> bool {
    let kept_out = ["/proc", "/sys", "/dev", "/run", "/etc", "/home", "/root", "/tmp", "/boot", "/media"];
    !kept_out.iter().any(|out| path.starts_with(out))
        && path != Path::new("/")
        && source.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Absolute, and nowhere `..`.
fn is_plain(path: &Path) -> bool {
    path.has_root() && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

/// What dpkg and apt inside need to know of the packages that are there.
fn dpkg_database(host: &Path, tree: &mut Tree) -> io::Result<()> {
    let source = host.join(DPKG);
    let place = Path::new("/").join(DPKG);
    for name in ["status", "available", "diversions", "statoverride", "arch", "cmethopt"] {
        if source.join(name).is_file() {
            tree.copy(&source.join(name), &place.join(name))?;
        }
    }
    for name in ["alternatives", "triggers"] {
        for file in sorted(&source.join(name)).unwrap_or_default() {
            let name = place.join(name).join(file.file_name().unwrap_or_default());
            // Locks and half-written files are of no use inside.
            if file.is_file() && !name.ends_with("Lock") {
                tree.copy(&file, &name)?;
            }
        }
    }
    for file in sorted(&source.join("info"))? {
        tree.take(&file, &place.join("info").join(file.file_name().unwrap_or_default()))?;
    }
    for name in ["updates", "parts"] {
        tree.make(&format!("/{DPKG}/{name}"), 0o755)?;
    }
    Ok(())
}

/// What every root file system has, whoever owns it.
fn skeleton(tree: &mut Tree) -> io::Result<()> {
    for (path, mode) in [
        ("/boot", 0o755),
        ("/dev", 0o755),
        ("/home", 0o755),
        ("/media", 0o755),
        ("/mnt", 0o755),
        ("/opt", 0o755),
        ("/proc", 0o555),
        ("/root", 0o700),
        ("/run", 0o755),
        ("/srv", 0o755),
        ("/sys", 0o555),
        ("/tmp", 0o1777),
        ("/usr/local", 0o755),
        ("/usr/local/bin", 0o755),
        ("/usr/local/etc", 0o755),
        ("/usr/local/include", 0o755),
        ("/usr/local/lib", 0o755),
        ("/usr/local/sbin", 0o755),
        ("/usr/local/share", 0o755),
        ("/usr/local/src", 0o755),
        ("/var/cache/apt/archives/partial", 0o755),
        ("/var/lib/apt/lists/partial", 0o755),
        ("/var/log", 0o755),
        ("/var/tmp", 0o1777),
    ] {
        tree.make(path, mode)?;
    }
    tree.link("/var/run", "/run")?;
    tree.link("/var/lock", "/run/lock")
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

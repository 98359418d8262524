//! The image `host`: this host's packages, without this host.
//!
//! What packages own under /usr comes in by hard link, so a generation costs directory entries and
//! no space. dpkg replaces files by rename, so a link keeps the file of its day. Everything that
//! makes the host this host (users, keys, machine id, what an administrator wrote) stays out:
//! `/etc` is one of its own.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
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

/// What an administrator may want machines to have beside packages. Elsewhere are the host's
/// accounts, keys and state, or what is generated here.
const INCLUDES_ALLOWED: [&str; 3] = ["/usr", "/opt", "/srv"];

/// Builds the tree at `root`.
pub fn take(host: &Path, includes: &[PathBuf], root: &Path) -> Result<(), ImageError> {
    build(host, includes, root).map_err(|error| not_taken(HOST, root, error))
}

fn build(host: &Path, includes: &[PathBuf], root: &Path) -> io::Result<()> {
    let before = stamp(host)?;
    let mut tree = Tree::new(root)?;
    top_level(host, &mut tree)?;
    let links = packages(host, &mut tree)?;
    for include in includes {
        take_include(host, include, &mut tree)?;
    }
    dpkg_database(host, &mut tree)?;
    etc::take(host, &mut tree)?;
    skeleton(&mut tree)?;
    for link in links {
        tree.remove_if_dangling(&link)?;
    }
    if stamp(host)? != before {
        return Err(io::Error::other(
            "this host's packages changed while they were taken: try again when apt and dpkg have ended",
        ));
    }
    tracing::info!(files = tree.files, left_out = tree.left_out, "the host image's files are in place");
    Ok(())
}

/// Changes whenever dpkg has changed something: the status file's number and time, and how many
/// changes wait to be merged into it.
fn stamp(host: &Path) -> io::Result<(u64, i64, i64, usize)> {
    let status = fs::metadata(host.join(DPKG).join("status"))?;
    let updates = fs::read_dir(host.join(DPKG).join("updates")).map_or(0, Iterator::count);
    Ok((status.ino(), status.mtime(), status.mtime_nsec(), updates))
}

/// On a merged system /bin and its like are links, whose targets must be there before anything is
/// put through them. So must those of /var, or the host's /run would come in as /var/run.
fn top_level(host: &Path, tree: &mut Tree) -> io::Result<()> {
    for name in ROOTS {
        if let Ok(target) = fs::read_link(host.join(name)) {
            // Relative, so that it leads into the tree while that is being filled.
            let target = target.strip_prefix("/").unwrap_or(&target).to_owned();
            tree.take(&host.join(&target), &Path::new("/").join(&target))?;
            tree.link(&format!("/{name}"), &target.display().to_string())?;
        }
    }
    tree.make("/run", 0o755)?;
    tree.link("/var/run", "/run")?;
    tree.link("/var/lock", "/run/lock")
}

/// Takes every path of every package, and gives back the links among it that are not programs',
/// which may lead to what is not taken.
fn packages(host: &Path, tree: &mut Tree) -> io::Result<Vec<PathBuf>> {
    let mut links = Vec::new();
    for path in owned_paths(host)? {
        let source = host.join(path.strip_prefix("/").unwrap_or(&path));
        match part_of(&path) {
            Part::Programs => tree.take(&source, &path)?,
            Part::Skeleton => match source.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    tree.take(&source, &path)?;
                    links.push(path);
                }
                Ok(found) if found.is_dir() => tree.take(&source, &path)?,
                // Files of /etc have rules of their own, and those of /var are the host's state.
                Ok(_) | Err(_) => {}
            },
            Part::Elsewhere => {}
        }
    }
    Ok(links)
}

/// Every path that a package owns, once, a directory before what is in it.
fn owned_paths(host: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut paths = BTreeSet::new();
    for list in sorted(&host.join(DPKG).join("info"))? {
        if list.extension().is_some_and(|extension| extension == "list") {
            // Names are bytes; nobody promises UTF-8.
            let text = fs::read(&list)?;
            paths
                .extend(text.split(|byte| *byte == b'\n').map(|line| PathBuf::from(OsStr::from_bytes(line))));
        }
    }
    // Where files are that one package moved out of another's way, which no list names: three
    // lines each, from, to, and by which package.
    let diversions = fs::read(host.join(DPKG).join("diversions")).unwrap_or_default();
    let lines: Vec<&[u8]> = diversions.split(|byte| *byte == b'\n').collect();
    paths.extend(lines.chunks_exact(3).map(|lines| PathBuf::from(OsStr::from_bytes(lines[1]))));
    paths.retain(|path| is_plain(path));
    Ok(paths)
}

/// What of a package's paths is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// All of it.
    Programs,
    /// Directories and links.
    Skeleton,
    /// Nothing.
    Elsewhere,
}

fn part_of(path: &Path) -> Part {
    let under = |tops: &[&str]| tops.iter().any(|top| path.starts_with(top));
    // An administrator's, even where a package made the directories; and what is in /run.
    if under(&["/usr/local", "/var/run", "/var/lock"]) {
        return Part::Elsewhere;
    }
    match path.components().nth(1) {
        Some(Component::Normal(first)) if ROOTS.iter().any(|root| first == *root) => Part::Programs,
        Some(Component::Normal(first)) if first == "etc" || first == "var" => Part::Skeleton,
        Some(_) | None => Part::Elsewhere,
    }
}

fn take_include(host: &Path, include: &Path, tree: &mut Tree) -> io::Result<()> {
    let refused = |why: &str| io::Error::other(format!("host_includes: {}: {why}", include.display()));
    if !is_plain(include) || !INCLUDES_ALLOWED.iter().any(|top| include.starts_with(top)) {
        return Err(refused("only directories of /usr, /opt and /srv can be included; write the whole path"));
    }
    let source = host.join(include.strip_prefix("/").unwrap_or(include));
    // By the real way: a link could lead past directories that the path does not name.
    let (Ok(real), true) = (source.canonicalize(), source.is_dir()) else {
        return Err(refused("there is no such directory: make it, or take it out of daemon.toml"));
    };
    let host = host.canonicalize()?;
    let mut above = real.ancestors().take_while(|above| *above != host);
    if !above.all(|above| fs::metadata(above).is_ok_and(|found| found.mode() & 0o001 != 0)) {
        return Err(refused(
            "not everybody on this host may enter it, so machines may not have it: open it, or take it \
             out of daemon.toml",
        ));
    }
    tree.take_all(&source, include)
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
        ("/var/mail", 0o755),
        ("/var/tmp", 0o1777),
    ] {
        tree.make(path, mode)?;
    }
    Ok(())
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_come_whole_and_the_rest_as_a_skeleton() {
        for (path, part) in [
            ("/usr/bin/awk", Part::Programs),
            ("/lib/systemd/system", Part::Programs),
            ("/usr/local/bin", Part::Elsewhere),
            ("/etc/apt/keyrings", Part::Skeleton),
            ("/var/cache/apt", Part::Skeleton),
            ("/var/run/sshd", Part::Elsewhere),
            ("/opt/vendor", Part::Elsewhere),
            ("/root", Part::Elsewhere),
            ("/", Part::Elsewhere),
        ] {
            assert_eq!(part_of(Path::new(path)), part, "{path}");
        }
    }

    #[test]
    fn names_are_bytes_and_diverted_files_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let dpkg = dir.path().join(DPKG);
        fs::create_dir_all(dpkg.join("info")).expect("made");
        fs::write(dpkg.join("info/old.list"), b"/.\n/usr\n/usr/caf\xe9\n").expect("written");
        let text = "/usr/bin/perf\n/usr/bin/perf.wrapper\nlinux-perf\n/usr/x\n/usr/../y\n:\n";
        fs::write(dpkg.join("diversions"), text).expect("written");
        let paths = owned_paths(dir.path()).expect("read");
        for name in [&b"/usr/caf\xe9"[..], b"/usr/bin/perf.wrapper"] {
            assert!(paths.contains(Path::new(OsStr::from_bytes(name))), "{paths:?}");
        }
        assert!(!paths.iter().any(|path| path.ends_with("y")));
    }

    #[test]
    fn an_include_that_not_everybody_may_enter_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;

        let dir = tempfile::tempdir().expect("a directory");
        let host = dir.path().join("host");
        fs::create_dir_all(host.join("opt/closed/tools")).expect("made");
        fs::set_permissions(host.join("opt/closed"), fs::Permissions::from_mode(0o700)).expect("set");
        let mut tree = Tree::new(&dir.path().join("tree")).expect("a tree");
        for (include, why) in [
            ("/opt/closed/tools", "not everybody on this host may enter it"),
            ("/opt/missing", "there is no such directory"),
            ("/etc/ssh", "only directories of /usr, /opt and /srv"),
            ("/", "only directories of /usr, /opt and /srv"),
            ("/opt/../root", "only directories of /usr, /opt and /srv"),
        ] {
            let said = take_include(&host, Path::new(include), &mut tree).expect_err(include).to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}

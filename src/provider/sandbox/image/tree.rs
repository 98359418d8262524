//! Putting files into a generation: by hard link, by reflink, or by copy.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;

/// What of a source comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    /// A root file system that was made to be one.
    Everything,
    /// What anybody on the host may read.
    Public,
}

/// A root file system being filled.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    made: HashSet<PathBuf>,
    /// Directories that others cannot enter on the host: what is in them is not public, whatever
    /// its own mode says.
    closed: HashSet<PathBuf>,
    /// Whether hard links across to the source still work.
    links: bool,
    taking: Taking,
    pub files: usize,
    /// What was left out because only root may read it, or because it is neither file, link nor directory.
    pub left_out: usize,
}

impl Tree {
    /// An empty one at `root`, for what anybody on the host may read.
    pub fn new(root: &Path) -> io::Result<Self> {
        Self::taking(root, Taking::Public)
    }

    /// An empty one at `root`, for all of a root file system that was made to be one.
    pub fn of_everything(root: &Path) -> io::Result<Self> {
        Self::taking(root, Taking::Everything)
    }

    fn taking(root: &Path, taking: Taking) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(root)?;
        fs::set_permissions(root, fs::Permissions::from_mode(0o755))?;
        Ok(Self {
            root: root.canonicalize()?,
            made: HashSet::new(),
            closed: HashSet::new(),
            links: true,
            taking,
            files: 0,
            left_out: 0,
        })
    }

    /// Where `path` (from the root of the tree) is on this host.
    pub fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether something is at `path` already.
    pub fn has(&self, path: &Path) -> bool {
        self.at(path).symlink_metadata().is_ok()
    }

    /// Takes one file, link or directory of the host in at the same path. What only root may read
    /// stays out: whoever is root inside reads everything in here.
    pub fn take(&mut self, source: &Path, path: &Path) -> io::Result<()> {
        if path.ancestors().skip(1).any(|ancestor| self.closed.contains(ancestor)) {
            self.left_out += 1;
            return Ok(());
        }
        let found = match source.symlink_metadata() {
            Ok(found) => found,
            // A package's file that the administrator removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if found.is_dir() {
            if self.taking == Taking::Public && found.mode() & 0o001 == 0 {
                self.closed.insert(path.to_owned());
            }
            return self.directory(path, &found);
        }
        if !self.leads_inside(path)? {
            self.left_out += 1;
            return Ok(());
        }
        if self.has(path) {
            return Ok(());
        }
        if found.is_symlink() {
            return symlink(fs::read_link(source)?, self.at(path));
        }
        let secret = self.taking == Taking::Public && found.mode() & 0o004 == 0;
        if !found.is_file() || secret {
            self.left_out += 1;
            return Ok(());
        }
        self.files += 1;
        self.file(source, path, &found)
    }

    /// Takes a whole directory in.
    pub fn take_all(&mut self, source: &Path, path: &Path) -> io::Result<()> {
        self.take(source, path)?;
        for entry in fs::read_dir(source)? {
            let entry = entry?;
            let (source, path) = (entry.path(), path.join(entry.file_name()));
            if entry.file_type()?.is_dir() {
                self.take_all(&source, &path)?;
            } else {
                self.take(&source, &path)?;
            }
        }
        Ok(())
    }

    /// Copies one file in: for what the host changes in place, which a hard link would show inside.
    pub fn copy(&mut self, source: &Path, path: &Path) -> io::Result<()> {
        let found = fs::metadata(source)?;
        self.parents(path)?;
        self.files += 1;
        copy(source, &self.at(path), &found)
    }

    /// Writes a file of our own, owned by root.
    pub fn write(&mut self, path: &str, mode: u32, text: &str) -> io::Result<()> {
        let place = self.at(Path::new(path));
        self.parents(Path::new(path))?;
        // What a package brought here gives way; a hard link is never written through.
        match fs::remove_file(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        fs::write(&place, text)?;
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))
    }

    /// Makes a directory of our own, owned by root.
    pub fn make(&mut self, path: &str, mode: u32) -> io::Result<()> {
        let place = self.at(Path::new(path));
        self.parents(Path::new(path))?;
        if !place.is_dir() {
            fs::create_dir(&place)?;
        }
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))
    }

    /// Makes a symbolic link of our own.
    pub fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.parents(Path::new(path))?;
        if self.has(Path::new(path)) { Ok(()) } else { symlink(target, self.at(Path::new(path))) }
    }

    /// Whether following `path` inside ends at something that is there.
    pub fn leads_somewhere(&self, path: &Path) -> bool {
        let Ok(root) = open(&self.root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { return false };
        openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::IN_ROOT).is_ok()
    }

    /// Removes a symbolic link, if one is there.
    pub fn remove_link(&mut self, path: &Path) -> io::Result<()> {
        let place = self.at(path);
        if place.is_symlink() { fs::remove_file(place) } else { Ok(()) }
    }

    fn directory(&mut self, path: &Path, found: &Metadata) -> io::Result<()> {
        if self.made.contains(path) {
            return Ok(());
        }
        if !self.leads_inside(path)? {
            self.left_out += 1;
            return Ok(());
        }
        let place = self.at(path);
        match fs::create_dir(&place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            // A link that stands for a directory (/bin) serves as one.
            Err(_) if place.symlink_metadata()?.is_symlink() => return Ok(()),
            Ok(()) | Err(_) => {}
        }
        chown(&place, Some(found.uid()), Some(found.gid()))?;
        fs::set_permissions(&place, fs::Permissions::from_mode(found.mode() & 0o7777))?;
        self.made.insert(path.to_owned());
        Ok(())
    }

    /// Makes the directory that `path` is in, and tells whether it is in the tree: a link to a
    /// directory, which one package may bring and another may list files below, could lead out.
    fn leads_inside(&mut self, path: &Path) -> io::Result<bool> {
        let Some(parent) = path.parent() else { return Ok(true) };
        if self.made.contains(parent) {
            return Ok(true);
        }
        let existing = parent.ancestors().find(|ancestor| self.at(ancestor).symlink_metadata().is_ok());
        let inside = match self.at(existing.unwrap_or(Path::new("/"))).canonicalize() {
            Ok(place) => place.starts_with(&self.root),
            // A link that leads nowhere, inside or out.
            Err(_) => false,
        };
        if inside {
            self.parents(path)?;
        }
        Ok(inside)
    }

    fn parents(&mut self, path: &Path) -> io::Result<()> {
        let Some(parent) = path.parent().filter(|parent| !self.made.contains(*parent)) else { return Ok(()) };
        fs::DirBuilder::new().recursive(true).mode(0o755).create(self.at(parent))?;
        self.made.insert(parent.to_owned());
        Ok(())
    }

    fn file(&mut self, source: &Path, path: &Path, found: &Metadata) -> io::Result<()> {
        let place = self.at(path);
        if self.links {
            match fs::hard_link(source, &place) {
                Ok(()) => return Ok(()),
                Err(error) if is_no_link(&error) => {
                    // One file with too many links is copied; another file system copies them all.
                    self.links = error.raw_os_error() == Some(Errno::MLINK.raw_os_error());
                }
                Err(error) => return Err(error),
            }
        }
        copy(source, &place, found)
    }
}

fn is_no_link(error: &io::Error) -> bool {
    let no_link = [Errno::XDEV, Errno::MLINK, Errno::PERM, Errno::OPNOTSUPP].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| no_link.contains(&code))
}

/// By reflink where the file system can, else byte by byte.
fn copy(source: &Path, place: &Path, found: &Metadata) -> io::Result<()> {
    let from = File::open(source)?;
    let to = File::options().write(true).create_new(true).open(place)?;
    if rustix::fs::ioctl_ficlone(&to, &from).is_err() {
        io::copy(&mut &from, &mut &to)?;
    }
    lchown(place, Some(found.uid()), Some(found.gid()))?;
    // After chown, which takes setuid away.
    fs::set_permissions(place, fs::Permissions::from_mode(found.mode() & 0o7777))
}

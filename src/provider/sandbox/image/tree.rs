//! Putting files into a generation: by hard link, by reflink, or by copy.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, XattrFlags, fgetxattr, fsetxattr, open, openat2};
use rustix::io::Errno;

/// Members have this many ids: an owner from here on would be nobody inside.
pub const IDS: u32 = 65_536;
/// Where the programs of a system are: replaced by rename, as package managers do, never edited.
const PROGRAMS: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What a program may do beyond its user's rights (`ping` on some systems).
const CAPABILITIES: &str = "security.capability";

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
    /// Directories that are there.
    made: HashSet<PathBuf>,
    /// Those of them that have their owner and mode of the source. One that was only made for the
    /// sake of a file below it has not.
    taken: HashSet<PathBuf>,
    /// Directories that others cannot enter on the host: what is in them is not public, whatever
    /// its own mode says.
    closed: HashSet<PathBuf>,
    /// Copies of files that have several names in the source, by device and number there.
    copies: HashMap<(u64, u64), PathBuf>,
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
            taken: HashSet::new(),
            copies: HashMap::new(),
            closed: HashSet::new(),
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
        // An error of the system does not say where.
        self.try_take(source, path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    fn try_take(&mut self, source: &Path, path: &Path) -> io::Result<()> {
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
        if found.uid() >= IDS || found.gid() >= IDS {
            return self.refuse_owner(&found);
        }
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
            symlink(fs::read_link(source)?, self.at(path))?;
            return lchown(self.at(path), Some(found.uid()), Some(found.gid()));
        }
        let secret = self.taking == Taking::Public && found.mode() & 0o004 == 0;
        if !found.is_file() || secret {
            self.left_out += 1;
            return Ok(());
        }
        self.files += 1;
        self.file(source, path, &found)
    }

    /// Takes a directory in with all that is in it, as far as its file system reaches.
    pub fn take_all(&mut self, source: &Path, path: &Path) -> io::Result<()> {
        let device = fs::metadata(source)?.dev();
        self.take_below(source, path, device)
    }

    fn take_below(&mut self, source: &Path, path: &Path, device: u64) -> io::Result<()> {
        self.take(source, path)?;
        for entry in fs::read_dir(source)? {
            let entry = entry?;
            let (source, path) = (entry.path(), path.join(entry.file_name()));
            // What is mounted there (/proc, say) is no part of it, but its place is.
            let found = entry.metadata()?;
            if found.is_dir() && found.dev() == device {
                self.take_below(&source, &path, device)?;
            } else {
                self.take(&source, &path)?;
            }
        }
        Ok(())
    }

    fn refuse_owner(&mut self, found: &Metadata) -> io::Result<()> {
        match self.taking {
            Taking::Public => {
                self.left_out += 1;
                Ok(())
            }
            Taking::Everything => Err(io::Error::other(format!(
                "it belongs to {}:{}, and only owners below {IDS} exist in a machine: take the root file \
                 system anew as root",
                found.uid(),
                found.gid()
            ))),
        }
    }

    /// Copies one file in: for what the host changes in place, which a hard link would show inside.
    pub fn copy(&mut self, source: &Path, path: &Path) -> io::Result<()> {
        let found = fs::metadata(source)?;
        self.parents(path)?;
        self.files += 1;
        copy(source, &self.at(path), &found)
    }

    /// Copies one file in, if there is one there that anybody on the host may read.
    pub fn copy_public(&mut self, source: &Path, path: &Path) -> io::Result<()> {
        let shut = path.ancestors().skip(1).any(|above| self.closed.contains(above));
        let public = fs::metadata(source).is_ok_and(|found| found.is_file() && found.mode() & 0o004 != 0);
        if shut || !public || self.has(path) || !self.leads_inside(path)? {
            return Ok(());
        }
        self.copy(source, path)
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

    /// Removes the symbolic link at `path` if it leads nowhere.
    pub fn remove_if_dangling(&mut self, path: &Path) -> io::Result<()> {
        let place = self.at(path);
        if place.is_symlink() && !self.leads_somewhere(path) { fs::remove_file(place) } else { Ok(()) }
    }

    fn directory(&mut self, path: &Path, found: &Metadata) -> io::Result<()> {
        // The root of a machine is ours to say: one of mode 0700 would shut its login user out.
        if self.taken.contains(path) || path == Path::new("/") {
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
        self.taken.insert(path.to_owned());
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

    /// A file that keeps its place on the disk is shared by a hard link. One that is edited in place
    /// would change under the machines, and is copied.
    ///
    /// So is one with set-uid or set-gid: when dpkg replaces such a file it first takes all rights
    /// from the old one, under all its names, and `sudo` would end in every machine.
    fn is_linked(&self, path: &Path, found: &Metadata) -> bool {
        let edited =
            self.taking == Taking::Everything && !PROGRAMS.iter().any(|programs| path.starts_with(programs));
        !edited && found.mode() & 0o6000 == 0
    }

    fn file(&mut self, source: &Path, path: &Path, found: &Metadata) -> io::Result<()> {
        let place = self.at(path);
        if self.is_linked(path, found) {
            match fs::hard_link(source, &place) {
                Err(error) if is_no_link(&error) => {}
                done => return done,
            }
        }
        let identity = (found.dev(), found.ino());
        if let Some(first) = self.copies.get(&identity) {
            return fs::hard_link(first, &place);
        }
        copy(source, &place, found)?;
        if found.nlink() > 1 {
            self.copies.insert(identity, place);
        }
        Ok(())
    }
}

/// Another file system, too many links, an immutable file, or no links at all.
fn is_no_link(error: &io::Error) -> bool {
    let no_link = [Errno::XDEV, Errno::MLINK, Errno::PERM, Errno::OPNOTSUPP].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| no_link.contains(&code))
}

/// By reflink where the file system can, else byte by byte; with all that matters of the file.
fn copy(source: &Path, place: &Path, found: &Metadata) -> io::Result<()> {
    let from = File::open(source)?;
    let to = File::options().write(true).create_new(true).open(place)?;
    if rustix::fs::ioctl_ficlone(&to, &from).is_err() {
        io::copy(&mut &from, &mut &to)?;
    }
    lchown(place, Some(found.uid()), Some(found.gid()))?;
    // After the owner, whose change takes set-uid and capabilities away.
    fs::set_permissions(place, fs::Permissions::from_mode(found.mode() & 0o7777))?;
    // The longest value the kernel knows is 24 bytes.
    let mut capabilities = [0_u8; 64];
    if let Ok(length) = fgetxattr(&from, CAPABILITIES, &mut capabilities) {
        fsetxattr(&to, CAPABILITIES, &capabilities[..length], XattrFlags::empty())?;
    }
    // Python, make and others compare times.
    to.set_modified(found.modified()?)
}

//! Starting a child as the login user, with or without a terminal (the agent).
//!
//! `as_user` is for the agent's own work in places where a user can write: a thread of its own
//! whose file system identity is the user's (setfsuid takes root's file capabilities with it).
//! Unlike a child that became the user, such a thread cannot be signalled or traced by the user,
//! and costs tens of microseconds. `spawn` is for the user's programs.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

const LAST_SIGNAL: libc::c_int = 64;

/// Whose rights something is done with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// What to execute.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    pub argv0: OsString,
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Entered as the user; `/` where the user may not.
    pub directory: PathBuf,
}

/// The master side of a pseudo terminal.
#[derive(Debug)]
pub struct Terminal {
    master: AsyncFd<OwnedFd>,
    /// The path of the side the child has, such as `/dev/pts/3`.
    pub name: OsString,
}

/// The two sides of a terminal that no child has yet.
#[derive(Debug)]
pub struct NewTerminal {
    pub terminal: Terminal,
    side: OwnedFd,
}

/// Runs `work` with the file system rights of `user`, on a thread of its own.
pub fn as_user<T, F>(user: &User, work: F) -> io::Result<oneshot::Receiver<io::Result<T>>>
where
    T: Send + 'static,
    F: FnOnce() -> io::Result<T> + Send + 'static,
{
    let user = user.clone();
    let (result, received) = oneshot::channel();
    std::thread::Builder::new().name("as-user".to_owned()).stack_size(256 << 10).spawn(move || {
        // Who asked may have gone: then nobody wants the result.
        drop(result.send(take_on(&user).and_then(|()| work())));
    })?;
    Ok(received)
}

/// Starts `program` as `user` in a session of its own, with three pipes.
pub fn spawn(program: Program, user: &User) -> io::Result<Child> {
    let mut command = prepare(program, user, Controlling::None)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn()
}

/// Starts `program` as `user` in a session of its own, on a terminal.
pub fn spawn_on_terminal(program: Program, user: &User, new: NewTerminal) -> io::Result<(Child, Terminal)> {
    let mut command = prepare(program, user, Controlling::Stdin)?;
    command.stdin(new.side.try_clone()?).stdout(new.side.try_clone()?).stderr(new.side);
    Ok((command.spawn()?, new.terminal))
}

/// Sends a signal to the session that `spawn` began, if its leader was not reaped yet.
pub fn signal(child: &Child, signal: Signal) {
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(leader) = leader {
        // The group may be gone already: then there is nobody to tell.
        let _ = rustix::process::kill_process_group(leader, signal);
    }
}

/// Takes over a listening socket that was inherited by number, and keeps every other inherited
/// descriptor out of the children.
pub fn inherited_listener(fd: RawFd) -> io::Result<UnixListener> {
    // SAFETY: fcntl only looks at the number; a wrong one is EBADF.
    if fd <= 2 || unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::other(format!("descriptor {fd} is not an inherited socket")));
    }
    // SAFETY: the descriptor is open (just seen) and named by the command line as ours to own.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    if !rustix::net::sockopt::socket_acceptconn(&socket)? {
        return Err(io::Error::other(format!("descriptor {fd} is not a listening socket")));
    }
    let listener = UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Marks every descriptor but the standard three to be closed in children.
pub fn keep_descriptors_from_children() -> io::Result<()> {
    // SAFETY: the call changes flags of descriptors and touches no memory.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl NewTerminal {
    /// Makes a terminal that belongs to `user`; `group` is the group `tty`, if there is one.
    pub fn open(user: &User, group: Option<u32>) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags)?;
        rustix::pty::unlockpt(&master)?;
        let side = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
        let name = OsString::from_vec(rustix::pty::ptsname(&master, Vec::new())?.into_bytes());
        // As login programs do: with a group `tty`, only its programs may write to the terminal.
        let mode = if group.is_some() { 0o620 } else { 0o600 };
        rustix::fs::fchown(
            &side,
            Some(Uid::from_raw(user.uid)),
            Some(Gid::from_raw(group.unwrap_or(user.gid))),
        )?;
        rustix::fs::fchmod(&side, Mode::from_raw_mode(mode))?;
        rustix::fs::fcntl_setfl(&master, rustix::fs::fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        // SAFETY: the `AsyncFd` owns the descriptor, which stays open and the same while it lives.
        let master = unsafe { AsyncFd::register(master)? };
        Ok(Self { terminal: Terminal { master, name }, side })
    }
}

impl Terminal {
    /// Reads what the child wrote; 0 when every holder of the other side is gone.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = |fd: &OwnedFd| Ok(rustix::io::read(fd, &mut *buffer)?);
        match self.master.async_io(tokio::io::Interest::READABLE, read).await {
            Err(error) if error.raw_os_error() == Some(libc::EIO) => Ok(0),
            other => other,
        }
    }

    /// Types some of `bytes`, and says how many.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.master.async_io(tokio::io::Interest::WRITABLE, |fd| Ok(rustix::io::write(fd, bytes)?)).await
    }

    /// Tells the child's side how large the window is.
    pub fn resize(&self, size: Winsize) -> io::Result<()> {
        Ok(rustix::termios::tcsetwinsize(self.master.get_ref(), size)?)
    }

    /// The settings of the line, to change and to put back.
    pub fn line(&self) -> impl AsFd + '_ {
        self.master.get_ref()
    }
}

/// Whether a child gets a controlling terminal.
#[derive(Clone, Copy)]
enum Controlling {
    None,
    Stdin,
}

/// What the child does between fork and exec, prepared so that nothing is allocated there.
struct Entry {
    uid: u32,
    gid: u32,
    /// None where the process has no right to change identities (and runs as `uid` already).
    groups: Option<Vec<libc::gid_t>>,
    directory: CString,
    controlling: Controlling,
}

fn prepare(program: Program, user: &User, controlling: Controlling) -> io::Result<Command> {
    let entry = Entry {
        uid: user.uid,
        gid: user.gid,
        groups: (!is_own(user)).then(|| user.groups.clone()),
        directory: c_string(program.directory.as_os_str())?,
        controlling,
    };
    let mut command = Command::new(&program.path);
    command.arg0(&program.argv0).args(&program.arguments).env_clear().envs(program.environment);
    // SAFETY: `Entry::run` only makes system calls on memory prepared above: nothing between
    // fork and exec allocates, locks or panics.
    unsafe { command.pre_exec(move || entry.run()) };
    Ok(command)
}

impl Entry {
    fn run(&self) -> io::Result<()> {
        rustix::process::setsid()?;
        if let Controlling::Stdin = self.controlling {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        // A program inherits what its parent ignores, and no shell can undo that.
        for number in 1..=LAST_SIGNAL {
            // SAFETY: the default action names no handler. KILL, STOP and the two numbers that
            // the C library keeps to itself are refused, which is as good.
            unsafe { libc::signal(number, libc::SIG_DFL) };
        }
        rustix::process::umask(Mode::from_raw_mode(0o022));
        if let Some(groups) = &self.groups {
            // The system calls themselves: glibc's functions would look for other threads.
            // SAFETY: setgroups reads `len` ids from the vector; the others take numbers.
            unsafe {
                check(libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()))?;
                check(libc::syscall(libc::SYS_setresgid, self.gid, self.gid, self.gid))?;
                check(libc::syscall(libc::SYS_setresuid, self.uid, self.uid, self.uid))?;
            }
        }
        rustix::process::chdir(self.directory.as_c_str()).or_else(|_| rustix::process::chdir(c"/"))?;
        Ok(())
    }
}

/// Makes the file system identity of this thread the user's, for good.
fn take_on(user: &User) -> io::Result<()> {
    if is_own(user) {
        return Ok(());
    }
    let groups: Vec<Gid> = user.groups.iter().map(|id| Gid::from_raw(*id)).collect();
    rustix::thread::set_thread_groups(&groups)?;
    // SAFETY: both calls take a number and change only the calling thread. They report no
    // error, so the second call of each (an invalid id changes nothing) reads back what holds.
    let (gid, uid) = unsafe {
        libc::setfsgid(user.gid);
        libc::setfsuid(user.uid);
        (libc::setfsgid(u32::MAX), libc::setfsuid(u32::MAX))
    };
    if i64::from(gid) == i64::from(user.gid) && i64::from(uid) == i64::from(user.uid) {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Whether this process already is the user and could become nobody else.
fn is_own(user: &User) -> bool {
    let own = rustix::process::geteuid();
    own.as_raw() == user.uid && !own.is_root()
}

fn check(result: libc::c_long) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

impl Program {
    /// `shell` as a login shell, the way login programs say it: with a dash in front of its name.
    pub fn login_shell(shell: &Path, environment: Vec<(OsString, OsString)>, directory: &Path) -> Self {
        let mut argv0 = OsString::from("-");
        argv0.push(shell.file_name().unwrap_or(shell.as_os_str()));
        Self {
            path: shell.to_owned(),
            argv0,
            arguments: Vec::new(),
            environment,
            directory: directory.to_owned(),
        }
    }

    /// `shell -c command`.
    pub fn command(
        shell: &Path,
        command: &[u8],
        environment: Vec<(OsString, OsString)>,
        directory: &Path,
    ) -> Self {
        let argv0 = shell.file_name().unwrap_or(shell.as_os_str()).to_owned();
        let arguments = vec![OsString::from("-c"), OsString::from_vec(command.to_vec())];
        Self { path: shell.to_owned(), argv0, arguments, environment, directory: directory.to_owned() }
    }
}

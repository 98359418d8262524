//! One boot, from inside: what the machine's first process does before it is `rl init`.
//!
//! It is root of its own user namespace only. Every path below "mount what a machine has" is
//! resolved within the new root, which an earlier holder may have shaped: whatever symlinks stand
//! there lead nowhere but into the machine itself.

use std::convert::Infallible;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, chmod, mkdir, open, symlink};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, move_mount, open_tree, unmount,
};
use rustix::process::{Gid, Uid, chdir, fchdir, pivot_root, setsid, umask};
use rustix::system::sethostname;
use rustix::thread::{
    CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use serde::{Deserialize, Serialize};

use super::boot::Descriptors;
use super::channel;
use super::wire::{At, BootOrder, Failure, Network, Privileges, Program};
use crate::sys::namespaces::{
    Signals, close_on_exec_from, end, enter_cgroup_namespace, execute, join_new_session_keyring, place_at,
    raise_loopback,
};

/// What the worker and the machine's first process say to each other.
#[derive(Debug, Serialize, Deserialize)]
pub enum Word {
    /// To the machine: go on. Beside it travel the root and, on the host's network, `/sys`.
    Go,
    /// From the machine: the next thing is the exec, which closes the channel.
    Executing,
    /// From the machine: it ends.
    Failed(Failure),
}

/// Where `rl init` finds the two listeners.
const CONTROL_FD: i32 = 3;
const SSH_FD: i32 = 4;
const FIRST_OTHER_FD: u32 = 5;

/// Nothing in a machine has use for these, namespaces or not: they reach for the whole kernel.
const NEVER: [CapabilitySet; 11] = [
    CapabilitySet::SYS_MODULE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_TIME,
    CapabilitySet::SYS_PACCT,
    CapabilitySet::SYSLOG,
    CapabilitySet::WAKE_ALARM,
    CapabilitySet::BLOCK_SUSPEND,
    CapabilitySet::MAC_ADMIN,
    CapabilitySet::MAC_OVERRIDE,
    CapabilitySet::PERFMON,
    CapabilitySet::BPF,
];

/// Becomes the machine. Returns neither on success nor on failure.
pub fn run(order: &BootOrder, descriptors: &Descriptors<'_>, channel: &OwnedFd) -> ! {
    // Out of the way of the numbers that init's descriptors will take.
    let Ok(channel) = move_up(channel) else { end(1) };
    let Err(failure) = become_machine(order, descriptors, &channel);
    // A worker that is gone cannot be told; this process ends either way.
    drop(channel::send(&channel, &Word::Failed(failure), &[]));
    end(1)
}

fn become_machine(
    order: &BootOrder,
    descriptors: &Descriptors<'_>,
    channel: &OwnedFd,
) -> Result<Infallible, Failure> {
    let mut mounts = await_go(channel)?.into_iter();
    let root = mounts.next().ok_or_else(|| io::Error::other("it was not sent")).at("take the root")?;
    take_identity(order)?;
    let old_root = enter(&root)?;
    mount_kernel_views(order.network, mounts.next())?;
    make_dev(&old_root)?;
    make_run()?;
    leave(&old_root)?;
    if order.network == Network::None {
        raise_loopback().at("bring up loopback")?;
    }
    confine(order.privileges)?;
    execute_program(order, descriptors, channel)
}

fn await_go(channel: &OwnedFd) -> Result<Vec<OwnedFd>, Failure> {
    match channel::receive::<Word>(channel).at("wait for the launcher")? {
        Some((Word::Go, mounts)) => Ok(mounts),
        // The worker died before this machine was recorded: it must not live.
        None | Some((Word::Executing | Word::Failed(_), _)) => end(1),
    }
}

fn take_identity(order: &BootOrder) -> Result<(), Failure> {
    const STEP: &str = "become root of the machine";
    set_thread_groups(&[]).at(STEP)?;
    set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).at(STEP)?;
    set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).at(STEP)?;
    enter_cgroup_namespace().at("hide the host's cgroups")?;
    setsid().at("start a session")?;
    sethostname(order.hostname.as_bytes()).at("set the host name")
}

/// Makes `root` the root. The old one stays reachable through the descriptor this returns, stacked
/// over the new one: the kernel allows a new `/proc` and `/sys` only where old ones are in sight.
fn enter(root: &OwnedFd) -> Result<OwnedFd, Failure> {
    const STEP: &str = "enter the machine's root";
    let old_root = open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).at(STEP)?;
    move_mount(root, "", CWD, "/", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).at(STEP)?;
    fchdir(root).at(STEP)?;
    pivot_root(".", ".").at(STEP)?;
    chdir("/").at(STEP)?;
    umask(Mode::empty());
    Ok(old_root)
}

fn leave(old_root: &OwnedFd) -> Result<(), Failure> {
    const STEP: &str = "leave the host's root";
    fchdir(old_root).at(STEP)?;
    unmount(".", UnmountFlags::DETACH).at(STEP)?;
    chdir("/").at(STEP)
}

fn mount_kernel_views(network: Network, host_sys: Option<OwnedFd>) -> Result<(), Failure> {
    let plain = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    directory("/proc", 0o555).at("make /proc")?;
    mount("proc", "/proc", "proc", plain, None).at("mount /proc")?;
    directory("/sys", 0o555).at("make /sys")?;
    match (network, host_sys) {
        (Network::Host, Some(sys)) => {
            move_mount(&sys, "", CWD, "/sys", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).at("mount /sys")?;
        }
        (Network::Host, None) => Err(io::Error::other("it was not sent")).at("mount /sys")?,
        (Network::None, _) => {
            mount("sysfs", "/sys", "sysfs", plain | MountFlags::RDONLY, None).at("mount /sys")?;
        }
    }
    // A host may hide its cgroups from everybody, and then a machine does without the view.
    let _ = mount("cgroup2", "/sys/fs/cgroup", "cgroup2", plain | MountFlags::RDONLY, None);
    Ok(())
}

/// A `/dev` of its own with the harmless nodes of the host's, and terminals of its own.
fn make_dev(old_root: &OwnedFd) -> Result<(), Failure> {
    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC;
    directory("/dev", 0o755).at("make /dev")?;
    mount("tmpfs", "/dev", "tmpfs", quiet, c"mode=755,size=1m,nr_inodes=4k").at("mount /dev")?;
    for node in ["null", "zero", "full", "random", "urandom", "tty"] {
        bind_device(old_root, node).at("bring in the device nodes")?;
    }
    for (directory_path, mode) in [("/dev/pts", 0o755), ("/dev/shm", 0o1777)] {
        directory(directory_path, mode).at("make /dev")?;
    }
    mount("devpts", "/dev/pts", "devpts", quiet, c"newinstance,ptmxmode=0666,mode=620,gid=5")
        .at("mount /dev/pts")?;
    mount("tmpfs", "/dev/shm", "tmpfs", quiet | MountFlags::NODEV, c"mode=1777").at("mount /dev/shm")?;
    let links = [
        ("pts/ptmx", "/dev/ptmx"),
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ];
    for (target, link) in links {
        symlink(target, link).at("make /dev")?;
    }
    Ok(())
}

fn bind_device(old_root: &OwnedFd, node: &str) -> rustix::io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let device = open_tree(old_root, format!("dev/{node}"), flags)?;
    let place = format!("/dev/{node}");
    open(&place, OFlags::CREATE | OFlags::CLOEXEC, Mode::from_raw_mode(0o666))?;
    move_mount(&device, "", CWD, &place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

fn make_run() -> Result<(), Failure> {
    directory("/run", 0o755).at("make /run")?;
    mount("tmpfs", "/run", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755,size=64m")
        .at("mount /run")?;
    directory("/run/lock", 0o1777).at("make /run")?;
    directory("/tmp", 0o1777).at("make /tmp")
}

/// Makes a directory unless something of that name is there.
fn directory(path: &str, mode: u32) -> rustix::io::Result<()> {
    match mkdir(path, Mode::from_raw_mode(mode)) {
        Ok(()) => chmod(path, Mode::from_raw_mode(mode)),
        Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error),
    }
}

fn confine(privileges: Privileges) -> Result<(), Failure> {
    join_new_session_keyring().at("leave the host's keyring")?;
    for capability in NEVER {
        match remove_capability_from_bounding_set(capability) {
            // A kernel that does not know it does not grant it either.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error).at("give up capabilities"),
        }
    }
    match privileges {
        Privileges::MayGain => Ok(()),
        Privileges::NoNew => set_no_new_privs(true).at("give up gaining privileges"),
    }
}

fn execute_program(
    order: &BootOrder,
    descriptors: &Descriptors<'_>,
    channel: &OwnedFd,
) -> Result<Infallible, Failure> {
    let grace = match order.program {
        Program::Init { grace } => grace,
        Program::Trial => {
            channel::send(channel, &Word::Executing, &[]).at("tell the launcher")?;
            end(0)
        }
    };
    let arguments = [
        c"rl".into(),
        c"init".into(),
        option("--control-fd", CONTROL_FD)?,
        option("--ssh-fd", SSH_FD)?,
        option("--grace-ms", grace.as_millis())?,
    ];
    let environment = [
        c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
        c"LANG=C.UTF-8".into(),
        c"HOME=/root".into(),
        option("RINGLEADER_BOOT_ID", order.record.boot_id)?,
        option("RINGLEADER_IMAGE", &order.image)?,
    ];
    umask(Mode::from_raw_mode(0o022));
    let program = move_up(descriptors.program).at("keep hold of init's program")?;
    place_descriptors(descriptors).at("set up the descriptors of init")?;
    // A stop may come before init is ready to hear it. The kernel drops what a first process does
    // not handle, unless it is blocked.
    let _held_back = Signals::block(&[libc::SIGTERM]).at("hold back signals")?;
    channel::send(channel, &Word::Executing, &[]).at("tell the launcher")?;
    Err(execute(program, &arguments, &environment)).at("execute init")
}

fn option(name: &str, value: impl std::fmt::Display) -> Result<CString, Failure> {
    CString::new(format!("{name}={value}")).at("word the arguments of init")
}

/// Leaves init nothing of the host but the two listeners. What it prints goes to a file in `/run`,
/// which counts as the machine's own memory: a machine cannot fill the host's disk by shouting.
fn place_descriptors(descriptors: &Descriptors<'_>) -> io::Result<()> {
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let log_flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    let log = open("/run/ringleader.log", log_flags, Mode::from_raw_mode(0o600))?;
    let (null, log) = (move_up(&null)?, move_up(&log)?);
    let (control, ssh) = (move_up(&descriptors.control)?, move_up(&descriptors.ssh)?);
    // Whatever this process held under these numbers it needs no more.
    place_at(&null, 0)?;
    place_at(&log, 1)?;
    place_at(&log, 2)?;
    place_at(&control, CONTROL_FD)?;
    place_at(&ssh, SSH_FD)?;
    close_on_exec_from(FIRST_OTHER_FD)
}

/// A duplicate under a number that no descriptor of init takes.
fn move_up(descriptor: impl AsFd) -> rustix::io::Result<OwnedFd> {
    const FIRST_FREE_FD: i32 = 64;
    rustix::io::fcntl_dupfd_cloexec(descriptor, FIRST_FREE_FD)
}

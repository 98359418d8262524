//! What of this machine stands in the way of sandboxes, each with its cure (`rl doctor`).
//!
//! Nothing is concluded from version numbers: a machine is made, up to the last step before its
//! first program, on the file systems that real ones would use.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::chown;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ulid::Ulid;

use super::cgroups::Cgroups;
use super::launcher::{self, BootOrder, Failure, LaunchError, LauncherHandle, Network, Privileges, Program};
use super::own_directory;
use super::record::BootRecord;
use super::sockets;
use super::{SandboxOptions, ranges};
use crate::clock;

/// How one check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Good,
    /// Machines can be made, with less.
    Limited,
    /// No machine can be made.
    Missing,
}

/// One thing that sandboxes need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub state: State,
    /// What was found, one sentence.
    pub message: String,
    /// What to do about it; none when it is good.
    pub cure: Option<String>,
}

/// What keeps machines from being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    pub message: String,
    pub cure: String,
}

/// Where a daemon with the default settings keeps its data.
const DEFAULT_DATA_DIR: &str = "/var/lib/ringleader";

/// Tries everything, for real, where a daemon with the default settings would.
#[must_use]
pub fn checks() -> Vec<Check> {
    let data_dir = Path::new(DEFAULT_DATA_DIR);
    let base = if data_dir.is_dir() { data_dir } else { Path::new("/var/tmp") };
    vec![root(), machines(base), limits(), host_image(), disk()]
}

fn root() -> Check {
    let name = "root";
    if rustix::process::geteuid().is_root() {
        return good(name, "this runs as root".into());
    }
    Check {
        name,
        state: State::Missing,
        message: "this does not run as root".into(),
        cure: Some(AS_ROOT.into()),
    }
}

const AS_ROOT: &str = "run it as root: sudo rl …";

fn machines(base: &Path) -> Check {
    let name = "machines";
    let scratch = base.join(format!(".rl-doctor-{:016x}", clock::entropy()));
    let tried = launcher::spawn().map_err(|error| unreachable_launcher(&error)).and_then(|launcher| {
        let options = SandboxOptions::new(Ulid::from(clock::entropy()), scratch.clone());
        let tried = try_machine(&launcher, &options);
        drop(fs::remove_dir_all(&scratch));
        tried
    });
    match tried {
        Ok(()) => good(name, "a machine with namespaces, an idmapped image and an overlay was made".into()),
        Err(Obstacle { message, cure }) => Check { name, state: State::Missing, message, cure: Some(cure) },
    }
}

fn limits() -> Check {
    let name = "limits";
    let found = Cgroups::discover(Ulid::nil(), None).map(|cgroups| cgroups.controllers()).unwrap_or_default();
    let missing: Vec<_> =
        ["memory", "cpu", "pids"].into_iter().filter(|controller| !found.contains(controller)).collect();
    if missing.is_empty() {
        return good(name, "memory, cpu and pids can be limited".into());
    }
    Check {
        name,
        state: State::Limited,
        message: format!("there is no cgroup controller for {}", missing.join(", ")),
        cure: Some(
            "boot with cgroups (systemd.unified_cgroup_hierarchy=1, cgroup_enable=memory), or set no such limits"
                .into(),
        ),
    }
}

fn host_image() -> Check {
    let name = "host image";
    if Path::new("/var/lib/dpkg/status").exists() {
        return good(name, "packages of this host serve as an image".into());
    }
    Check {
        name,
        state: State::Limited,
        message: "this host has no dpkg, so it cannot serve as an image itself".into(),
        cure: Some(
            "name a root file system in daemon.toml: [images.named] debian13 = \"/path\", and images.default"
                .into(),
        ),
    }
}

fn disk() -> Check {
    const WANTED_BYTES: u64 = 4 << 30;
    let name = "disk";
    let place = ["/var/lib/ringleader", "/var/lib"]
        .into_iter()
        .find(|place| fs::metadata(place).is_ok())
        .unwrap_or("/");
    match rustix::fs::statvfs(place) {
        Ok(room) if room.f_bavail * room.f_frsize >= WANTED_BYTES => {
            good(name, format!("{} GiB are free below {place}", (room.f_bavail * room.f_frsize) >> 30))
        }
        Ok(room) => Check {
            name,
            state: State::Limited,
            message: format!("only {} MiB are free below {place}", (room.f_bavail * room.f_frsize) >> 20),
            cure: Some("free some space, or set data_dir to a larger disk".into()),
        },
        Err(error) => Check { name, state: State::Limited, message: format!("{place}: {error}"), cure: None },
    }
}

fn good(name: &'static str, message: String) -> Check {
    Check { name, state: State::Good, message, cure: None }
}

/// Makes a machine on the file systems of `options`, up to the last step before its first program.
///
/// # Errors
/// What stands in the way.
pub fn try_machine(launcher: &LauncherHandle, options: &SandboxOptions) -> Result<(), Obstacle> {
    if !rustix::process::geteuid().is_root() {
        return Err(Obstacle { message: "sandboxes are made by root".into(), cure: AS_ROOT.into() });
    }
    let name = format!(".trial-{:032x}", clock::entropy());
    let trial = Trial { lower: options.images_dir.join(&name), machine: options.data_dir.join(&name) };
    let tried = trial.run(launcher, options);
    drop(fs::remove_dir_all(&trial.machine));
    drop(fs::remove_dir_all(&trial.lower));
    tried
}

/// The directories of a machine that is only tried.
struct Trial {
    lower: PathBuf,
    machine: PathBuf,
}

impl Trial {
    fn run(&self, launcher: &LauncherHandle, options: &SandboxOptions) -> Result<(), Obstacle> {
        let first_id = options.id_base.max(ranges::IDS_PER_MACHINE);
        let prepared = self.prepare(first_id).map_err(|error| Obstacle {
            message: format!("cannot write below {}: {error}", options.data_dir.display()),
            cure: "make room there, or set data_dir to another place in daemon.toml".into(),
        })?;
        let order = BootOrder {
            machine_dir: self.machine.clone(),
            lower: self.lower.clone(),
            image: String::new(),
            first_id,
            hostname: "trial".into(),
            network: Network::None,
            privileges: Privileges::NoNew,
            groups: Vec::new(),
            record: BootRecord {
                boot_id: Ulid::nil(),
                started_at: clock::now(),
                groups: Vec::new(),
                init: None,
            },
            program: Program::Trial,
        };
        let (control, ssh, lock) = &prepared;
        let descriptors = [control.as_fd(), ssh.as_fd(), lock.as_fd()];
        match launcher.boot(order, &descriptors, Duration::from_secs(10)) {
            Ok(_) => Ok(()),
            Err(LaunchError::Machine(failure)) => Err(self.explain(&failure)),
            Err(error) => Err(unreachable_launcher(&error)),
        }
    }

    fn prepare(&self, first_id: u32) -> io::Result<(UnixListener, UnixListener, File)> {
        own_directory(&self.lower)?;
        for part in ["upper", "work", "link"] {
            own_directory(&self.machine.join(part))?;
        }
        chown(self.machine.join("upper"), Some(first_id), Some(first_id))?;
        let (control, ssh) = sockets::bind(&self.machine.join("link"))?;
        Ok((control, ssh, File::create(self.machine.join("lock"))?))
    }

    /// The cure of each step that fails on hosts one meets.
    fn explain(&self, failure: &Failure) -> Obstacle {
        let cure = match failure.step.as_str() {
            "make namespaces" | "map the machine's users" | "map the machine's groups" => {
                "allow user namespaces: sysctl -w user.max_user_namespaces=65536, and in a container run it privileged".into()
            }
            "leave the host's mount table" => "give it CAP_SYS_ADMIN: in a container, run it privileged".into(),
            "open the image generation" | "map the ids of the image generation" => format!(
                "idmapped mounts need Linux 5.19 or newer, and {} on ext4, xfs, btrfs or another file system that has them: set images.directory in daemon.toml",
                self.lower.parent().unwrap_or(&self.lower).display()
            ),
            "open overlayfs" => "load overlayfs: modprobe overlay".into(),
            "set up overlayfs" | "make the overlay" => format!(
                "overlayfs does not work on top of {}: set data_dir in daemon.toml to a directory on ext4, xfs or btrfs (in a container, a volume)",
                self.machine.parent().unwrap_or(&self.machine).display()
            ),
            "mount /proc" | "mount /sys" => {
                "the host hides parts of /proc or /sys, as containers do: run it privileged, or with unmasked /proc".into()
            }
            _ => "the message is the kernel's; dmesg may say more".into(),
        };
        Obstacle { message: failure.to_string(), cure }
    }
}

fn unreachable_launcher(error: &dyn std::fmt::Display) -> Obstacle {
    Obstacle { message: error.to_string(), cure: "see the log for why the launcher ended".into() }
}

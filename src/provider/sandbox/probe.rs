//! Whether this host can make machines at all: found out by making one.

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use ulid::Ulid;

use super::launcher::{BootOrder, LaunchError, LauncherHandle, Network, Privileges, Program};
use super::record::BootRecord;
use crate::clock;

/// Ids of the trial's users; it lives for a few milliseconds.
const TRIAL_FIRST_ID: u32 = 0x7fff_0000;
const LIMIT: Duration = Duration::from_secs(20);

/// What stands in the way, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {cure}")]
pub struct Obstacle {
    pub what: String,
    pub cure: String,
}

/// Makes a machine of nothing, up to the point where it would run its first program.
///
/// # Errors
/// The first thing that stands in the way.
pub fn try_a_machine(launcher: &LauncherHandle, data_dir: &Path) -> Result<(), Obstacle> {
    if !rustix::process::geteuid().is_root() {
        return Err(obstacle("making machines needs root", "run the daemon as root: sudo rl daemon run"));
    }
    let dir = data_dir.join(format!("trial-{}", std::process::id()));
    let outcome = try_in(launcher, &dir);
    // What cannot be removed here is inside the data directory and harmless.
    let _ = fs::remove_dir_all(&dir);
    outcome
}

fn try_in(launcher: &LauncherHandle, dir: &Path) -> Result<(), Obstacle> {
    let cannot = |error: std::io::Error| {
        obstacle(
            &format!("{} cannot be written: {error}", dir.display()),
            "give the daemon a data directory it can write",
        )
    };
    for name in ["lower", "upper", "work"] {
        fs::create_dir_all(dir.join(name)).map_err(cannot)?;
    }
    std::os::unix::fs::chown(dir.join("upper"), Some(TRIAL_FIRST_ID), Some(TRIAL_FIRST_ID))
        .map_err(cannot)?;
    let listener = fs::File::open(dir)
        .and_then(|dir| UnixListener::bind(format!("/proc/self/fd/{}/s", dir.as_raw_fd())));
    let listener = listener.map_err(cannot)?;
    let lock = fs::File::create(dir.join("lock")).map_err(cannot)?;
    let tick = clock::tick();
    let order = BootOrder {
        machine_dir: dir.to_owned(),
        lower: dir.join("lower"),
        first_id: TRIAL_FIRST_ID,
        hostname: "trial".into(),
        image: String::new(),
        network: Network::None,
        privileges: Privileges::MayGain,
        groups: Vec::new(),
        record: BootRecord {
            boot_id: Ulid::from_parts(0, tick.entropy),
            started_at: tick.wall,
            groups: Vec::new(),
            init: None,
        },
        program: Program::Trial,
    };
    match launcher.boot(order, &[listener.as_fd(), listener.as_fd(), lock.as_fd()], LIMIT) {
        Ok(_) => Ok(()),
        Err(LaunchError::Machine(failure)) => Err(obstacle(&failure.to_string(), cure(&failure.step))),
        Err(error) => {
            Err(obstacle(&error.to_string(), "look into the daemon's log for what the launcher said"))
        }
    }
}

/// What usually mends a step that failed.
fn cure(step: &str) -> &'static str {
    if step.contains("namespaces") {
        "allow user namespaces: sysctl -w user.max_user_namespaces=15000 (in a container: run it privileged)"
    } else if step.contains("map the ids") {
        "the kernel needs idmapped mounts (5.12 or newer) on the file system of the images"
    } else if step.contains("overlay") {
        "load overlayfs (modprobe overlay), and keep the data directory on a file system that can be its upper layer, such as ext4, xfs or btrfs"
    } else if step.contains("/proc") || step.contains("/sys") {
        "in a container, run it with an unmasked /proc and /sys (privileged)"
    } else {
        "run `rl doctor` for what else this machine lacks"
    }
}

fn obstacle(what: &str, cure: &str) -> Obstacle {
    Obstacle { what: what.into(), cure: cure.into() }
}

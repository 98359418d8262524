//! What of this machine stands in the way of sandboxes, each with its cure (`rl doctor`).

use std::fs;
use std::path::Path;

use ulid::Ulid;

use super::cgroups::Cgroups;
use super::{launcher, probe};

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

/// Probes everything, for real.
#[must_use]
pub fn checks() -> Vec<Check> {
    vec![machines(), limits(), host_image(), disk()]
}

fn machines() -> Check {
    let name = "machines";
    let scratch = std::env::temp_dir();
    let tried = match launcher::spawn() {
        Ok(launcher) => probe::try_a_machine(&launcher, &scratch),
        Err(error) => {
            let cure = "look whether /proc is mounted".to_owned();
            return Check {
                name,
                state: State::Missing,
                message: format!("the launcher does not start: {error}"),
                cure: Some(cure),
            };
        }
    };
    match tried {
        Ok(()) => good(
            name,
            "one was made and ended (user, mount, pid, network namespaces; idmapped overlay)".into(),
        ),
        Err(obstacle) => {
            Check { name, state: State::Missing, message: obstacle.what, cure: Some(obstacle.cure) }
        }
    }
}

fn limits() -> Check {
    let name = "limits";
    let found = Cgroups::discover(Ulid::nil(), None).map(|cgroups| cgroups.controllers());
    match found {
        Ok(controllers) if controllers.len() == 3 => {
            good(name, "memory, cpus and pids can be limited".into())
        }
        Ok(controllers) => Check {
            name,
            state: State::Limited,
            message: format!(
                "cgroups keep only: {}",
                if controllers.is_empty() { "nothing".into() } else { controllers.join(", ") }
            ),
            cure: Some(
                "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1), or mount the missing controllers"
                    .into(),
            ),
        },
        Err(error) => Check {
            name,
            state: State::Limited,
            message: format!("cgroups cannot be read: {error}"),
            cure: Some("mount /proc and /sys/fs/cgroup".into()),
        },
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

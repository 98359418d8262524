//! One boot, from outside: what the worker does as root of the host.
//!
//! The order of the steps is what makes a kill at any point harmless. The machine's process waits
//! for "go" and ends by itself when the worker dies before it; the record naming that process is
//! written before "go". So whatever runs is recorded, and whatever is recorded can be found.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, pidfd_send_signal, waitpid};

use super::channel;
use super::inside::{self, Word};
use super::root;
use super::wire::{At, BootOrder, Booted, Failure, Group, Network};
use crate::provider::sandbox::cgroups;
use crate::provider::sandbox::process::ProcessIdentity;
use crate::provider::sandbox::ranges::IDS_PER_MACHINE;
use crate::provider::sandbox::record::{self, BootRecord, Durability};
use crate::sys::namespaces::{
    Access, Cloned, Namespaces, clone_into, clone_mount, enter_mount_namespace, set_access,
};

/// What came with the order, and the program to run.
pub struct Descriptors<'a> {
    pub program: &'a File,
    pub control: OwnedFd,
    pub ssh: OwnedFd,
    /// Held until this worker ends.
    #[expect(dead_code, reason = "it is there to be open")]
    pub lock: OwnedFd,
}

/// Boots a machine and returns when it executes `rl init`. On failure nothing is left of it.
///
/// # Errors
/// The step that failed, outside or inside.
pub fn boot(order: &BootOrder, descriptors: &Descriptors<'_>) -> Result<Booted, Failure> {
    let mut clock = Phases::start();
    let booted = cgroups::make(&order.groups).at("make the machine's cgroups").and_then(|()| {
        clock.mark("cgroups");
        launch(order, descriptors, &mut clock)
    });
    match booted {
        Ok(record) => Ok(Booted { record, phases: clock.phases }),
        Err(failure) => {
            drop(fs::remove_file(order.machine_dir.join(record::BOOT_FILE)));
            cgroups::remove(&order.record.groups);
            Err(failure)
        }
    }
}

fn launch(
    order: &BootOrder,
    descriptors: &Descriptors<'_>,
    clock: &mut Phases,
) -> Result<BootRecord, Failure> {
    enter_mount_namespace().at("leave the host's mount table")?;
    let (ours, theirs) = channel::pair().at("make a socket pair")?;
    clock.mark("mount table");
    let namespaces = match order.network {
        Network::None => Namespaces::OwnNetwork,
        Network::Host => Namespaces::SharedNetwork,
    };
    let (child, pidfd) = match clone_into(namespaces).at("make namespaces")? {
        Cloned::Child => {
            drop(ours);
            // Ends this process one way or the other; never returns into the worker's code.
            inside::run(order, descriptors, &theirs);
        }
        Cloned::Parent { child, pidfd } => (child, pidfd),
    };
    drop(theirs);
    clock.mark("namespaces");
    let result = raise(order, child, &ours, clock);
    if result.is_err() {
        if let Some(pidfd) = pidfd {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
        let _ = waitpid(Some(child), WaitOptions::empty());
    }
    result
}

/// Gives the waiting process its identity, its limits and its root, and lets it go.
fn raise(
    order: &BootOrder,
    child: Pid,
    channel: &OwnedFd,
    clock: &mut Phases,
) -> Result<BootRecord, Failure> {
    let proc = format!("/proc/{}", child.as_raw_pid());
    let map = format!("0 {} {IDS_PER_MACHINE}\n", order.first_id);
    fs::write(format!("{proc}/uid_map"), &map).at("map the machine's users")?;
    fs::write(format!("{proc}/gid_map"), &map).at("map the machine's groups")?;
    enter_groups(&order.groups, child)?;
    let user_namespace = File::open(format!("{proc}/ns/user")).at("open the machine's user namespace")?;
    clock.mark("identity");

    let overlay = root::overlay(&order.lower, &order.machine_dir, &user_namespace)?;
    let sys = host_sys(order.network)?;
    clock.mark("overlay");

    let init = ProcessIdentity::of(child).at("identify the machine's first process")?;
    let record = BootRecord { init: Some(init), ..order.record.clone() };
    record::write(&order.machine_dir.join(record::BOOT_FILE), &record, Durability::Process)
        .at("record the boot")?;
    clock.mark("record");

    let mounts: Vec<_> =
        [Some(overlay.as_fd()), sys.as_ref().map(AsFd::as_fd)].into_iter().flatten().collect();
    channel::send(channel, &Word::Go, &mounts).at("start the machine")?;
    drop(overlay);
    await_exec(channel)?;
    clock.mark("inside");
    Ok(record)
}

fn enter_groups(groups: &[Group], child: Pid) -> Result<(), Failure> {
    cgroups::enter(groups, child.as_raw_pid()).at("put the machine into its cgroups")
}

/// A machine on the host's network cannot have a `/sys` of its own: it gets the host's to read.
fn host_sys(network: Network) -> Result<Option<OwnedFd>, Failure> {
    match network {
        Network::None => Ok(None),
        Network::Host => {
            let sys = clone_mount(Path::new("/sys")).at("open the host's /sys")?;
            set_access(&sys, Access::ReadOnly).at("make the host's /sys read-only")?;
            Ok(Some(sys))
        }
    }
}

/// The machine closes its end by executing; before that it says so, or what went wrong.
fn await_exec(channel: &OwnedFd) -> Result<(), Failure> {
    let mut executing = false;
    loop {
        match channel::receive::<Word>(channel).at("hear from the machine")? {
            Some((Word::Executing, _)) => executing = true,
            Some((Word::Failed(failure), _)) => return Err(failure),
            Some((Word::Go, _)) => {
                return Err(io::Error::other("it spoke out of turn")).at("hear from the machine");
            }
            None if executing => return Ok(()),
            None => return Err(io::Error::other("it ended early")).at("hear from the machine"),
        }
    }
}

/// A stopwatch that is read at named points.
struct Phases {
    last: Instant,
    phases: Vec<(String, Duration)>,
}

impl Phases {
    fn start() -> Self {
        Self { last: Instant::now(), phases: Vec::new() }
    }

    fn mark(&mut self, name: &str) {
        let now = Instant::now();
        self.phases.push((name.into(), now - self.last));
        self.last = now;
    }
}

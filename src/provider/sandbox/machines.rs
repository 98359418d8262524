//! The machines of one store, on disk and running. Blocking: the provider calls it off the runtime.
//!
//! Every call takes the machine's lock first, so that two daemons, or a daemon and what an earlier
//! one had begun, never work on one machine at once. Every call may be repeated: it brings the
//! machine to the asked state and finds it there the next time.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Signal, pidfd_send_signal};
use ulid::Ulid;

use super::cgroups::{self, Cgroups};
use super::image::{Generation, Images};
use super::launcher::{BootOrder, LaunchError, LauncherHandle, Privileges, Program};
use super::limits;
use super::options::SandboxOptions;
use super::process::{self, ProcessIdentity};
use super::ranges::Ranges;
use super::record::{self, BOOT_FILE, BootRecord, Durability, MACHINE_FILE, MachineRecord};
use crate::clock;
use crate::machine::MachineSpec;
use crate::provider::{Door, Inspection, ProviderError};

/// How long the launcher may take for one machine.
const BOOT_LIMIT: Duration = Duration::from_secs(30);
/// How long the kernel may take to end what was killed.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// Beyond the grace that init gives the others, it may take so long itself.
const INIT_MARGIN: Duration = Duration::from_secs(2);

/// All machines of one store.
#[derive(Debug)]
pub struct Machines {
    options: SandboxOptions,
    launcher: LauncherHandle,
    cgroups: Cgroups,
    ranges: Ranges,
    images: Images,
}

/// One machine whose lock is held.
struct Locked {
    dir: PathBuf,
    lock: File,
}

impl Machines {
    /// Finds the machines there are, and goes on with removals that were interrupted.
    ///
    /// # Errors
    /// When the directories cannot be made or read.
    pub fn open(options: SandboxOptions, launcher: LauncherHandle, images: Images) -> io::Result<Self> {
        for name in ["machines", "trash"] {
            private_directory(&options.data_dir.join(name))?;
        }
        let cgroups = Cgroups::discover(options.instance, options.cgroup_parent.as_deref())?;
        let ranges = Ranges::new(options.id_base, options.instance);
        let machines = Self { options, launcher, cgroups, ranges, images };
        for id in machines.list()? {
            if let Ok(Some(found)) = record::read::<MachineRecord>(&machines.directory(id).join(MACHINE_FILE))
            {
                machines.ranges.occupy(found.first_id);
            }
        }
        machines.empty_trash();
        Ok(machines)
    }

    /// The images machines are made from.
    pub const fn images(&self) -> &Images {
        &self.images
    }

    /// Makes the machine and boots it.
    pub fn create(&self, id: Ulid, spec: &MachineSpec) -> Result<(), ProviderError> {
        let locked = self.lock_new(id).map_err(|error| broken("make the machine's directory", &error))?;
        if record::read::<MachineRecord>(&locked.dir.join(MACHINE_FILE)).is_ok_and(|found| found.is_some()) {
            return self.boot_unless_running(id, &locked);
        }
        let settings = limits::read(&spec.provider_config, "spec.providerConfig").map_err(|errors| {
            ProviderError::Refused(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        })?;
        let name = self
            .images
            .resolve(spec.image.as_ref())
            .map_err(|error| ProviderError::Refused(error.to_string()))?;
        // No fault of the template: the host's disk, or the image's source.
        let image =
            self.images.generation(&name).map_err(|error| ProviderError::Unavailable(error.to_string()))?;
        let first_id = self.ranges.take().ok_or_else(|| {
            ProviderError::NoRoom(
                "every range of user ids is taken: delete machines, or lower sandbox.first_id".into(),
            )
        })?;
        let machine = MachineRecord {
            version: record::VERSION,
            instance: self.options.instance,
            id,
            hostname: spec.name.clone(),
            first_id,
            image: image.id.clone(),
            network: settings.network,
            privileges: if spec.sudo { Privileges::MayGain } else { Privileges::NoNew },
            limits: settings.limits,
        };
        lay_out(&locked.dir, &machine).map_err(|error| broken("lay out the machine", &error))?;
        self.boot(&locked, &machine, &image)
    }

    /// Boots a stopped machine from its disk.
    pub fn start(&self, id: Ulid) -> Result<(), ProviderError> {
        let locked = self.lock(id)?;
        self.boot_unless_running(id, &locked)
    }

    /// Ends what runs, in an orderly way first; the disk stays.
    pub fn stop(&self, id: Ulid) -> Result<(), ProviderError> {
        let Some(locked) = self.lock_existing(id).map_err(|error| broken("lock the machine", &error))? else {
            return Ok(());
        };
        self.end(&locked, self.options.stop_grace + INIT_MARGIN)
            .map_err(|error| broken("stop the machine", &error))
    }

    /// Removes the machine and all it used.
    pub fn delete(&self, id: Ulid) -> Result<(), ProviderError> {
        let Some(locked) = self.lock_existing(id).map_err(|error| broken("lock the machine", &error))? else {
            return Ok(());
        };
        self.end(&locked, Duration::ZERO).map_err(|error| broken("end the machine", &error))?;
        let machine = record::read::<MachineRecord>(&locked.dir.join(MACHINE_FILE)).ok().flatten();
        let trash = self.options.data_dir.join("trash").join(format!("{id}-{}", clock::monotonic_ms()));
        fs::rename(&locked.dir, &trash)
            .map_err(|error| broken("set the machine aside for removal", &error))?;
        if let Some(machine) = machine {
            self.ranges.release(machine.first_id);
        }
        remove_in_background(trash);
        Ok(())
    }

    /// What the machine is doing now.
    pub fn inspect(&self, id: Ulid) -> Result<Inspection, ProviderError> {
        let dir = self.directory(id);
        if !dir.exists() {
            return Ok(Inspection::Absent);
        }
        let machine = match record::read::<MachineRecord>(&dir.join(MACHINE_FILE)) {
            Ok(Some(machine)) if machine.version == record::VERSION => machine,
            Ok(Some(machine)) => {
                return Ok(broken_machine(format!("its record has the unknown format {}", machine.version)));
            }
            Ok(None) => return Ok(broken_machine("it was not made to the end".into())),
            Err(error) => return Ok(broken_machine(format!("its record cannot be read: {error}"))),
        };
        if !dir.join("upper").is_dir() || !dir.join("work").is_dir() {
            return Ok(broken_machine("its disk was not made to the end".into()));
        }
        let boot = record::read::<BootRecord>(&dir.join(BOOT_FILE))
            .map_err(|error| broken("read the boot record", &error))?;
        match boot {
            None => Ok(Inspection::Stopped { image: machine.image }),
            Some(BootRecord { boot_id, started_at, init: Some(init), .. })
                if is_alive(&init)
                    .map_err(|error| broken("look for the machine's first process", &error))? =>
            {
                Ok(Inspection::Running { boot_id, started_at, image: machine.image })
            }
            Some(_) => self.clear_up(id, machine.image),
        }
    }

    /// The machine's first process, while it runs.
    pub fn first_process(&self, id: Ulid) -> io::Result<Option<std::os::fd::OwnedFd>> {
        let boot = record::read::<BootRecord>(&self.directory(id).join(BOOT_FILE))?;
        boot.and_then(|boot| boot.init).map_or(Ok(None), |init| init.open())
    }

    /// A stream to one of the agent's listeners.
    pub fn link(&self, id: Ulid, door: Door) -> io::Result<UnixStream> {
        let link = File::open(self.directory(id).join("link"))?;
        UnixStream::connect(by_descriptor(&link, socket_name(door)))
    }

    /// Every machine in this store's directory.
    pub fn list(&self) -> io::Result<Vec<Ulid>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.options.data_dir.join("machines"))? {
            let name = entry?.file_name();
            let Some(id) = name.to_str().and_then(|name| Ulid::from_string(name).ok()) else { continue };
            let machine = record::read::<MachineRecord>(&self.directory(id).join(MACHINE_FILE));
            // One whose record is missing or unreadable was left by this store: it stands in its directory.
            if !matches!(machine, Ok(Some(machine)) if machine.instance != self.options.instance) {
                found.push(id);
            }
        }
        Ok(found)
    }

    /// A boot record whose process has ended: its groups go, and the machine counts as stopped.
    fn clear_up(&self, id: Ulid, image: String) -> Result<Inspection, ProviderError> {
        // A worker of the launcher may still be at it; its lock says so.
        if let Some(locked) = self.lock_existing(id).map_err(|error| broken("lock the machine", &error))? {
            self.end(&locked, Duration::ZERO)
                .map_err(|error| broken("clear up after the machine", &error))?;
        }
        Ok(Inspection::Stopped { image })
    }

    fn boot_unless_running(&self, id: Ulid, locked: &Locked) -> Result<(), ProviderError> {
        if self
            .first_process(id)
            .map_err(|error| broken("look for the machine's first process", &error))?
            .is_some()
        {
            return Ok(());
        }
        self.end(locked, Duration::ZERO).map_err(|error| broken("clear up after the last boot", &error))?;
        let machine = record::read::<MachineRecord>(&locked.dir.join(MACHINE_FILE))
            .map_err(|error| broken("read the machine's record", &error))?
            .ok_or_else(|| ProviderError::Failed("the machine was not made to the end".into()))?;
        let image = self.images.by_id(&machine.image).ok_or_else(|| {
            ProviderError::Failed(format!("its image generation {} is not there any more", machine.image))
        })?;
        self.boot(locked, &machine, &image)
    }

    fn boot(
        &self,
        locked: &Locked,
        machine: &MachineRecord,
        image: &Generation,
    ) -> Result<(), ProviderError> {
        let tick = clock::tick();
        let groups = self.cgroups.plan(machine.id, &machine.limits);
        let boot = BootRecord {
            boot_id: Ulid::from_parts(u64::try_from(tick.wall.millis()).unwrap_or(0), tick.entropy),
            started_at: tick.wall,
            groups: groups.iter().map(|group| group.directory.clone()).collect(),
            init: None,
        };
        // Before the groups are made: whoever finds this without a process removes them.
        record::write(&locked.dir.join(BOOT_FILE), &boot, Durability::Process)
            .map_err(|error| broken("record the boot", &error))?;
        let control =
            listen(&locked.dir, Door::Control).map_err(|error| broken("bind the control socket", &error))?;
        let ssh = listen(&locked.dir, Door::Ssh).map_err(|error| broken("bind the SSH socket", &error))?;
        let order = BootOrder {
            machine_dir: locked.dir.clone(),
            lower: image.root.clone(),
            first_id: machine.first_id,
            hostname: machine.hostname.clone(),
            image: machine.image.clone(),
            network: machine.network,
            privileges: machine.privileges,
            groups,
            record: boot,
            program: Program::Init { grace: self.options.stop_grace },
        };
        let descriptors = [control.as_fd(), ssh.as_fd(), locked.lock.as_fd()];
        let booted = self.launcher.boot(order, &descriptors, BOOT_LIMIT).map_err(|error| match error {
            LaunchError::Machine(failure) => ProviderError::Failed(failure.to_string()),
            LaunchError::Gone | LaunchError::Late(_) | LaunchError::Unreachable(_) => {
                ProviderError::Unavailable(error.to_string())
            }
        })?;
        tracing::debug!(machine = %machine.id, phases = ?booted.phases, "booted");
        Ok(())
    }

    /// Ends everything of the last boot. With no grace it is killed at once.
    fn end(&self, locked: &Locked, grace: Duration) -> io::Result<()> {
        let Some(boot) = record::read::<BootRecord>(&locked.dir.join(BOOT_FILE))? else { return Ok(()) };
        let first = boot.init.as_ref().map_or(Ok(None), ProcessIdentity::open)?;
        if let Some(first) = first {
            let asked = !grace.is_zero() && pidfd_send_signal(&first, Signal::TERM).is_ok();
            if !(asked && process::wait_for_end(&first, &timespec(grace))?) {
                cgroups::kill(&boot.groups);
                // Where the kernel cannot kill a group, the end of the first process ends the rest.
                let _ = pidfd_send_signal(&first, Signal::KILL);
                if !process::wait_for_end(&first, &timespec(KILL_LIMIT))? {
                    return Err(io::Error::other("its first process does not end"));
                }
            }
        }
        cgroups::kill(&boot.groups);
        for stays in cgroups::remove(&boot.groups) {
            tracing::warn!(group = %stays.display(), "a control group stays");
        }
        for door in [Door::Control, Door::Ssh] {
            gone(fs::remove_file(locked.dir.join("link").join(socket_name(door))))?;
        }
        gone(fs::remove_file(locked.dir.join(BOOT_FILE)))
    }

    fn directory(&self, id: Ulid) -> PathBuf {
        self.options.data_dir.join("machines").join(id.to_string())
    }

    fn lock(&self, id: Ulid) -> Result<Locked, ProviderError> {
        let locked = self.lock_existing(id).map_err(|error| broken("lock the machine", &error))?;
        locked.ok_or_else(|| ProviderError::Failed("the machine does not exist".into()))
    }

    fn lock_new(&self, id: Ulid) -> io::Result<Locked> {
        let dir = self.directory(id);
        private_directory(&dir)?;
        take_lock(dir)
    }

    fn lock_existing(&self, id: Ulid) -> io::Result<Option<Locked>> {
        let dir = self.directory(id);
        match take_lock(dir.clone()) {
            // Whoever had the lock before may have removed the machine.
            Ok(locked) => Ok(dir.exists().then_some(locked)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn empty_trash(&self) {
        let Ok(entries) = fs::read_dir(self.options.data_dir.join("trash")) else { return };
        entries.flatten().for_each(|entry| remove_in_background(entry.path()));
    }
}

fn take_lock(dir: PathBuf) -> io::Result<Locked> {
    let lock = File::options().create(true).truncate(false).write(true).mode(0o600).open(dir.join("lock"))?;
    rustix::io::retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive))?;
    Ok(Locked { dir, lock })
}

/// The record first, durably; then what it speaks of.
fn lay_out(dir: &Path, machine: &MachineRecord) -> io::Result<()> {
    record::write(&dir.join(MACHINE_FILE), machine, Durability::Power)?;
    for name in ["upper", "work", "link"] {
        private_directory(&dir.join(name))?;
    }
    // The upper layer's own attributes are those of the machine's root directory.
    let upper = dir.join("upper");
    fs::set_permissions(&upper, Permissions::from_mode(0o755))?;
    chown(&upper, Some(machine.first_id), Some(machine.first_id))
}

fn listen(dir: &Path, door: Door) -> io::Result<UnixListener> {
    let link = File::open(dir.join("link"))?;
    gone(fs::remove_file(dir.join("link").join(socket_name(door))))?;
    UnixListener::bind(by_descriptor(&link, socket_name(door)))
}

const fn socket_name(door: Door) -> &'static str {
    match door {
        Door::Control => "control.sock",
        Door::Ssh => "ssh.sock",
    }
}

/// A path that fits into a socket address wherever the data directory is.
fn by_descriptor(directory: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}

fn private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A machine's disk can be large: nobody waits for it to be removed.
fn remove_in_background(path: PathBuf) {
    let remove = move || {
        if let Err(error) = gone(fs::remove_dir_all(&path)) {
            tracing::warn!(path = %path.display(), %error, "a removed machine's files stay until the next start");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("trash".into()).spawn(remove) {
        tracing::warn!(%error, "a removed machine's files stay until the next start");
    }
}

fn is_alive(first: &ProcessIdentity) -> io::Result<bool> {
    Ok(first.open()?.is_some())
}

/// What is not there need not be removed.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}

fn broken(step: &str, error: &io::Error) -> ProviderError {
    match error.kind() {
        io::ErrorKind::StorageFull => ProviderError::NoRoom(format!("cannot {step}: the disk is full")),
        _ => ProviderError::Failed(format!("cannot {step}: {error}")),
    }
}

const fn broken_machine(why: String) -> Inspection {
    Inspection::Broken { why }
}

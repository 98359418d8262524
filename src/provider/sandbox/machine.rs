//! One machine's directory: where things are, who may change it, and how it stands.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use ulid::Ulid;

use super::record::{self, BOOT_FILE, BootRecord, MACHINE_FILE, MachineRecord};

/// The directory of one machine, which may not exist.
#[derive(Clone, Debug)]
pub struct Machine {
    pub id: Ulid,
    pub directory: PathBuf,
}

/// The right to change a machine. Held across daemons: a launcher's worker that outlives its
/// daemon keeps it until it is done.
#[derive(Debug)]
pub struct MachineLock {
    pub file: File,
}

/// How a machine stands.
#[derive(Debug)]
pub enum State {
    Absent,
    /// The record or the disk is missing or unreadable.
    Broken(String),
    Stopped(MachineRecord),
    Running {
        record: MachineRecord,
        boot: BootRecord,
        init: OwnedFd,
    },
}

/// No boot or stop takes longer than this, so whoever holds a lock longer is stuck.
const LOCK_LIMIT: Duration = Duration::from_mins(1);

impl Machine {
    pub fn new(machines_dir: &Path, id: Ulid) -> Self {
        Self { id, directory: machines_dir.join(id.to_string()) }
    }

    /// The directory with the two sockets.
    pub fn link_dir(&self) -> PathBuf {
        self.directory.join("link")
    }

    pub fn boot_file(&self) -> PathBuf {
        self.directory.join(BOOT_FILE)
    }

    /// Waits for the right to change the machine; none if it does not exist (any more).
    ///
    /// # Errors
    /// When somebody keeps it too long.
    pub fn lock(&self) -> io::Result<Option<MachineLock>> {
        let path = self.directory.join("lock");
        let deadline = Instant::now() + LOCK_LIMIT;
        loop {
            let file = match File::options().create(true).append(true).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // The machine may have been deleted between the open and the lock.
                Ok(()) if same_file(&file, &path) => return Ok(Some(MachineLock { file })),
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Looks at what is recorded and what runs.
    ///
    /// # Errors
    /// When the file system or `/proc` does not answer.
    pub fn state(&self) -> io::Result<State> {
        if !self.directory.try_exists()? {
            return Ok(State::Absent);
        }
        let record = match self.record() {
            Ok(record) => record,
            Err(why) => return Ok(State::Broken(why)),
        };
        for part in ["upper", "work", "link"] {
            if !self.directory.join(part).try_exists()? {
                return Ok(State::Broken(format!("its directory {part} is missing")));
            }
        }
        let boot: Option<BootRecord> = match record::read(&self.boot_file()) {
            Ok(boot) => boot,
            Err(error) => return Ok(State::Broken(format!("its boot record cannot be read: {error}"))),
        };
        let Some(boot) = boot else { return Ok(State::Stopped(record)) };
        let init = boot.init.as_ref().map_or(Ok(None), super::process::ProcessIdentity::open)?;
        Ok(match init {
            Some(init) => State::Running { record, boot, init },
            None => State::Stopped(record),
        })
    }

    /// The record, or what is wrong with it.
    pub fn record(&self) -> Result<MachineRecord, String> {
        let record: Option<MachineRecord> = record::read(&self.directory.join(MACHINE_FILE))
            .map_err(|error| format!("its record cannot be read: {error}"))?;
        let record = record.ok_or("its record is missing")?;
        if record.version != record::VERSION {
            return Err(format!("its record has the unknown format {}", record.version));
        }
        if record.id != self.id {
            return Err(format!("its record is the one of {}", record.id));
        }
        Ok(record)
    }
}

fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(open), Ok(named)) = (file.metadata(), fs::metadata(path)) else { return false };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

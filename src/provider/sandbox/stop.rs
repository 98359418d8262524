//! Ending what runs, and removing machines.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use ulid::Ulid;

use super::cgroups;
use super::machine::{Machine, State};
use super::process::wait_for_end;
use super::record::{self, BootRecord};
use super::workshop::{Workshop, failed};
use crate::provider::ProviderError;

/// A killed machine ends in milliseconds; one that has not by then hangs in the kernel.
const KILL_LIMIT: Duration = Duration::from_secs(20);
/// Init ends by itself when the grace is over; this is for its own ways.
const INIT_SLACK: Duration = Duration::from_millis(500);

impl Workshop {
    /// Ends the machine in an orderly way; its disk stays.
    pub fn stop(&self, id: Ulid) -> Result<(), ProviderError> {
        let machine = self.machine(id);
        let Some(_lock) = machine.lock().map_err(failed("wait for the machine"))? else { return Ok(()) };
        match machine.state().map_err(failed("look at the machine"))? {
            State::Absent => return Ok(()),
            State::Broken(why) => {
                return Err(ProviderError::Failed(format!("half made, only delete serves: {why}")));
            }
            State::Stopped(_) => {}
            State::Running { boot, init, .. } => {
                signal(&init, Signal::TERM)?;
                if !ends_within(&init, self.options.stop_grace + INIT_SLACK)? {
                    kill(&init, &boot)?;
                }
            }
        }
        self.clear_boot(&machine)
    }

    /// Removes the machine and all it used, at once: nobody needs an orderly end of it.
    pub fn delete(&self, id: Ulid) -> Result<(), ProviderError> {
        let machine = self.machine(id);
        let Some(_lock) = machine.lock().map_err(failed("wait for the machine"))? else { return Ok(()) };
        let record = machine.record();
        if let Ok(record) = &record
            && record.instance != self.options.instance
        {
            return Err(ProviderError::Refused(format!("machine {id} belongs to another daemon's store")));
        }
        Self::kill_what_runs(&machine)?;
        self.clear_boot(&machine)?;
        self.trash.throw(&machine.directory).map_err(failed("remove the machine's directory"))?;
        if let Ok(record) = record {
            self.ranges.release(record.first_id);
        }
        Ok(())
    }

    /// Goes by the boot record alone, because the rest of the machine may be broken.
    fn kill_what_runs(machine: &Machine) -> Result<(), ProviderError> {
        let boot: Option<BootRecord> = record::read(&machine.boot_file()).unwrap_or_default();
        let Some(boot) = boot else { return Ok(()) };
        let init = boot.init.as_ref().map(super::process::ProcessIdentity::open).transpose();
        match init.map_err(failed("look for the machine's processes"))?.flatten() {
            Some(init) => kill(&init, &boot),
            None => Ok(()),
        }
    }
}

/// Kills init, and with it, as the kernel sees to, everything in its pid namespace.
fn kill(init: &OwnedFd, boot: &BootRecord) -> Result<(), ProviderError> {
    cgroups::kill(&boot.groups);
    signal(init, Signal::KILL)?;
    if ends_within(init, KILL_LIMIT)? {
        Ok(())
    } else {
        Err(ProviderError::Failed("its processes do not die; the kernel may be waiting for a disk".into()))
    }
}

fn signal(init: &OwnedFd, signal: Signal) -> Result<(), ProviderError> {
    match pidfd_send_signal(init, signal) {
        // It ended in between.
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(failed("signal the machine")(error.into())),
    }
}

fn ends_within(init: &OwnedFd, limit: Duration) -> Result<bool, ProviderError> {
    let limit = Timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    wait_for_end(init, &limit).map_err(failed("wait for the machine's end"))
}

//! Booting a machine from its disk.

use std::os::fd::AsFd;
use std::time::Duration;

use ulid::Ulid;

use super::cgroups;
use super::launcher::{BootOrder, Group, Program};
use super::machine::{Machine, MachineLock};
use super::record::{self, BootRecord, Durability, MachineRecord};
use super::sockets;
use super::workshop::{Workshop, failed, launch_failed};
use crate::clock;
use crate::provider::ProviderError;

/// Making a machine takes milliseconds; one that is not up by then is stuck.
const BOOT_LIMIT: Duration = Duration::from_secs(30);

impl Workshop {
    /// Boots a machine that does not run.
    pub fn boot(
        &self,
        machine: &Machine,
        settled: &MachineRecord,
        lock: &MachineLock,
    ) -> Result<(), ProviderError> {
        self.clear_boot(machine)?;
        let generation = self.images.by_id(&settled.image).ok_or_else(|| {
            ProviderError::Failed(format!("its image generation {} is gone", settled.image))
        })?;
        let (control, ssh) =
            sockets::bind(&machine.link_dir()).map_err(failed("bind the machine's sockets"))?;
        let groups = self.cgroups.plan(machine.id, &settled.limits);
        let boot = boot_record(&groups);
        // Before the groups are made: whoever finds this without a process removes them.
        record::write(&machine.boot_file(), &boot, Durability::Process).map_err(failed("record the boot"))?;
        let order = BootOrder {
            machine_dir: machine.directory.clone(),
            lower: generation.root.clone(),
            image: settled.image.clone(),
            first_id: settled.first_id,
            hostname: settled.hostname.clone(),
            network: settled.network,
            privileges: settled.privileges,
            record: boot,
            groups,
            program: Program::Init { grace: self.options.stop_grace },
        };
        let descriptors = [control.as_fd(), ssh.as_fd(), lock.file.as_fd()];
        let booted = self.launcher.boot(order, &descriptors, BOOT_LIMIT).map_err(launch_failed)?;
        tracing::debug!(machine = %machine.id, phases = ?booted.phases, "booted");
        Ok(())
    }

    /// Removes what an earlier boot left: it may have ended while nobody looked.
    pub fn clear_boot(&self, machine: &Machine) -> Result<(), ProviderError> {
        let groups = self.groups_of(machine);
        cgroups::kill(&groups);
        let stuck = cgroups::remove(&groups);
        if let Some(group) = stuck.first() {
            return Err(ProviderError::Failed(format!("the cgroup {} cannot be removed", group.display())));
        }
        sockets::remove(&machine.link_dir()).map_err(failed("remove the machine's sockets"))?;
        match std::fs::remove_file(machine.boot_file()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(failed("remove the boot record")(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The groups a machine may have: the recorded ones, and those this daemon would make, in case
    /// the record is not there.
    fn groups_of(&self, machine: &Machine) -> Vec<std::path::PathBuf> {
        let recorded = record::read::<BootRecord>(&machine.boot_file()).ok().flatten();
        let mut groups = self.cgroups.directories(machine.id);
        for group in recorded.map(|boot| boot.groups).unwrap_or_default() {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }
}

fn boot_record(groups: &[Group]) -> BootRecord {
    let tick = clock::tick();
    BootRecord {
        // By the clock that nobody sets: a later boot has a higher id.
        boot_id: Ulid::from_parts(tick.steady_ms(), tick.entropy),
        started_at: tick.wall,
        groups: groups.iter().map(|group| group.directory.clone()).collect(),
        init: None,
    }
}

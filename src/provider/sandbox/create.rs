//! Making a machine: its directory first, whole, then its first boot.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::Path;

use ulid::Ulid;

use super::image::ImageError;
use super::launcher::Privileges;
use super::limits::{self, Settings};
use super::machine::{Machine, State};
use super::personal;
use super::record::{self, Durability, MACHINE_FILE, MachineRecord};
use super::workshop::{MAKING, Workshop, failed};
use crate::machine::MachineSpec;
use crate::provider::ProviderError;

impl Workshop {
    /// Makes the machine `id` and boots it, or boots the one that is there.
    pub fn create(&self, id: Ulid, spec: &MachineSpec) -> Result<(), ProviderError> {
        let machine = self.machine(id);
        if let State::Absent = machine.state().map_err(failed("look at the machine"))? {
            self.make(&machine, spec)?;
        }
        self.start(id)
    }

    /// Boots the machine `id` unless it runs.
    pub fn start(&self, id: Ulid) -> Result<(), ProviderError> {
        let machine = self.machine(id);
        let lock = machine.lock().map_err(failed("wait for the machine"))?.ok_or_else(absent)?;
        match machine.state().map_err(failed("look at the machine"))? {
            State::Absent => Err(absent()),
            State::Broken(why) => Err(ProviderError::Failed(format!("half made, only delete serves: {why}"))),
            State::Running { .. } => Ok(()),
            State::Stopped(record) => self.boot(&machine, &record, &lock),
        }
    }

    fn make(&self, machine: &Machine, spec: &MachineSpec) -> Result<(), ProviderError> {
        let settings = self.settings(spec)?;
        let _chosen = self.choose();
        let image = self.images.resolve(spec.image.as_ref()).map_err(of_image)?;
        let generation = self.images.generation(&image).map_err(of_image)?;
        let first_id = self
            .ranges
            .take()
            .ok_or_else(|| ProviderError::NoRoom("every range of user ids is taken".into()))?;
        let record = MachineRecord {
            version: record::VERSION,
            instance: self.options.instance,
            id: machine.id,
            hostname: hostname(&spec.name),
            first_id,
            image: generation.id.clone(),
            network: settings.network,
            privileges: if spec.sudo { Privileges::MayGain } else { Privileges::NoNew },
            limits: settings.limits,
        };
        self.furnish(machine, &record).map_err(|error| {
            self.ranges.release(first_id);
            failed("make the machine's directory")(error)
        })
    }

    fn settings(&self, spec: &MachineSpec) -> Result<Settings, ProviderError> {
        let settings = limits::read(&spec.provider_config, "spec.providerConfig").map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            ProviderError::Refused(errors.join("; "))
        })?;
        match self.cgroups.missing(&settings.limits).as_slice() {
            [] => Ok(settings),
            missing => Err(ProviderError::Unavailable(format!(
                "this host has no cgroup controller to limit {}: enable it, or leave the limit out",
                missing.join(", ")
            ))),
        }
    }

    /// Builds the directory under another name and gives it its own when it is complete and on the
    /// disk: a machine's directory is never half made.
    fn furnish(&self, machine: &Machine, record: &MachineRecord) -> io::Result<()> {
        let making = self.machines_dir.join(format!("{MAKING}{}", machine.id));
        if making.try_exists()? {
            fs::remove_dir_all(&making)?;
        }
        let result = furnish_at(&making, record).and_then(|()| {
            fs::rename(&making, &machine.directory)?;
            File::open(&self.machines_dir)?.sync_all()
        });
        if result.is_err() {
            drop(fs::remove_dir_all(&making));
        }
        result
    }
}

fn furnish_at(directory: &Path, record: &MachineRecord) -> io::Result<()> {
    let mut private = DirBuilder::new();
    private.mode(0o700);
    for part in ["", "upper", "work", "link"] {
        private.create(directory.join(part))?;
    }
    let upper = directory.join("upper");
    fs::set_permissions(&upper, Permissions::from_mode(0o755))?;
    chown(&upper, Some(record.first_id), Some(record.first_id))?;
    personal::write(&upper, record.first_id, record.id, &record.hostname, record.network)?;
    record::write(&directory.join(MACHINE_FILE), record, Durability::Power)
}

/// The kernel takes host names of up to 64 bytes; names of members are ASCII.
fn hostname(name: &str) -> String {
    name.chars().take(63).collect::<String>().trim_end_matches(['.', '-']).to_owned()
}

fn absent() -> ProviderError {
    ProviderError::Failed("there is no such machine".into())
}

fn of_image(error: ImageError) -> ProviderError {
    match &error {
        ImageError::NotCarried { .. } => ProviderError::Refused(error.to_string()),
        ImageError::Files { doing, source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            ProviderError::NoRoom(format!("cannot {doing} the image: {source}"))
        }
        ImageError::Unusable { .. } | ImageError::Files { .. } => ProviderError::Failed(error.to_string()),
    }
}

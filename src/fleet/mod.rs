//! Pure: the standalone workstations of one namespace, and what is wanted of their machines.
//!
//! A standalone workstation is its creator's own machine: it runs while its spec says so, and goes
//! when it is deleted. It speaks to its machine through the same contract as a pool's member.
//!
//! ```text
//! create ─► Pending ─► Provisioning ─► Ready ◄─► Stopping ─► Stopped ─► Starting ─► Ready
//!                          └─► Failed      delete: any ─► Deleting ─► gone
//! ```

mod station;

pub use station::{Asked, Station};

use std::collections::BTreeMap;

use ulid::Ulid;

use crate::machine::{Fact, Machine, MachineSpec, Power, Setup, Want};
use crate::object::{
    FieldError, FieldReason, Identity, RELEASE_FINALIZER, Subject, Tick, Time, Workstation, WorkstationPhase,
};

/// How long a new machine may take to be configured (rule F1).
const BUILD_MS: i64 = 30 * 60 * 1000;

/// The workstations of a namespace that belong to no pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    stations: BTreeMap<Ulid, Station>,
}

/// What the fleet is asked or told.
#[derive(Clone, Debug)]
pub enum Command {
    Pass,
    Create {
        object: Workstation,
        by: Subject,
    },
    /// The whole object after a change that has been judged by Kubernetes' rules.
    Update {
        uid: Ulid,
        object: Workstation,
    },
    Delete {
        uid: Ulid,
    },
    Fact(Fact),
}

/// What is stored, and what moves memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Put(Box<Station>),
    Remove(Ulid),
}

/// What a decision may know of others.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The provider of a workstation that pins none.
    pub default_provider: String,
    /// Device keys by user.
    pub device_keys: BTreeMap<String, Vec<String>>,
    /// Why nothing may be built now, if so.
    pub builds_held: Option<String>,
    pub turn: Turn,
}

/// Whether one more build may begin in the daemon (rule F4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    #[default]
    Free,
    Taken,
}

/// What follows from a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub changes: Vec<Change>,
    pub wants: Vec<Want>,
}

/// Why the fleet says no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("not found")]
    NotFound,
    #[error("{0}")]
    Invalid(FieldError),
}

impl Fleet {
    /// The workstation with this uid.
    #[must_use]
    pub fn get(&self, uid: Ulid) -> Option<&Station> {
        self.stations.get(&uid)
    }

    /// The workstation with this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Station> {
        self.stations.values().find(|station| station.metadata.name == name)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stations.is_empty()
    }

    /// What follows from `command`.
    ///
    /// # Errors
    /// When it may not be.
    pub fn decide(&self, command: Command, tick: &Tick, inputs: &Inputs) -> Result<Decision, Denied> {
        match command {
            Command::Pass => Ok(self.pass(inputs)),
            Command::Create { object, by } => create(object, by, tick, inputs),
            Command::Update { uid, object } => self.update(uid, object),
            Command::Delete { uid } => self.delete(uid, tick),
            Command::Fact(fact) => Ok(self.hear(&fact, tick)),
        }
    }

    /// Moves memory.
    pub fn evolve(&mut self, change: &Change) {
        match change {
            Change::Put(station) => {
                self.stations.insert(station.uid, (**station).clone());
            }
            Change::Remove(uid) => {
                self.stations.remove(uid);
            }
        }
    }

    /// Every want there is, for a start.
    #[must_use]
    pub fn wants(&self) -> Vec<Want> {
        self.stations.values().filter(|station| station.revision > 0).map(Station::want).collect()
    }

    /// How many machines are being made: what `builds_at_once_max` bounds (rule F4).
    #[must_use]
    pub fn builds_in_flight(&self) -> u32 {
        let building = self.stations.values().filter(|station| station.is_being_built()).count();
        u32::try_from(building).unwrap_or(u32::MAX)
    }

    /// Whether a machine waits to be made: for room, or for its turn (rule F4).
    #[must_use]
    pub fn would_build(&self) -> bool {
        self.stations.values().any(|station| station.revision == 0 && !station.is_going())
    }

    /// The next workstation of which something else is wanted than was asked last. Looks at each:
    /// a namespace has few standalone workstations, and nobody waits in a queue for them.
    fn pass(&self, inputs: &Inputs) -> Decision {
        for station in self.stations.values() {
            let held = inputs.builds_held.is_some() || inputs.turn == Turn::Taken;
            if station.revision == 0 && !station.is_going() && held {
                continue;
            }
            let asked = wish(station, inputs);
            if station.revision > 0 && asked == station.asked {
                continue;
            }
            let revision = station.revision + 1;
            let next = Station { revision, asked, ..station.clone() };
            let wants = vec![next.want()];
            return Decision { changes: vec![Change::Put(Box::new(next))], wants };
        }
        Decision::default()
    }

    fn update(&self, uid: Ulid, object: Workstation) -> Result<Decision, Denied> {
        let station = self.stations.get(&uid).ok_or(Denied::NotFound)?;
        let (old, new) = (&station.spec, &object.spec);
        if old.requirements != new.requirements
            || old.image != new.image
            || old.provider_config != new.provider_config
        {
            let message = "Forbidden: the machine is made once; delete the workstation and create it anew to change \
                           requirements, image or providerConfig";
            return Err(Denied::Invalid(FieldError::new("spec", FieldReason::Forbidden, message)));
        }
        let next = Station { metadata: object.metadata, spec: object.spec, ..station.clone() };
        if next == *station {
            return Ok(Decision::default());
        }
        if next.is_released() {
            return Ok(Decision { changes: vec![Change::Remove(uid)], wants: Vec::new() });
        }
        Ok(put(next))
    }

    fn delete(&self, uid: Ulid, tick: &Tick) -> Result<Decision, Denied> {
        let station = self.stations.get(&uid).ok_or(Denied::NotFound)?;
        if station.is_going() {
            return Ok(Decision::default());
        }
        let mut next = station.clone();
        next.metadata.deletion_timestamp = Some(tick.wall.whole_seconds());
        next.metadata.deletion_grace_period_seconds = Some(0);
        next.metadata.generation += 1;
        next.phase = WorkstationPhase::Deleting;
        Ok(put(next))
    }

    fn hear(&self, fact: &Fact, tick: &Tick) -> Decision {
        let Some(station) = self.stations.get(&fact.member_uid) else { return Decision::default() };
        let mut next = station.clone();
        next.note(fact, tick.wall);
        if fact.machine == Machine::Absent && station.is_going() && station.asked.gone {
            next.metadata.finalizers.retain(|finalizer| finalizer != RELEASE_FINALIZER);
            if next.is_released() {
                return Decision { changes: vec![Change::Remove(station.uid)], wants: Vec::new() };
            }
        }
        if next == *station { Decision::default() } else { put(next) }
    }
}

fn put(station: Station) -> Decision {
    Decision { changes: vec![Change::Put(Box::new(station))], wants: Vec::new() }
}

fn create(mut object: Workstation, by: Subject, tick: &Tick, inputs: &Inputs) -> Result<Decision, Denied> {
    if object.spec.cordoned {
        let message = "Forbidden: only a pool's member can be cordoned";
        return Err(Denied::Invalid(FieldError::new("spec.cordoned", FieldReason::Forbidden, message)));
    }
    let metadata = &mut object.metadata;
    metadata.finalizers.push(RELEASE_FINALIZER.to_owned());
    let identity = object.spec.identity.clone().unwrap_or_default();
    let pinned = object.spec.requirements.iter().find_map(|token| token.strip_prefix("provider:"));
    let machine = MachineSpec {
        provider: pinned.unwrap_or(&inputs.default_provider).to_owned(),
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        provider_config: object.spec.provider_config.clone(),
        image: object.spec.image.clone(),
        sudo: identity.sudo.unwrap_or(true),
    };
    Ok(put(Station {
        uid: metadata.uid.unwrap_or_default(),
        metadata: object.metadata,
        spec: object.spec,
        owner: by,
        machine,
        build_by: tick.steady.plus_millis(BUILD_MS),
        built: false,
        revision: 0,
        asked: Asked::default(),
        phase: WorkstationPhase::Pending,
        running: None,
        changed_at: tick.wall.whole_seconds(),
        message: String::new(),
    }))
}

fn wish(station: &Station, inputs: &Inputs) -> Asked {
    let keys = inputs.device_keys.get(&station.owner.name).cloned().unwrap_or_default();
    let identity: Identity = station.spec.identity.clone().unwrap_or_default();
    Asked {
        power: if station.spec.stopped && station.built { Power::Stopped } else { Power::Running },
        keys,
        setup: Setup { identity, environment: station.spec.environment.clone() },
        gone: station.is_going(),
    }
}

/// Until when a build may last, while it lasts.
fn build_by(station: &Station) -> Option<Time> {
    (!station.built).then_some(station.build_by)
}

#[cfg(test)]
mod tests;

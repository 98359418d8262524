//! One standalone workstation: what is declared, what was asked of its machine, and what is known of it.

use ulid::Ulid;

use super::build_by;
use crate::machine::{Fact, Machine, MachineSpec, Power, Running, Setup, Want};
use crate::object::{
    AgentStatus, Condition, MachineStatus, Metadata, SshAccess, Subject, Time, Truth, Workstation,
    WorkstationPhase, WorkstationSpec, WorkstationStatus,
};

/// A standalone workstation, as the fleet keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    pub uid: Ulid,
    pub metadata: Metadata,
    pub spec: WorkstationSpec,
    /// Who created it; their devices open its shell.
    pub owner: Subject,
    /// How its machine was made; constant.
    pub machine: MachineSpec,
    pub build_by: Time,
    /// Whether it has ever been configured.
    pub built: bool,
    /// Of the last want; 0 before the first.
    pub revision: u64,
    /// What the last want asked for.
    pub asked: Asked,
    pub phase: WorkstationPhase,
    /// While it runs.
    pub running: Option<Running>,
    /// When the phase last changed.
    pub changed_at: Time,
    pub message: String,
}

/// What a want asks for beside what is constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub power: Power,
    pub keys: Vec<String>,
    pub setup: Setup,
    pub gone: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Self { power: Power::Running, keys: Vec::new(), setup: Setup::default(), gone: false }
    }
}

impl Station {
    /// The want last asked.
    #[must_use]
    pub fn want(&self) -> Want {
        Want {
            member_uid: self.uid,
            revision: self.revision,
            machine: self.machine.clone(),
            power: self.asked.power,
            keys: self.asked.keys.clone(),
            setup: self.asked.setup.clone(),
            recycle: None,
            build_by: build_by(self),
            gone: self.asked.gone,
        }
    }

    /// Whether its deletion was asked for.
    #[must_use]
    pub const fn is_going(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether its machine was asked for and has not landed: one that waits for room (and shows as
    /// Pending once it was heard of) holds up nobody.
    #[must_use]
    pub fn is_being_built(&self) -> bool {
        let may_come = !matches!(self.phase, WorkstationPhase::Failed | WorkstationPhase::Deleting);
        let waits_for_room = self.phase == WorkstationPhase::Pending && !self.message.is_empty();
        self.revision > 0 && !self.built && may_come && !waits_for_room
    }

    /// Whether nothing keeps the object any more.
    #[must_use]
    pub const fn is_released(&self) -> bool {
        self.is_going() && self.metadata.finalizers.is_empty()
    }

    /// Takes in a fact of its machine.
    pub fn note(&mut self, fact: &Fact, now: Time) {
        let before = self.phase;
        self.running = None;
        self.message.clear();
        let quiet = !self.is_going();
        match &fact.machine {
            Machine::Unknown { why } => self.message.clone_from(why),
            Machine::Unplaceable { why } => {
                self.phase = WorkstationPhase::Pending;
                self.message.clone_from(why);
            }
            Machine::Booting => {
                self.phase =
                    if self.built { WorkstationPhase::Starting } else { WorkstationPhase::Provisioning };
            }
            Machine::Running(running) => {
                let landed = running.configured && fact.observed_revision >= self.revision;
                self.built |= landed;
                self.phase = if landed || self.built {
                    WorkstationPhase::Ready
                } else {
                    WorkstationPhase::Configuring
                };
                self.message = running.remarks.join("; ");
                self.running = Some(running.clone());
            }
            Machine::Stopped => self.phase = WorkstationPhase::Stopped,
            Machine::Stopping => self.phase = WorkstationPhase::Stopping,
            Machine::Absent if quiet => {
                self.phase = WorkstationPhase::Failed;
                self.message = "the machine is gone: delete the workstation and create it anew".into();
            }
            Machine::Absent => {}
            Machine::Failed(failure) => {
                self.phase = WorkstationPhase::Failed;
                self.message = format!("{}: {}", failure.reason, failure.message);
            }
        }
        if self.is_going() {
            self.phase = WorkstationPhase::Deleting;
        }
        if self.phase != before {
            self.changed_at = now.whole_seconds();
        }
    }

    /// The object that the API shows.
    #[must_use]
    pub fn present(&self) -> Workstation {
        let running = self.running.as_ref();
        let ready = self.phase == WorkstationPhase::Ready;
        let condition = |r#type: &str, holds: bool| Condition {
            r#type: r#type.into(),
            status: if holds { Truth::True } else { Truth::False },
            observed_generation: self.metadata.generation,
            last_transition_time: self.changed_at,
            reason: format!("{:?}", self.phase),
            message: self.message.clone(),
        };
        let status = WorkstationStatus {
            phase: self.phase,
            observed_generation: self.metadata.generation,
            provider: self.machine.provider.clone(),
            machine: running.map(|running| MachineStatus {
                id: self.uid.to_string(),
                address: String::new(),
                started_at: Some(running.started_at),
                image: running.agent.image.clone(),
            }),
            agent: running.map(|running| AgentStatus {
                version: running.agent.version.clone(),
                capabilities: running.agent.capabilities.clone(),
                last_seen: None,
            }),
            ssh: running.filter(|_| ready).map(|running| SshAccess {
                user: running.agent.login_user.clone(),
                command: format!("rl shell {}", self.metadata.name),
                proxy: format!("rl proxy {}", self.metadata.name),
                host_keys: running.agent.host_keys.clone(),
            }),
            conditions: vec![
                condition("Ready", running.is_some()),
                condition("Configured", running.is_some_and(|running| running.configured)),
            ],
            sessions: running.map_or(0, |running| running.sessions),
            message: self.message.clone(),
        };
        Workstation { metadata: self.metadata.clone(), spec: self.spec.clone(), status }
    }
}

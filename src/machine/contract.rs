//! Want and Fact: the whole language between an owner and its member actors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ulid::Ulid;

use crate::object::{Identity, Image, Reset, Time};

/// The capability of an agent that carries out [`RecycleOrder`]s.
pub const RECYCLE_CAPABILITY: &str = "recycle";

/// Everything an owner wishes of one member. Always the whole wish; only the newest counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The Workstation's uid; also the machine's id at its provider.
    pub member_uid: Ulid,
    /// Rises whenever anything below changes. Never reused, over restarts too.
    pub revision: u64,
    /// How to make the machine. Constant for a member's life.
    pub machine: MachineSpec,
    pub power: Power,
    /// Public key lines authorized for the login user: the whole managed block.
    pub keys: Vec<String>,
    /// What a configuration pass must land.
    pub setup: Setup,
    /// The recycle to carry out. What is not asked for any more is stopped.
    pub recycle: Option<RecycleOrder>,
    /// A new machine that is not Configured by then has failed (rule F1). On the steady clock. None:
    /// it was built once and is never made anew.
    pub build_by: Option<Time>,
    /// The machine and its disk must go. Absorbing: nothing is wanted after it.
    pub gone: bool,
}

/// How a machine is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSpec {
    /// The name of the provider that was chosen.
    pub provider: String,
    /// Also the member's host name.
    pub name: String,
    pub namespace: String,
    /// Sizing and provider settings, as declared and already checked.
    pub provider_config: Map<String, Value>,
    /// None: the daemon's default image.
    pub image: Option<Image>,
    /// False installs no_new_privs: nobody inside ever becomes root.
    pub sudo: bool,
}

/// One cleaning of a machine for its next holder: its keys first, then the scripts, then an
/// ordinary configuration (rule R1). The one act that is never repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecycleOrder {
    /// Carried out at most once, however often it is wanted.
    pub id: Ulid,
    /// Not finished by then: failed (rule R3). On the steady clock.
    pub by: Time,
    /// Stop and start the machine after the scripts.
    pub reboot: bool,
    /// Whether the machine's disk is thrown away first.
    pub reset: Reset,
}

/// Whether the machine should run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    Running,
    Stopped,
}

/// What a configuration pass lands inside the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    pub identity: Identity,
    pub environment: BTreeMap<String, String>,
}

/// Everything a member actor knows of its machine. Always the whole state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub member_uid: Ulid,
    /// The newest `Want::revision` the actor had when this was observed. A fact confirms keys or
    /// Configured only if this reaches the revision that asked.
    pub observed_revision: u64,
    pub machine: Machine,
    /// The last recycle the machine knows of.
    pub recycle: Option<RecycleReport>,
}

/// How far a recycle is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecycleReport {
    /// Of the order.
    pub id: Ulid,
    pub stage: RecycleStage,
}

/// The stages of a recycle. The last two are final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecycleStage {
    UnderWay,
    Succeeded,
    /// A script failed, or the machine did not come to be configured again. The message names the
    /// script and carries the tail of its output.
    Failed(Failure),
}

/// A machine's state as observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Machine {
    /// The provider was not asked yet, or does not answer; `why` says which.
    Unknown { why: String },
    /// Being made or booted; not usable yet.
    Booting,
    /// Up. `configured` and the keys are confirmed for `observed_revision`.
    Running(Running),
    /// Disk kept, nothing runs.
    Stopped,
    /// Going down or away.
    Stopping,
    /// It does not exist (any more).
    Absent,
    /// Making or configuring it failed; it will not become usable by waiting.
    Failed(Failure),
    /// The provider has no room, or does not carry what is asked; no fault of the template's build.
    Unplaceable { why: String },
}

/// A machine that is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Rises with every boot of the machine, whatever is done to the wall clock.
    pub boot_id: Ulid,
    /// By the wall clock, for people.
    pub started_at: Time,
    /// The setup of `observed_revision` has landed.
    pub configured: bool,
    /// The agent has confirmed the keys of `observed_revision` (rule L19).
    pub keys_confirmed: bool,
    pub agent: AgentInfo,
    /// Conditions of the machine that are no failure, such as `sudo: the image has no sudo`.
    pub remarks: Vec<String>,
    pub sessions: u32,
}

/// The agent inside, as it introduced itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentInfo {
    pub version: String,
    pub capabilities: Vec<String>,
    pub login_user: String,
    /// Public host key lines (type and base64), as known_hosts has them.
    pub host_keys: Vec<String>,
    /// The image generation the disk was made from.
    pub image: String,
}

/// Why a machine failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// One CamelCase word.
    pub reason: String,
    /// One sentence, with the failing step and the tail of its output.
    pub message: String,
}

//! What the daemon and its launcher say to each other: one JSON document a packet.
//!
//! Both are the same binary of the same build, so there is no version; packets are bounded, and
//! descriptors travel beside a packet in a fixed order.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::provider::sandbox::record::BootRecord;

/// No packet is larger.
pub const MAX_PACKET_BYTES: usize = 64 * 1024;
/// No packet carries more descriptors.
pub const MAX_DESCRIPTORS: usize = 3;

/// One thing to do. The answer carries the same number.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    pub number: u64,
    pub order: BootOrder,
}

/// What became of a request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    pub number: u64,
    pub outcome: Result<Booted, Failure>,
}

/// Boot one machine. Beside it travel, in this order: the control listener, the SSH listener, and
/// the machine's lock, which stays taken until the launcher is done even if the daemon dies.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BootOrder {
    /// Holds `upper/` and `work/`; the boot record is written here.
    pub machine_dir: PathBuf,
    /// The root of the image generation.
    pub lower: PathBuf,
    /// The generation's id, which the machine's agent reports.
    pub image: String,
    /// The host's name for uid and gid 0 of the machine.
    pub first_id: u32,
    pub hostname: String,
    pub network: Network,
    pub privileges: Privileges,
    pub groups: Vec<Group>,
    /// What to record; the launcher fills in the process.
    pub record: BootRecord,
    pub program: Program,
}

/// The network a machine gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Its own, with loopback only.
    #[default]
    None,
    /// The host's.
    Host,
}

/// Whether a process inside can gain privileges by exec (setuid programs such as sudo).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Privileges {
    MayGain,
    NoNew,
}

/// One cgroup to make for the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub directory: PathBuf,
    /// File name and content, in order.
    pub settings: Vec<(String, String)>,
}

/// What runs as PID 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Program {
    /// `rl init`, giving the others this long to end when it is asked to stop.
    Init { grace: Duration },
    /// Nothing: everything up to the exec is tried, and the machine ends.
    Trial,
}

/// A machine that runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Booted {
    pub record: BootRecord,
    /// Where the time went: what was done, and how long that took.
    pub phases: Vec<(String, Duration)>,
}

/// The step that failed, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("cannot {step}: {message}")]
pub struct Failure {
    /// Completes "cannot …".
    pub step: String,
    pub message: String,
    /// The system's error number, where it was a system call that failed.
    pub errno: Option<i32>,
}

/// Names the step at which an error happened.
pub trait At<T> {
    /// `step` completes "cannot …".
    fn at(self, step: &str) -> Result<T, Failure>;
}

impl<T, E: Into<std::io::Error>> At<T> for Result<T, E> {
    fn at(self, step: &str) -> Result<T, Failure> {
        self.map_err(|error| {
            let error = error.into();
            Failure { step: step.into(), message: error.to_string(), errno: error.raw_os_error() }
        })
    }
}

//! What a pool knows of the rest of the world when it decides: an immutable snapshot.

use std::sync::Arc;

use super::digest;

/// Everything outside that bears on a pool's decisions. What an act uses up (room, builds, the one
/// status write) the shell takes off before the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inputs {
    pub room: Room,
    /// The daemon's providers, in the order they are tried.
    pub providers: Arc<[ProviderState]>,
    pub owner_keys: OwnerKeys,
    /// How many more builds may begin in this daemon now (rule F4).
    pub builds_allowed: u32,
    pub status_write: StatusWrite,
}

/// How many more members the namespace's quota and the disk allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    Unlimited,
    /// So many more; `why` says what limits it, such as `namespace acme-dev may hold 8 workstations`.
    Limited {
        more: u32,
        why: String,
    },
}

/// One provider of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderState {
    pub name: String,
    /// Why it cannot make machines now; none when it can.
    pub unavailable: Option<String>,
    pub stopping: Stopping,
    pub resetting: Resetting,
}

/// Whether a provider can stop a machine and keep its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopping {
    Possible,
    Impossible,
}

/// Whether a provider can throw away what was written to a machine's disk (rule R9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resetting {
    Possible,
    Impossible,
}

/// The public keys of the owner's devices, ordered and without duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerKeys {
    lines: Arc<[String]>,
    digest: u128,
}

impl OwnerKeys {
    /// In any order; duplicates are dropped.
    #[must_use]
    pub fn new(mut lines: Vec<String>) -> Self {
        lines.sort_unstable();
        lines.dedup();
        let digest = digest::of_lines(&lines);
        Self { lines: lines.into(), digest }
    }

    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }

    pub(super) const fn digest(&self) -> u128 {
        self.digest
    }
}

/// Whether the last status this pool wrote is durable yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusWrite {
    Idle,
    InFlight,
}

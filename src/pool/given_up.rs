//! What a pool says of itself when nobody owns it any more.

use super::PoolRow;
use crate::object::{Condition, PoolPhase, Time, Truth};

impl PoolRow {
    /// The row with the status of a pool whose owner was given up because of `why`. It is written by
    /// who gave it up, once; the next owner derives the status anew from how things stand.
    #[must_use]
    pub fn given_up(&self, why: &str, now: Time) -> Self {
        let mut row = self.clone();
        let status = &mut row.status;
        if status.phase != PoolPhase::Terminating {
            status.phase = PoolPhase::Degraded;
        }
        why.clone_into(&mut status.message);
        let last = status.conditions.iter().position(|condition| condition.r#type == "Ready");
        let last = last.map(|place| status.conditions.remove(place));
        let since = last.filter(|last| last.status == Truth::False).map(|last| last.last_transition_time);
        status.conditions.insert(
            0,
            Condition {
                r#type: "Ready".into(),
                status: Truth::False,
                observed_generation: row.metadata.generation,
                last_transition_time: since.unwrap_or_else(|| now.whole_seconds()),
                reason: "OwnerGivenUp".into(),
                message: why.into(),
            },
        );
        row
    }
}

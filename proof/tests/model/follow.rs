//! A pass of the core, followed by the model.

use ringleader_proof::pool::{Act, Change, Decision, Pool, StatusWrite};

use crate::naive::{Due, Naive, Now};

/// An event is kept for a day after it last happened.
pub const EVENT_MILLIS: i64 = 24 * 3_600_000;

/// The model does what the core did, if it was due, and nothing was due before it.
pub fn follow(model: &mut Naive, core: &Pool, decision: &Decision, now: Now<'_>) {
    let due = model.due(now);
    let first = due.iter().map(|due| due.rank()).min();
    let old_event = core.events().any(|event| now.wall >= event.last.plus_millis(EVENT_MILLIS));
    let of_lease = |change: &Change| matches!(change, Change::PutLease(_) | Change::RemoveLease(_));
    match decision.act {
        Act::Nothing => {
            assert!(due.is_empty() && !old_event, "the pool rests, though {due:?} are due");
        }
        Act::WriteStatus => {
            assert!(due.is_empty() && !old_event, "the status comes last, and {due:?} are due");
            assert!(now.inputs.status_write == StatusWrite::Idle && !model.is_gone(), "no status is due");
        }
        Act::Forget if !decision.changes.iter().any(of_lease) => {
            assert!(
                old_event && first.is_none_or(|rank| rank >= Due::Tell.rank()),
                "no event is due: {due:?}"
            );
        }
        // Of two things that are true it may say the one and then the other.
        Act::Tell => {
            assert!(
                first.is_none_or(|rank| rank >= Due::Tell.rank()),
                "telling comes last, and {due:?} are due"
            );
            model.act(Due::Tell, decision, now);
        }
        _ => {
            let mut ready = due.iter().filter(|due| Some(due.rank()) == first);
            let Some(done) = ready.find(|due| due.is(decision)) else {
                panic!(
                    "{due:?} are due, but the core did {:?}: {:?}\nmodel: {model:?}",
                    decision.act, decision.changes
                )
            };
            model.act(*done, decision, now);
        }
    }
}

//! Every state there is of a small world, by the model checker `stateright`: two members at most, two
//! clients, up to three leases at a time, over histories of any length, and the very `decide` and
//! `evolve` that the daemon runs.
//!
//! ```text
//!   people ──► events ──► turn: decide, store, evolve, pass until quiet ──► rules hold?
//!                 ▲         │ wants                                          │
//!     timers ─────┤         ▼                                                ▼ rows, machines
//!                 └──── machines: steps, faults, late words            canonical form: seen before?
//! ```
//!
//! `model.rs` says what may happen, `turn.rs` is the owner's shell, `machine.rs` a machine, `timer.rs`
//! time, `rules.rs` what must hold, `canonical.rs` why the states are finitely many, `fair.rs` that all
//! ends well from each of them, `configurations.rs` what is explored.
//!
//! # What is shown
//!
//! In every reachable state of each configuration every invariant of the core and every rule in
//! `model.rs` holds, with a crash after any submission where the configuration has crashes; from every
//! state, the world comes to rest once machines obey, and nobody waits in vain; and the happenings a
//! configuration names do happen. The search is complete: `stateright` goes on until no state is new.
//! States are told apart by 64 bits, so that one may be missed with a chance of about one in a hundred million.
//!
//! # What is not
//!
//! Events, usage, the status and words are written and never looked at. Where only a uid decides between
//! two, one way is tried. One timer falls due at a time, but after an outage all do. Room and the daemon's
//! bound on builds are the model test's (`proof/tests/model/`), and so are more members than two.
//!
//! # More of it
//!
//! `EXHAUSTIVE_LEASES=3 cargo nextest run -p ringleader-proof --test exhaustive` has three leases in every
//! configuration, and takes as many threads as there are.

mod canonical;
mod configurations;
mod fair;
mod machine;
mod model;
mod rules;
mod state;
mod timer;
mod turn;

use ringleader_proof::object::{Subject, Time};
use ulid::Ulid;

const START: i64 = 1_790_000_000_000;
/// Every turn takes place now: what happened before lies in the past.
const NOW: Time = Time::from_millis(START);

/// A key of a lease; it has two to change between.
fn key(lease: Ulid, variant: &str) -> String {
    format!("key {lease} {variant}")
}

/// A lease's key, not one of the owner's devices.
fn is_key(line: &str) -> bool {
    line.starts_with("key ")
}

/// The two clients.
fn ann() -> Subject {
    Subject::user("ann")
}

fn ben() -> Subject {
    Subject::user("ben")
}

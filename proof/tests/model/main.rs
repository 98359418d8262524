//! The model test of the pool's core: histories of everything that may happen, taken by the core
//! and by a model side by side, and compared after every single decision.
//!
//! ```text
//!  transition ──► commands ──► core: decide, store, evolve ──┐
//!      │             │                                       ├─► every row, want and warning equal?
//!      │             └──────► model: rules, by walking all ──┘   and every invariant
//!      └──► clocks, inputs, disk, wants on their way, machines
//! ```
//!
//! `naive/` is the model: rules.md executed as plainly as can be, and it says so of itself.
//! `rig.rs` holds both, `world.rs` and `events.rs` what is outside of them, `transition.rs` what may
//! happen, `compare.rs` what is compared, `ledger.rs` what no sequence of wants may show, `rest.rs`
//! that the pool comes to rest from any state, `reach.rs` that histories lead everywhere.
//!
//! # What is shown
//!
//! After every decision: who holds which lease and in what state, every timer and date, the reason
//! and outcome of every release, every member's state, its want (its revision, keys, power,
//! recycle, deadline), the record of failures and the present wait, what waiting leases are told,
//! which warnings were given, and that what is counted adds up. A pass does only what is due, what
//! comes first first, the very thing where a rule names it (L5, L7, L15, R8, W5); and it rests only
//! when nothing is due. A refusal is one that applies, and what nothing is against is taken. At
//! rest: nothing falls due before the deadline the pool names, and its status is true.
//! After every transition: the invariants, and that a pool read back from its rows is the same one.
//! After a crash, with submissions that were not durable and wants that never arrived: every
//! machine is told again what is wanted of it, and the same.
//! At the end of a history: once the world is friendly and machines obey, all comes to rest, every
//! lease is served or over, every floor is filled.
//!
//! # What is not
//!
//! The words of messages and conditions, the times of conditions, labels and annotations, a
//! workstation's generation, more than a handful of members at a time, and the template's hash
//! (two templates are the same here when they differ in nothing). Where rules.md is silent the
//! model follows the core, which then shows only that the core is of one mind with itself: the
//! tie-breaks by uid, which of several true obstacles waiting leases are told, what a sight of a
//! machine changes in the member's row, and when a worn-out member makes way.
//!
//! # More of it
//!
//! `MODEL_CASES=100000 cargo nextest run -p ringleader-proof` makes a hundred times as many
//! histories of 250 transitions on average, in each of the four tests. A history that fails is
//! shortened and printed, and its seed is kept in `main.regressions`, to be committed. A seed lives
//! as long as transitions are drawn as they are: a defect gets a test of its own in
//! `src/pool/tests/`.

mod compare;
mod events;
mod follow;
mod ledger;
mod naive;
mod reach;
mod rest;
mod rig;
mod tally;
mod transition;
mod world;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::transition::{Transition, transition};

/// What a history begins with. Transitions mean leases and members by number, so that any history
/// can be shortened; the state that they lead through is the rig's.
struct Histories;

impl ReferenceStateMachine for Histories {
    type State = Value;
    type Transition = Transition;

    fn init_state() -> BoxedStrategy<Value> {
        let spec =
            (1_u32..6, 0_u32..3, 0_u32..3, prop_oneof![1 => Just(false), 3 => Just(true)], any::<bool>());
        spec.prop_map(|(max, running, stopped, recycles, ages)| {
            let running = running.min(max);
            let mut spec = json!({
                "template": {"spec": {}},
                "size": {"max": max},
                "warm": {"running": running, "stopped": stopped.min(max - running)},
                "lease": {"maxTerm": "3h", "maxPending": 5},
            });
            if recycles {
                spec["recycle"] = json!({"maxReuses": 3});
            }
            if ages {
                spec["maxAge"] = json!("2h");
            }
            spec
        })
        .boxed()
    }

    fn transitions(_: &Value) -> BoxedStrategy<Transition> {
        thread_local! {
            static ANY: BoxedStrategy<Transition> = transition();
        }
        ANY.with(Clone::clone)
    }

    fn apply(state: Value, _: &Transition) -> Value {
        state
    }
}

struct Million;

impl StateMachineTest for Million {
    type SystemUnderTest = Rig;
    type Reference = Histories;

    fn init_test(spec: &Value) -> Rig {
        Rig::new(spec)
    }

    fn apply(mut rig: Rig, _: &Value, transition: Transition) -> Rig {
        rig.take(&transition);
        rig
    }

    fn teardown(rig: Rig, _: Value) {
        rest::come_to_rest(rig);
    }
}

/// How many histories each test makes, and where it keeps the seeds of those that failed.
fn config() -> ProptestConfig {
    let cases = std::env::var("MODEL_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(1100),
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

// Four, so that a test runner keeps every processor busy; together they take more than a million
// transitions: 4 * 1100 histories of 250 on average.
prop_state_machine! {
    #![proptest_config(config())]

    // rule L8
    // rule L20
    // rule F5
    // rule W2
    #[test]
    fn the_pool_does_what_the_rules_say_in_the_first_quarter_of_a_million(sequential 1..500 => Million);
    #[test]
    fn the_pool_does_what_the_rules_say_in_the_second_quarter_of_a_million(sequential 1..500 => Million);
    #[test]
    fn the_pool_does_what_the_rules_say_in_the_third_quarter_of_a_million(sequential 1..500 => Million);
    #[test]
    fn the_pool_does_what_the_rules_say_in_the_fourth_quarter_of_a_million(sequential 1..500 => Million);
}

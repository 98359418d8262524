//! The model test of the pool's core.

mod compare;
mod events;
mod ledger;
mod naive;
mod reach;
mod rest;
mod rig;
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

/// How many histories each test makes.
fn config() -> ProptestConfig {
    let cases = std::env::var("MODEL_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(1100),
        max_shrink_iters: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

prop_state_machine! {
    #![proptest_config(config())]

    #[test]
    fn million_1(sequential 1..500 => Million);
    #[test]
    fn million_2(sequential 1..500 => Million);
    #[test]
    fn million_3(sequential 1..500 => Million);
    #[test]
    fn million_4(sequential 1..500 => Million);
}

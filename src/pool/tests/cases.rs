//! What broke in other systems that do this job, as reported in public, and holds here.

use serde_json::json;

use super::world::*;
use crate::machine::{Machine, Power};
use crate::object::{FailedReason, LeasePhase, MemberState};

// case 1 (agent-sandbox#418, test-infra#15985)
#[test]
fn of_two_leases_for_one_free_member_exactly_one_is_bound_and_the_other_keeps_its_place() {
    let mut world = World::warm(json!({"size": {"max": 1}, "warm": {"running": 1}}));
    world.lease("a");
    world.lease("b");
    world.lease("c");
    assert_eq!(
        phases(&world, ["a", "b", "c"]),
        [LeasePhase::Starting, LeasePhase::Pending, LeasePhase::Pending]
    );
    world.settle();
    world.done("a");
    world.settle();
    assert_eq!(phases(&world, ["b", "c"]), [LeasePhase::Ready, LeasePhase::Pending]);
}

// case 2 (kobe#162)
#[test]
fn a_member_that_reports_ready_under_an_ended_lease_is_not_free_and_others_still_serve() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"running": 2}}));
    world.lease("a");
    world.settle();
    let ended = world.member_of("a");
    let up = world.up(ended);
    world.done("a");
    world.fact(ended, up.clone());
    world.fact(ended, up);
    assert_eq!(world.state(ended), MemberState::Deleting);
    world.lease("b");
    assert_ne!(world.member_of("b"), ended);
    world.settle();
    assert_eq!(world.phase("b"), LeasePhase::Ready);
}

// case 3 (kobe#63)
#[test]
fn a_slow_look_that_began_before_a_bind_neither_frees_the_member_nor_resets_its_clock() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let member = world.only(MemberState::IdleRunning);
    let (revision, up) = (world.wants[&member].revision, world.up(member));
    world.lease("a");
    let since = world.member(member).since;
    world.advance("1s");
    for late in [up, Machine::Booting, Machine::Unknown { why: "busy".into() }] {
        world.fact_at(member, revision, late);
    }
    assert_eq!((world.state(member), world.member(member).since), (MemberState::Leased, since));
    assert_eq!(world.phase("a"), LeasePhase::Starting);
}

// case 4 (openkruise/agents#394, garm#455)
#[test]
fn a_lease_that_takes_a_member_before_the_timer_does_keeps_it() {
    let mut world = World::warm(json!({"warm": {"running": 1, "stopAfter": "15m"}}));
    let member = world.only(MemberState::IdleRunning);
    world.change(json!({"warm": {"running": 0}}));
    world.advance("14m");
    world.lease("a");
    world.settle();
    world.change(json!({"template": {"spec": {"environment": {"A": "1"}}}, "size": {"max": 1}}));
    world.live("1h");
    assert_eq!((world.member_of("a"), world.phase("a")), (member, LeasePhase::Ready));
}

// case 5 (kobe#233, jumpstarter#860)
#[test]
fn a_waiting_lease_ends_at_its_expiry_in_every_shape_of_pool() {
    let shapes = [
        json!({"size": {"max": 1}}),
        json!({"paused": true}),
        json!({"template": {"spec": {"requirements": ["provider:moon"]}}}),
    ];
    for mut spec in shapes {
        spec["lease"] = json!({"maxTerm": "1h"});
        let mut world = World::new(spec);
        world.lease("first");
        world.lease("waits");
        assert_eq!(world.phase("waits"), LeasePhase::Pending);
        world.advance("1h");
        let lease = world.get("waits");
        assert_eq!(lease.reason, Some(FailedReason::Expired));
        assert_eq!(lease.ended_at.expect("an end").millis_since(lease.created()), millis("1h"));
        assert!(lease.message.contains("before a member was bound"), "{}", lease.message);
    }
}

// case 5 (kobe#233, jumpstarter#860)
#[test]
fn a_lease_that_waits_for_a_failing_template_ends_at_its_expiry() {
    let mut world = World::new(json!({"lease": {"maxTerm": "30s"}}));
    world.lease("waits");
    for _ in 0..3 {
        world.fail(world.member_of("waits"));
        world.settle_deletes();
    }
    assert_eq!(world.status().phase, crate::object::PoolPhase::Degraded);
    world.advance("30s");
    assert_eq!(world.get("waits").reason, Some(FailedReason::Expired));
    assert!(
        world.happened.contains(&crate::pool::Happening::LeaseEnded(crate::pool::Ending::ExpiredUnbound))
    );
}

// case 6 (garm#47, kobe#36)
#[test]
fn demand_at_the_ceiling_is_remembered_and_the_size_never_exceeded() {
    let mut world = World::new(json!({"size": {"max": 2}}));
    for number in 0..6 {
        world.lease(&format!("lease-{number}"));
    }
    for number in 0..6 {
        world.settle();
        assert!(world.pool.members().count() <= 2);
        let name = format!("lease-{number}");
        assert_eq!(world.phase(&name), LeasePhase::Ready, "{name}");
        world.done(&name);
    }
}

// case 8 (agent-sandbox PR#1251)
#[test]
fn under_a_steady_stream_of_leases_refilling_never_stalls_nor_delays_binding() {
    let mut world = World::warm(json!({"size": {"max": 6}, "warm": {"running": 2}}));
    for number in 0..30 {
        let name = format!("lease-{number}");
        world.lease(&name);
        assert_eq!(world.phase(&name), LeasePhase::Starting, "bound at once");
        assert!(world.member(world.member_of(&name)).state == MemberState::Leased, "to a warm one");
        world.settle();
        assert_eq!(world.counts()[2], 2, "both are warm again");
        world.done(&name);
        world.advance("6s");
    }
}

// case 10 (agent-sandbox#764)
#[test]
fn after_a_template_change_fresh_members_go_first_and_a_stale_one_says_so() {
    let mut world = World::warm(json!({"size": {"max": 4}, "warm": {"running": 2}}));
    world.change(json!({"template": {"spec": {"environment": {"A": "1"}}}}));
    let fresh = world.in_state(MemberState::Building)[0];
    world.lease("stale");
    assert_eq!(world.state(world.member_of("stale")), MemberState::Leased, "running comes before building");
    assert!(
        world.message("stale").ends_with("was built from an older template"),
        "{}",
        world.message("stale")
    );
    let up = world.up(fresh);
    world.fact(fresh, up);
    world.lease("fresh");
    assert_eq!(world.member_of("fresh"), fresh);
    world.settle();
    assert!(world.message("stale").ends_with("was built from an older template"));
    assert_eq!(world.message("fresh"), "");
}

// case 15 (jumpstarter#241)
#[test]
fn states_never_run_out_of_order_when_the_next_lease_waits_for_a_release() {
    let mut world = World::warm(json!({"size": {"max": 1}}));
    world.lease("a");
    world.lease("b");
    world.settle();
    let member = world.member_of("a");
    world.recycle("a");
    assert_eq!(phases(&world, ["a", "b"]), [LeasePhase::Releasing, LeasePhase::Pending]);
    world.settle();
    assert_eq!(world.phase("b"), LeasePhase::Ready);
    assert_ne!(world.member_of("b"), member);
}

// case 16 (kobe#150)
#[test]
fn a_lease_that_ended_without_being_bound_is_final_and_quiet() {
    let mut world = World::new(json!({"paused": true, "lease": {"maxTerm": "1h"}}));
    world.lease("a");
    world.advance("1h");
    let (writes, failed) = (world.writes, world.get("a").clone());
    world.change(json!({"paused": false}));
    world.live("22h");
    assert_eq!(*world.get("a"), failed);
    assert_eq!(world.counts(), [0; 7]);
    assert!(world.writes - writes <= 2, "the change and the status that follows from it");
}

// case 17 (agent-sandbox#587)
#[test]
fn expiry_ends_the_member_the_lease_was_bound_to_and_no_namesake() {
    let mut world = World::warm(json!({"warm": {"running": 2}, "lease": {"maxTerm": "1h"}}));
    world.lease("a");
    world.settle();
    let bound = world.member_of("a");
    world.write("a", json!({"state": "Done"}), &holder()).expect("taken");
    world.settle();
    world.lease("a");
    world.settle();
    let next = world.member_of("a");
    world.advance("1h");
    assert!(world.pool.member(bound).is_none());
    assert_eq!(world.state(next), MemberState::Deleting);
    assert_eq!(world.counts()[6], 1);
}

// case 19 (garm#401, #635, #117)
#[test]
fn after_a_power_cut_every_transition_resumes_and_deletes_are_ordered_again() {
    let mut world = World::warm(json!({"size": {"max": 5}, "warm": {"running": 1, "stopped": 1}}));
    world.lease("leased");
    world.settle();
    world.lease("going");
    world.settle();
    world.done("going");
    world.lease("building");
    world.restart();
    let wants = world.pool.wants(&world.inputs);
    assert_eq!(wants.len(), world.pool.members().count(), "every member is wanted again");
    world.live("10s");
    assert_eq!(phases(&world, ["leased", "building"]), [LeasePhase::Ready; 2]);
    assert!(world.find("going").is_none());
    assert_eq!(world.counts(), [0, 0, 1, 1, 2, 0, 0]);
}

// case 19 (garm#401, #635, #117)
#[test]
fn a_machine_that_is_gone_after_a_power_cut_is_dropped_from_view() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let gone = world.only(MemberState::IdleRunning);
    world.restart();
    world.fact(gone, Machine::Absent);
    world.settle();
    assert!(world.pool.member(gone).is_none());
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 0]);
}

// case 20 (terraform-aws-github-runner#3265, ec2-plugin PR#945)
#[test]
fn the_idle_timer_and_the_floors_never_fight_over_a_member() {
    let mut world =
        World::warm(json!({"warm": {"running": 1, "stopped": 1, "stopAfter": "0s", "deleteAfter": "0s"}}));
    let acts = world.acts.len();
    world.live("7d");
    assert_eq!(world.acts.len(), acts);
    world.lease("a");
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 1, 1, 0, 0]);
    let acts = world.acts.len();
    world.live("1h");
    assert_eq!(world.acts.len(), acts);
}

// case 21 (actions-runner-controller#2707)
#[test]
fn spares_are_counted_on_top_of_what_is_leased() {
    let mut world = World::warm(json!({"size": {"max": 10}, "warm": {"running": 2}}));
    for name in ["a", "b", "c"] {
        world.lease(name);
        world.settle();
    }
    assert_eq!(world.counts(), [0, 0, 2, 0, 3, 0, 0]);
}

// case 22 (gitlab-runner#37673)
// case 23 (actions-runner-controller#3866)
#[test]
fn a_floor_of_one_builds_one_however_often_the_pool_looks() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    world.run();
    world.restart();
    assert_eq!(world.counts(), [1, 0, 0, 0, 0, 0, 0]);
    world.lease("a");
    world.lease("b");
    assert_eq!(world.counts(), [3, 0, 0, 0, 0, 0, 0], "one for each lease, and the floor");
}

// case 24 (actions-runner-controller#4197)
#[test]
fn a_machine_killed_from_outside_is_noticed_at_once() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let member = world.only(MemberState::IdleRunning);
    world.fact(member, Machine::Stopped);
    assert_ne!(world.state(member), MemberState::IdleRunning);
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 0]);
}

// case 26 (gitlab-runner#38725)
#[test]
fn cleaning_up_never_shares_the_leases_own_expired_deadline() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "lease": {"maxTerm": "1m"}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.advance("1m");
    assert!(!world.wants[&member].gone, "the agent still has its five seconds");
    world.advance("5s");
    assert!(world.wants[&member].gone);
}

// case 28 (gitpod#12209)
#[test]
fn a_machine_that_does_not_answer_for_a_while_keeps_its_lease() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.fact(member, Machine::Unknown { why: "the link is down".into() });
    world.advance("1h");
    assert_eq!((world.phase("a"), world.member_of("a")), (LeasePhase::Ready, member));
    assert_eq!(world.wants[&member].power, Power::Running);
}

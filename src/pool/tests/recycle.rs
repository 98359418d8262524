//! Recycles, as the pool sees them (rules R, and what of L concerns them).

use serde_json::json;
use ulid::Ulid;

use super::world::{World, holder, millis};
use crate::machine::{Failure, Machine, RecycleStage};
use crate::object::{FailedReason, LeasePhase, MemberState, NotRecycled, Outcome};

/// Its lease `a` is being recycled; the member and the order.
fn recycling(spec: serde_json::Value) -> (World, Ulid, Ulid) {
    let mut world = World::new(spec);
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.recycle("a");
    let order = world.order_of(member).id;
    (world, member, order)
}

fn script_failed() -> RecycleStage {
    RecycleStage::Failed(Failure { reason: "ScriptFailed".into(), message: "wipe: exit 3".into() })
}

// rule R1
// rule R2
// case 25 (actions-runner-controller#811)
#[test]
fn a_recycle_is_ordered_under_a_new_nonce_and_without_the_leases_keys() {
    let (world, member, order) = recycling(json!({"recycle": {"timeout": "2m", "reboot": true}}));
    assert_eq!((world.phase("a"), world.state(member)), (LeasePhase::Recycling, MemberState::Recycling));
    assert!(!world.has_key(member, "a"), "the keys are off the want that orders the recycle");
    let wanted = world.order_of(member);
    assert!(wanted.reboot);
    assert_eq!(wanted.by, world.steady.plus_millis(millis("2m")));
    assert_eq!(world.member(member).present().spec.recycle_nonce, order.to_string());
    assert!(world.get("a").ssh.is_none());
}

// rule R5
// rule L10
#[test]
fn a_recycled_member_is_idle_and_most_recently_used_with_one_reuse_more() {
    let mut world = World::warm(json!({"warm": {"running": 2}, "recycle": {}}));
    let annotation = |world: &World, member| {
        world.member(member).present().metadata.annotations["pools.ringleader.dev/reuses"].clone()
    };
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    assert_eq!(annotation(&world, member), "0");
    world.advance("1m");
    world.recycle("a");
    world.settle();
    assert!(world.find("a").is_none(), "the lease has gone with the recycle");
    assert_eq!(world.state(member), MemberState::IdleRunning);
    assert_eq!(annotation(&world, member), "1");
    world.lease("b");
    assert_eq!(world.member_of("b"), member);
}

// rule R6
// case 15 (jumpstarter#241)
#[test]
fn a_lease_that_waits_for_a_recycle_is_bound_when_it_has_succeeded_and_not_before() {
    let (mut world, member, order) = recycling(json!({"size": {"max": 1}, "recycle": {}}));
    world.lease("b");
    world.report(member, Ulid(99), RecycleStage::Succeeded);
    world.report(member, order, RecycleStage::UnderWay);
    assert_eq!((world.phase("a"), world.phase("b")), (LeasePhase::Recycling, LeasePhase::Pending));
    world.report(member, order, RecycleStage::Succeeded);
    assert!(world.find("a").is_none());
    assert_eq!((world.phase("b"), world.member_of("b")), (LeasePhase::Starting, member));
    world.report(member, order, script_failed());
    assert_eq!(world.state(member), MemberState::Leased, "a word on a recycle that is over says nothing");
}

// rule R3
#[test]
fn a_failed_script_deletes_the_member_fails_the_lease_and_is_told() {
    let (mut world, member, order) = recycling(json!({"recycle": {}}));
    world.report(member, order, script_failed());
    let name = world.member(member).metadata.name.clone();
    let lease = world.get("a");
    assert_eq!((lease.phase, lease.reason), (LeasePhase::Failed, Some(FailedReason::RecycleFailed)));
    assert_eq!(lease.message, format!("recycling {name} failed: ScriptFailed: wipe: exit 3"));
    let event = world.pool.events().next().expect("an event");
    assert_eq!(event.reason, "RecycleFailed");
    assert!(event.message.contains(&name) && event.message.contains("wipe"), "{}", event.message);
    world.settle();
    assert!(world.pool.member(member).is_none());
}

// rule R3
// case 13 (openkruise/agents PR#569, test-infra#12362)
#[test]
fn a_recycle_that_hangs_is_ended_by_its_timeout_alone_and_a_slow_one_is_left_until_then() {
    let (mut world, member, order) = recycling(json!({"recycle": {"timeout": "10m"}}));
    world.report(member, order, RecycleStage::UnderWay);
    world.advance("9m59s");
    assert_eq!(world.state(member), MemberState::Recycling);
    world.advance("1s");
    assert_eq!(world.get("a").reason, Some(FailedReason::RecycleTimedOut));
    assert_eq!(world.state(member), MemberState::Deleting);
    assert_eq!(world.pool.events().next().expect("an event").reason, "RecycleTimedOut");
}

// rule R3
// rule L17
// case 13 (openkruise/agents PR#569, test-infra#12362)
#[test]
fn a_machine_that_dies_stops_or_restarts_while_it_is_recycled_fails_the_recycle() {
    let machines: [fn(&mut World, Ulid) -> Machine; 3] = [
        |_, _| Machine::Absent,
        |_, _| Machine::Stopped,
        |world, member| {
            world.forget_boot(member);
            world.up(member)
        },
    ];
    for machine in machines {
        let (mut world, member, _) = recycling(json!({"recycle": {}}));
        let machine = machine(&mut world, member);
        world.fact(member, machine);
        assert_eq!(world.get("a").reason, Some(FailedReason::RecycleFailed));
        assert_eq!(world.state(member), MemberState::Deleting);
    }
}

// rule R3
#[test]
fn the_reboot_that_a_recycle_asks_for_does_not_fail_it() {
    let (mut world, member, order) = recycling(json!({"recycle": {"reboot": true}}));
    world.fact(member, Machine::Stopped);
    assert_eq!(world.state(member), MemberState::Recycling);
    world.report(member, order, RecycleStage::Succeeded);
    assert_eq!(world.state(member), MemberState::IdleRunning);
}

// rule R4
#[test]
fn a_recycle_that_was_interrupted_by_a_restart_of_the_daemon_is_the_same_recycle() {
    let (mut world, member, order) = recycling(json!({"recycle": {}}));
    world.restart();
    assert_eq!(world.order_of(member).id, order);
    world.report(member, order, RecycleStage::Succeeded);
    assert_eq!((world.state(member), world.member(member).reuses), (MemberState::IdleRunning, 1));
}

// rule R8
#[test]
fn what_changes_while_a_member_is_recycled_acts_on_it_once_it_is_idle() {
    let (mut world, member, order) = recycling(json!({"recycle": {}}));
    world.change(json!({"template": {"spec": {"environment": {"A": "1"}}}}));
    assert_eq!(world.state(member), MemberState::Recycling);
    world.report(member, order, RecycleStage::Succeeded);
    assert_eq!(world.state(member), MemberState::Deleting);

    let (mut world, member, order) = recycling(json!({"recycle": {}}));
    world.cordon(member, true).expect("cordoned");
    world.report(member, order, RecycleStage::Succeeded);
    assert_eq!(world.state(member), MemberState::IdleRunning, "cordoned and idle: it stays (rule C2)");
}

// rule R8
#[test]
fn after_its_last_reuse_a_member_is_deleted() {
    let mut world = World::new(json!({"recycle": {"maxReuses": 1}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.recycle("a");
    world.settle();
    world.lease("b");
    world.settle();
    assert_eq!(world.member_of("b"), member);
    world.recycle("b");
    let release = world.get("b").release.clone().expect("a release");
    assert_eq!(release.reason, Some(NotRecycled::MaxReusesReached));
}

// rule T5
#[test]
fn removing_the_recycle_block_leaves_a_running_recycle_its_timeout() {
    let (mut world, member, _) = recycling(json!({"recycle": {"timeout": "10m"}}));
    world.change(json!({"recycle": null}));
    world.advance("9m");
    assert_eq!(world.state(member), MemberState::Recycling);
    world.advance("1m");
    assert_eq!(world.get("a").reason, Some(FailedReason::RecycleTimedOut));
}

// rule L11
#[test]
fn done_while_recycling_stops_the_recycle_and_deletes_the_member_without_a_reason() {
    let (mut world, member, order) = recycling(json!({"recycle": {}}));
    world.done("a");
    let release = world.get("a").release.clone().expect("a release");
    assert_eq!((release.outcome, release.reason), (Some(Outcome::Deleted), None));
    assert!(world.wants[&member].recycle.is_none(), "it is stopped");
    world.report(member, order, RecycleStage::Succeeded);
    assert_eq!(world.state(member), MemberState::Deleting);
    world.settle();
    assert!(world.find("a").is_none() && world.pool.member(member).is_none());
}

// rule L12
#[test]
fn a_deleted_lease_whose_recycle_fails_goes_with_its_member_and_an_event_tells() {
    let (mut world, member, order) = recycling(json!({"recycle": {}}));
    world.delete_lease("a", &holder()).expect("taken");
    assert_eq!(world.phase("a"), LeasePhase::Recycling, "Recycle was already written");
    world.report(member, order, script_failed());
    assert!(world.find("a").is_none());
    assert_eq!(world.pool.events().next().expect("an event").reason, "RecycleFailed");
}

// rule L15
#[test]
fn a_lease_failed_by_its_recycle_is_acknowledged_by_done() {
    let (mut world, member, order) = recycling(json!({"recycle": {}}));
    world.report(member, order, script_failed());
    world.recycle("a");
    assert_eq!(world.phase("a"), LeasePhase::Failed, "it has state Recycle already");
    world.done("a");
    assert!(world.find("a").is_none());
}

// rule L13
#[test]
fn a_lease_being_recycled_does_not_expire() {
    let spec = json!({"recycle": {"timeout": "2h"}, "lease": {"maxTerm": "1h"}});
    let (mut world, member, order) = recycling(spec);
    world.advance("1h30m");
    assert_eq!(world.phase("a"), LeasePhase::Recycling);
    world.report(member, order, RecycleStage::Succeeded);
    assert_eq!(world.state(member), MemberState::IdleRunning);
}

// rule D1
#[test]
fn deleting_the_pool_stops_a_running_recycle_and_deletes_its_member() {
    let (mut world, member, _) = recycling(json!({"recycle": {}}));
    world.delete_pool();
    let release = world.get("a").release.clone().expect("a release");
    assert_eq!(release.reason, Some(NotRecycled::PoolDeleted));
    assert!(world.wants[&member].recycle.is_none());
    world.settle();
    assert!(world.pool.has_ended());
}

// rule L21
#[test]
fn waits_go_on_evenly_when_somebody_sets_the_wall_clock() {
    for step in ["1d", "-1d"] {
        let step = step.strip_prefix('-').map_or_else(|| millis(step), |back| -millis(back));
        let (mut world, member, _) = recycling(json!({"recycle": {"timeout": "10m"}}));
        world.step_wall(step);
        world.advance("9m");
        assert_eq!(world.state(member), MemberState::Recycling);
        world.advance("1m");
        assert_eq!(world.get("a").reason, Some(FailedReason::RecycleTimedOut));

        let mut world = World::warm(json!({"warm": {"running": 1, "stopAfter": "15m"}}));
        world.change(json!({"warm": {"running": 0}}));
        world.step_wall(step);
        world.advance("14m");
        assert_eq!(world.counts()[2], 1, "it has not been idle for long enough");
        world.advance("1m");
        assert_eq!(world.counts()[2], 0);

        let mut world = World::new(json!({"size": {"max": 1}, "lease": {"maxTerm": "7d"}}));
        world.lease("a");
        let member = world.member_of("a");
        world.step_wall(step);
        world.advance("29m");
        assert_eq!(world.state(member), MemberState::Building);
        world.advance("1m");
        assert_eq!(world.state(member), MemberState::Deleting);
    }
}

// rule R1
#[test]
fn every_recycle_has_a_nonce_of_its_own_and_a_member_that_is_not_recycled_keeps_its_last() {
    let (mut world, member, first) = recycling(json!({"recycle": {}}));
    world.settle();
    assert_eq!(world.member(member).present().spec.recycle_nonce, first.to_string());
    assert!(world.wants[&member].recycle.is_none());
    world.lease("b");
    world.settle();
    world.recycle("b");
    assert_ne!(world.order_of(member).id, first);
}

// rule L17
#[test]
fn a_member_deleted_by_hand_while_recycling_fails_the_recycle() {
    let (mut world, member, _) = recycling(json!({"recycle": {}}));
    world.delete_member(member);
    assert_eq!(world.get("a").reason, Some(FailedReason::RecycleFailed));
    assert_eq!(world.state(member), MemberState::Deleting);
}

// rule R3
// rule L17
#[test]
fn a_machine_that_is_down_when_its_lease_ends_is_started_for_the_recycle() {
    let mut world = World::new(json!({"recycle": {"timeout": "4m"}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.fact(member, Machine::Stopped);
    world.recycle("a");
    assert_eq!(world.state(member), MemberState::Recycling);
    world.fact(member, Machine::Stopped);
    assert_eq!(world.state(member), MemberState::Recycling, "it was down before");
    let order = world.order_of(member).id;
    world.report(member, order, RecycleStage::Succeeded);
    assert_eq!((world.state(member), world.member(member).reuses), (MemberState::IdleRunning, 1));
}

// rule L12
// rule L15
#[test]
fn a_lease_failed_by_its_recycle_goes_when_it_is_deleted() {
    let (mut world, member, order) = recycling(json!({"recycle": {}}));
    world.report(member, order, script_failed());
    world.delete_lease("a", &holder()).expect("taken");
    assert!(world.find("a").is_none());
}

// rule R5
// rule R2
#[test]
fn a_recycle_has_succeeded_only_when_the_agent_has_confirmed_that_the_keys_are_gone() {
    let (mut world, member, order) = recycling(json!({"recycle": {}}));
    let Machine::Running(mut running) = world.up(member) else { panic!("it is up") };
    running.keys_confirmed = false;
    let recycle = Some(crate::machine::RecycleReport { id: order, stage: RecycleStage::Succeeded });
    let observed_revision = world.wants[&member].revision;
    let machine = Machine::Running(running);
    let fact = crate::machine::Fact { member_uid: member, observed_revision, machine, recycle };
    world.command(crate::pool::Command::Fact(fact)).expect("a fact is never refused");
    world.run();
    assert_eq!(world.state(member), MemberState::Recycling);
    world.report(member, order, RecycleStage::Succeeded);
    assert_eq!(world.state(member), MemberState::IdleRunning);
}

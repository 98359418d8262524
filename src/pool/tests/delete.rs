//! Deleting a pool: rules D1, D2, D4, C3, L16.

use serde_json::json;

use super::world::*;
use crate::object::{FailedReason, LeasePhase, MemberState, PoolPhase};
use crate::pool::*;

// rule D1
// rule L16
#[test]
fn a_deleted_pool_refuses_new_leases_fails_waiting_ones_and_drops_what_is_idle() {
    let mut world = World::warm(json!({"size": {"max": 3}, "warm": {"running": 2}}));
    world.lease("leased");
    world.settle();
    world.change(json!({"paused": true}));
    world.lease("waits");
    world.delete_pool();
    assert_eq!(world.get("waits").reason, Some(FailedReason::PoolDeleted));
    assert_eq!(world.counts(), [0, 0, 0, 0, 1, 0, 2]);
    let denied = world.ask("late", json!({})).expect_err("it is being deleted");
    assert_eq!(denied.answer(), Answer::Forbidden);
    let later = json!({"expiresAt": world.now.plus_millis(millis("1h"))});
    world.write("leased", later, &holder()).expect("renewals stay allowed");
    assert_eq!(world.phase("leased"), LeasePhase::Ready);
}

// rule D2
// case 18 (hive#1980, kobe PR#119)
#[test]
fn a_terminating_pool_says_what_it_waits_for_and_goes_with_its_last_member() {
    let mut world = World::warm(json!({"warm": {"running": 2}}));
    let last = world.lease("a");
    world.lease("b");
    world.settle();
    world.write("b", json!({"expiresAt": world.now.plus_millis(1000)}), &holder()).expect("taken");
    world.delete_pool();
    world.settle();
    let expires = world.pool.lease(last).expect("a").expires_at();
    assert_eq!(world.status().phase, PoolPhase::Terminating);
    assert_eq!(
        world.status().message,
        format!("waits for 2 leases to end, the last of which expires at {expires}")
    );
    world.done("b");
    world.settle();
    assert_eq!(world.status().message, format!("waits for 1 lease to end, which expires at {expires}"));
    assert!(world.pool.row().present().is_some());
    world.done("a");
    world.settle();
    assert!(world.pool.row().is_gone());
    assert!(world.pool.has_ended(), "nothing of it is left");
}

// rule D4
#[test]
fn failed_leases_outlive_the_pool_until_acknowledged() {
    let mut world = World::warm(json!({"size": {"max": 1}}));
    world.lease("bound");
    world.lease("waits");
    world.settle();
    world.done("bound");
    world.delete_pool();
    world.settle();
    assert!(world.pool.row().is_gone(), "the object is gone and its name is free");
    assert!(!world.pool.has_ended());
    world.restart();
    assert_eq!(world.get("waits").reason, Some(FailedReason::PoolDeleted));
    world.done("waits");
    assert!(world.pool.has_ended());
}

// rule C3
#[test]
fn deleting_the_pool_deletes_cordoned_members_too() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.cordon(world.only(MemberState::IdleRunning), true).expect("cordoned");
    world.settle();
    world.delete_pool();
    world.settle();
    assert!(world.pool.has_ended());
}

// rule D1
#[test]
fn a_lease_that_loses_its_member_while_the_pool_goes_fails_with_pool_deleted() {
    let mut world = World::new(json!({}));
    world.lease("a");
    world.delete_pool();
    world.fail(world.only(MemberState::Building));
    assert_eq!(world.get("a").reason, Some(FailedReason::PoolDeleted));
}

// rule D2
#[test]
fn a_foreign_finalizer_keeps_the_pools_object_and_nothing_else() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let mut object = world.pool.row().present().expect("its finalizer keeps it");
    object.metadata.finalizers.push("example.org/audit".into());
    world.command(Command::UpdatePool { object: Box::new(object) }).expect("taken");
    world.delete_pool();
    world.settle();
    let mut object = world.pool.row().present().expect("its finalizer keeps it");
    assert_eq!(object.metadata.finalizers, ["example.org/audit"]);
    object.metadata.finalizers.clear();
    world.command(Command::UpdatePool { object: Box::new(object) }).expect("taken");
    world.run();
    assert!(world.pool.has_ended());
}

// rule D1
#[test]
fn a_lease_that_is_starting_when_its_pool_goes_still_gets_its_member() {
    let mut world = World::new(json!({}));
    world.lease("a");
    world.delete_pool();
    assert_eq!(world.state(world.member_of("a")), MemberState::Building);
    world.settle();
    assert_eq!(world.phase("a"), LeasePhase::Ready);
    world.done("a");
    world.settle();
    assert!(world.pool.has_ended());
}

// rule D4
#[test]
fn failed_leases_that_nobody_acknowledges_keep_the_row_until_their_retention_passes() {
    let mut world = World::warm(json!({"size": {"max": 1}, "lease": {"failedRetention": "2h"}}));
    world.lease("bound");
    world.lease("waits");
    world.settle();
    world.delete_pool();
    world.done("bound");
    world.settle();
    assert!(world.pool.row().is_gone() && !world.pool.has_ended());
    world.advance("119m");
    assert!(!world.pool.has_ended());
    world.advance("1m");
    assert!(world.pool.has_ended());
}

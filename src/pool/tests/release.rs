//! How leases end: rules L9 to L15, A2, C1, and R8 as far as nothing is recycled yet.

use serde_json::json;

use super::world::*;
use crate::machine::Machine;
use crate::object::{FailedReason, LeasePhase, LeaseState, MemberState, NotRecycled, Outcome};
use crate::pool::*;

/// A Ready lease `a` on a pool with this spec.
fn ready(spec: serde_json::Value) -> World {
    let mut world = World::warm(spec);
    world.lease("a");
    world.settle();
    assert_eq!(world.phase("a"), LeasePhase::Ready);
    world
}

// rule L9
// rule A2
#[test]
fn done_revokes_the_keys_first_and_then_deletes_the_member() {
    let mut world = ready(json!({}));
    let member = world.member_of("a");
    world.done("a");
    assert_eq!((world.phase("a"), world.state(member)), (LeasePhase::Releasing, MemberState::Deleting));
    assert!(!world.has_key(member, "a"));
    assert!(!world.wants[&member].gone);
    let up = world.up(member);
    world.fact(member, up);
    assert!(world.wants[&member].gone, "the agent has confirmed that the keys are gone");
    assert!(world.find("a").is_none(), "the delete is accepted, the machine may still be going down");
    assert_eq!(world.counts()[6], 1);
}

// rule A2
#[test]
fn a_delete_waits_five_seconds_for_the_agents_word_and_no_longer() {
    let mut world = ready(json!({}));
    let member = world.member_of("a");
    world.done("a");
    world.advance("4s");
    assert!(!world.wants[&member].gone);
    world.advance("1s");
    assert!(world.wants[&member].gone);
    assert!(world.find("a").is_none());
}

// rule A2
#[test]
fn a_delete_does_not_wait_for_keys_the_owner_has_anyway() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.ask("a", json!({"authorizedKeys": ["ssh-ed25519 OWNER"]})).expect("taken");
    world.settle();
    let member = world.member_of("a");
    world.done("a");
    assert!(world.wants[&member].gone);
}

// rule L9
#[test]
fn done_while_starting_deletes_the_member() {
    let mut world = World::new(json!({}));
    world.lease("a");
    let member = world.member_of("a");
    world.done("a");
    assert!(world.find("a").is_none());
    assert!(world.wants[&member].gone);
}

// rule L10
// rule R8
#[test]
fn recycle_without_a_recycle_block_deletes_and_says_why() {
    let mut world = ready(json!({}));
    let member = world.member_of("a");
    world.recycle("a");
    let release = world.get("a").release.clone().expect("a release");
    assert_eq!(
        (release.outcome, release.reason),
        (Some(Outcome::Deleted), Some(NotRecycled::RecycleDisabled))
    );
    assert_eq!(release.message, "the pool has no recycle block");
    world.settle();
    assert!(world.pool.member(member).is_none());
}

// rule R8
#[test]
fn the_first_reason_that_applies_is_the_one_reported() {
    let with_block = json!({"recycle": {}, "maxAge": "1h"});
    let reason = |world: &World| world.get("a").release.clone().expect("a release").reason;

    let mut world = World::new(with_block.clone());
    world.capabilities = Vec::new();
    world.lease("a");
    world.settle();
    world.recycle("a");
    assert_eq!(reason(&world), Some(NotRecycled::RecycleUnsupported), "the agent is too old");

    let mut world = ready(json!({"recycle": {"reset": "disk"}}));
    world.recycle("a");
    assert_eq!(reason(&world), Some(NotRecycled::RecycleUnsupported), "the provider cannot reset");

    let mut world = ready(with_block.clone());
    world.cordon(world.member_of("a"), true).expect("cordoned");
    world.recycle("a");
    assert_eq!(reason(&world), Some(NotRecycled::Cordoned));

    let mut world = ready(with_block.clone());
    world.cordon(world.member_of("a"), true).expect("cordoned");
    world.change(json!({"template": {"spec": {"environment": {"A": "1"}}}}));
    world.recycle("a");
    assert_eq!(reason(&world), Some(NotRecycled::TemplateChanged));

    let mut world = ready(with_block.clone());
    world.change(json!({"template": {"spec": {"environment": {"A": "1"}}}}));
    world.advance("1h");
    world.recycle("a");
    assert_eq!(reason(&world), Some(NotRecycled::MaxAgeReached));

    let mut world = ready(with_block);
    world.advance("1h");
    world.delete_pool();
    world.recycle("a");
    assert_eq!(reason(&world), Some(NotRecycled::PoolDeleted));
}

// rule L10
#[test]
fn a_member_that_never_carried_the_keys_returns_unused() {
    let mut world = World::new(json!({}));
    world.lease("a");
    let member = world.member_of("a");
    assert!(!world.has_key(member, "a"), "a member being built carries no lease's keys");
    world.recycle("a");
    assert!(world.find("a").is_none());
    let up = world.up(member);
    world.fact(member, up);
    assert_eq!((world.state(member), world.member(member).reuses), (MemberState::IdleRunning, 0));
}

// rule L12
#[test]
fn deleting_a_lease_is_a_release_kept_by_the_finalizer_until_it_is_carried_out() {
    let mut world = ready(json!({}));
    let member = world.member_of("a");
    world.delete_lease("a", &holder()).expect("taken");
    let lease = world.get("a");
    assert_eq!(lease.phase, LeasePhase::Releasing);
    assert!(lease.metadata.deletion_timestamp.is_some());
    assert_eq!(lease.metadata.finalizers, [crate::object::RELEASE_FINALIZER]);
    world.settle();
    assert!(world.find("a").is_none() && world.pool.member(member).is_none());
}

// rule L12
#[test]
fn a_foreign_finalizer_keeps_the_object_and_nothing_else() {
    let mut world = World::warm(json!({"size": {"max": 1}}));
    world.lease("a");
    world.lease("waits");
    world.settle();
    for name in ["a", "waits"] {
        let mut object = world.get(name).present();
        object.metadata.finalizers.push("example.org/audit".into());
        world.update(name, object, &holder()).expect("a finalizer is metadata");
    }
    world.lease("next");
    world.delete_lease("waits", &holder()).expect("taken");
    world.delete_lease("a", &holder()).expect("taken");
    world.settle();
    assert_eq!(world.phase("next"), LeasePhase::Ready, "neither holds its place or its member");
    assert_eq!(world.get("waits").metadata.finalizers, ["example.org/audit"]);
    assert_eq!(world.status().leases.pending, 0);
    for name in ["a", "waits"] {
        let mut object = world.get(name).present();
        object.metadata.finalizers.clear();
        world.update(name, object, &holder()).expect("taken");
        assert!(world.find(name).is_none());
    }
}

// rule L13
#[test]
fn expiry_fails_the_lease_and_deletes_the_member_never_recycling_it() {
    let mut world = ready(json!({"recycle": {}, "lease": {"maxTerm": "1h"}}));
    let member = world.member_of("a");
    world.advance("1h");
    let lease = world.get("a");
    assert_eq!((lease.phase, lease.reason), (LeasePhase::Failed, Some(FailedReason::Expired)));
    assert!(lease.ssh.is_none() && lease.member.is_none());
    assert_eq!(world.state(member), MemberState::Deleting);
    assert!(!world.has_key(member, "a"));
}

// rule L13
#[test]
fn a_released_lease_does_not_expire() {
    let mut world = ready(json!({"lease": {"maxTerm": "1h"}}));
    world.advance("59m");
    world.now = world.now.plus_millis(59_000);
    world.done("a");
    world.advance("4s");
    assert_eq!(world.phase("a"), LeasePhase::Releasing);
}

// rule L14
#[test]
fn done_or_recycle_on_a_pending_lease_cancels_it() {
    let mut world = World::warm(json!({"size": {"max": 1}}));
    for name in ["bound", "done", "recycle", "deleted"] {
        world.lease(name);
    }
    world.settle();
    world.done("done");
    world.recycle("recycle");
    world.delete_lease("deleted", &holder()).expect("taken");
    for name in ["done", "recycle", "deleted"] {
        assert!(world.find(name).is_none(), "{name}");
    }
    assert_eq!(world.phase("bound"), LeasePhase::Ready);
}

// rule L15
#[test]
fn a_failed_lease_stays_until_its_holder_has_seen_it() {
    for end in ["Done", "Recycle"] {
        let mut world = ready(json!({"lease": {"maxTerm": "1h"}}));
        world.advance("1h");
        let keys = world.write("a", json!({"authorizedKeys": []}), &holder());
        assert!(matches!(keys, Err(Denied::OnlyStateMayChange { .. })));
        world.write("a", json!({"state": end}), &holder()).expect("acknowledged");
        assert!(world.find("a").is_none());
    }
    let mut world = ready(json!({"lease": {"maxTerm": "1h"}}));
    world.advance("1h");
    world.delete_lease("a", &holder()).expect("acknowledged");
    assert!(world.find("a").is_none());
}

// rule L15
#[test]
fn a_failed_lease_goes_when_its_retention_passes() {
    let mut world = ready(json!({"lease": {"maxTerm": "1h", "failedRetention": "2h"}}));
    world.advance("1h");
    world.advance("119m");
    assert_eq!(world.phase("a"), LeasePhase::Failed);
    world.advance("1m");
    assert!(world.find("a").is_none());
}

// rule L15
#[test]
fn of_too_many_failed_leases_the_oldest_go_first() {
    let mut world = World::new(json!({"size": {"max": 1}, "lease": {"maxTerm": "1h", "maxPending": 3}}));
    for name in ["bound", "one", "two", "three"] {
        world.lease(name);
        world.advance("1s");
    }
    world.advance("2h");
    assert!(world.find("bound").is_none(), "its failure was the oldest of four");
    assert_eq!(phases(&world, ["one", "two", "three"]), [LeasePhase::Failed; 3]);
}

// rule L17
#[test]
fn a_member_lost_while_releasing_is_deleted_and_the_lease_goes() {
    let mut world = ready(json!({}));
    let member = world.member_of("a");
    world.done("a");
    world.fact(member, Machine::Stopped);
    assert!(world.wants[&member].gone, "there is nobody left to drop the keys");
    assert!(world.find("a").is_none());
}

// rule L10
#[test]
fn a_member_lost_before_anybody_acted_on_the_release_leaves_its_outcome_to_be_read() {
    let mut world = ready(json!({}));
    let member = world.member_of("a");
    let mut object = world.get("a").present();
    object.metadata.finalizers.push("example.org/audit".into());
    object.spec.state = LeaseState::Recycle;
    let uid = world.get("a").uid();
    let write =
        Command::UpdateLease { uid, object: Box::new(object), by: holder(), standing: Standing::Other };
    world.command(write).expect("Recycle is taken");
    world.fact(member, Machine::Absent);
    let lease = world.get("a");
    let release = lease.release.as_ref().expect("it says what became of it");
    assert_eq!((release.requested, release.outcome), (Some(LeaseState::Recycle), Some(Outcome::Deleted)));
    assert!(lease.ended_at.is_some());
}

// rule A2
// case 25 (actions-runner-controller#811)
#[test]
fn access_is_gone_from_the_want_before_the_next_holder_comes() {
    let mut world = World::new(json!({}));
    world.lease("a");
    let member = world.member_of("a");
    world.recycle("a");
    world.lease("b");
    assert_eq!(world.member_of("b"), member);
    world.settle();
    assert!(world.has_key(member, "b") && !world.has_key(member, "a"));
}

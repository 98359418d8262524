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

    let mut world = ready(json!({"recycle": {"maxReuses": 1}, "maxAge": "1h"}));
    world.recycle("a");
    world.settle();
    world.lease("a");
    world.settle();
    world.advance("1h");
    world.recycle("a");
    assert_eq!(reason(&world), Some(NotRecycled::MaxReusesReached));

    let mut world = ready(json!({"maxAge": "1h"}));
    world.cordon(world.member_of("a"), true).expect("cordoned");
    world.advance("1h");
    world.recycle("a");
    assert_eq!(reason(&world), Some(NotRecycled::RecycleDisabled));

    let mut world = ready(json!({"recycle": {"reset": "disk"}}));
    world.cordon(world.member_of("a"), true).expect("cordoned");
    world.recycle("a");
    assert_eq!(reason(&world), Some(NotRecycled::Cordoned), "though it could not be recycled either");

    for spec in [with_block, json!({})] {
        let mut world = ready(spec);
        world.advance("1h");
        world.delete_pool();
        world.recycle("a");
        assert_eq!(reason(&world), Some(NotRecycled::PoolDeleted));
    }
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

// rule L9
// rule L13
#[test]
fn expiry_while_starting_deletes_the_member() {
    let mut world = World::new(json!({"size": {"max": 1}, "lease": {"maxTerm": "10m"}}));
    world.lease("a");
    let member = world.member_of("a");
    world.advance("10m");
    assert_eq!(world.get("a").reason, Some(FailedReason::Expired));
    assert!(world.get("a").message.starts_with("expired at"), "{}", world.get("a").message);
    assert!(world.wants[&member].gone, "it carried no key that would have to go first");
}

/// The lease's object stays when it ends, for a test to read.
fn keep_the_object(world: &mut World) {
    let mut object = world.get("a").present();
    object.metadata.finalizers.push("example.org/audit".into());
    world.update("a", object, &holder()).expect("a finalizer is metadata");
}

// rule L10
#[test]
fn the_release_of_a_lease_tells_what_was_asked_and_what_came_of_it() {
    let told = |world: &World| {
        let release = world.get("a").present().status.release.expect("a release");
        (release.requested, release.outcome, release.reason, release.at)
    };
    let mut world = ready(json!({"recycle": {}}));
    keep_the_object(&mut world);
    world.recycle("a");
    let at = Some(world.now);
    assert_eq!(told(&world), (Some(LeaseState::Recycle), None, None, at), "it is under way");
    world.advance("1m");
    world.settle();
    assert_eq!(told(&world), (Some(LeaseState::Recycle), Some(Outcome::Recycled), None, at));
    assert_eq!((world.get("a").member.clone(), world.get("a").ended_at), (None, at));

    let mut world = World::new(json!({}));
    world.lease("a");
    keep_the_object(&mut world);
    world.recycle("a");
    let at = Some(world.now);
    assert_eq!(
        told(&world),
        (Some(LeaseState::Recycle), Some(Outcome::Recycled), None, at),
        "it was never used"
    );

    let mut world = ready(json!({}));
    keep_the_object(&mut world);
    world.recycle("a");
    world.settle();
    let reason = Some(NotRecycled::RecycleDisabled);
    assert_eq!(told(&world), (Some(LeaseState::Recycle), Some(Outcome::Deleted), reason, Some(world.now)));

    let mut world = ready(json!({"recycle": {}}));
    keep_the_object(&mut world);
    world.delete_lease("a", &owner()).expect("the owner may end it");
    world.settle();
    assert_eq!(told(&world), (Some(LeaseState::Done), Some(Outcome::Deleted), None, Some(world.now)));
}

// rule L10
#[test]
fn a_member_that_was_sent_the_keys_is_recycled_though_the_lease_was_never_ready() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "recycle": {}}));
    world.lease("a");
    let member = world.member_of("a");
    assert!(world.has_key(member, "a"));
    world.recycle("a");
    assert_eq!((world.phase("a"), world.state(member)), (LeasePhase::Recycling, MemberState::Recycling));
    world.settle();
    assert_eq!(world.member(member).reuses, 1);
}

// rule L10
// rule C1
#[test]
fn an_unused_member_that_is_cordoned_does_not_return() {
    let mut world = World::new(json!({"recycle": {}}));
    world.lease("a");
    let member = world.member_of("a");
    world.cordon(member, true).expect("cordoned");
    keep_the_object(&mut world);
    world.recycle("a");
    assert_eq!(world.state(member), MemberState::Deleting);
    assert_eq!(world.get("a").release.clone().expect("a release").reason, Some(NotRecycled::Cordoned));
}

// rule L12
#[test]
fn recycle_cannot_be_written_once_a_lease_is_deleted() {
    let mut world = ready(json!({"recycle": {}}));
    let member = world.member_of("a");
    let lease = world.get("a");
    let (uid, mut object) = (lease.uid(), lease.present());
    let delete = Command::DeleteLease { uid, by: holder(), standing: Standing::Other };
    world.command(delete).expect("taken");
    object.spec.state = LeaseState::Recycle;
    let write =
        Command::UpdateLease { uid, object: Box::new(object), by: holder(), standing: Standing::Other };
    let (from, to) = (LeaseState::Done, LeaseState::Recycle);
    assert_eq!(world.command(write), Err(Denied::StateMovedBack { from, to }));
    world.run();
    assert_eq!(world.state(member), MemberState::Deleting);
}

// rule L15
// rule T5
#[test]
fn a_lower_max_pending_and_a_shorter_retention_act_on_failed_leases_at_once() {
    let spec =
        json!({"size": {"max": 1}, "lease": {"maxTerm": "1h", "maxPending": 3, "failedRetention": "7d"}});
    let mut world = World::new(spec);
    for name in ["first", "second", "third"] {
        world.lease(name);
        world.advance("1s");
    }
    world.advance("1h");
    assert_eq!(phases(&world, ["first", "second", "third"]), [LeasePhase::Failed; 3]);
    world.change(json!({"lease": {"maxPending": 2}}));
    assert!(world.find("first").is_none(), "it was the oldest");
    assert_eq!(phases(&world, ["second", "third"]), [LeasePhase::Failed; 2]);
    world.change(json!({"lease": {"failedRetention": "0s"}}));
    assert!(world.find("second").is_none() && world.find("third").is_none());
}

// rule L17
#[test]
fn a_member_deleted_by_hand_while_releasing_goes_on_going() {
    let mut world = ready(json!({}));
    let member = world.member_of("a");
    world.done("a");
    world.delete_member(member);
    assert_eq!((world.phase("a"), world.state(member)), (LeasePhase::Releasing, MemberState::Deleting));
    world.settle();
    assert!(world.find("a").is_none() && world.pool.member(member).is_none());
    assert_eq!(world.pool.events().count(), 0, "it was no loss");
}

// rule C1
#[test]
fn a_cordon_undone_before_the_lease_ends_is_undone_wholly() {
    let mut world = ready(json!({"recycle": {}}));
    let member = world.member_of("a");
    world.cordon(member, true).expect("cordoned");
    world.cordon(member, false).expect("uncordoned");
    world.recycle("a");
    world.settle();
    assert_eq!((world.state(member), world.member(member).reuses), (MemberState::IdleRunning, 1));
}

// rule L15
#[test]
fn a_failed_lease_that_a_foreign_finalizer_keeps_says_still_why_it_failed() {
    let mut world = ready(json!({"lease": {"maxTerm": "1h"}}));
    keep_the_object(&mut world);
    world.advance("1h");
    world.done("a");
    let lease = world.get("a");
    assert_eq!((lease.phase, lease.reason), (LeasePhase::Failed, Some(FailedReason::Expired)));
    assert_eq!(world.status().leases.failed, 0, "it counts no more");
}

// rule R8
// rule R8
#[test]
fn a_member_whose_provider_can_reset_it_is_recycled_with_the_reset() {
    let mut world = World::new(json!({"recycle": {"reset": "disk"}}));
    let able = ProviderState { resetting: Resetting::Possible, ..world.inputs.providers[0].clone() };
    let other = ProviderState { name: "other".into(), ..world.inputs.providers[0].clone() };
    world.inputs.providers = [able, other].into();
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.recycle("a");
    assert_eq!(world.order_of(member).reset, crate::object::Reset::Disk);
}

//! A member that is lost to its lease: rule L17.

use serde_json::json;

use super::world::*;
use crate::machine::Machine;
use crate::object::{FailedReason, LeasePhase, MemberState};

/// A Ready lease `a`.
fn ready() -> World {
    let mut world = World::warm(json!({}));
    world.lease("a");
    world.settle();
    assert_eq!(world.phase("a"), LeasePhase::Ready);
    world
}

// rule L17
// rule L19
#[test]
fn a_leased_machine_that_restarts_by_itself_is_down_until_it_is_configured_again() {
    for comes_back in [true, false] {
        let mut world = ready();
        let member = world.member_of("a");
        world.forget_boot(member);
        let Machine::Running(mut running) = world.up(member) else { panic!("it is up") };
        (running.configured, running.keys_confirmed) = (false, false);
        world.fact(member, Machine::Running(running));
        assert_eq!(world.phase("a"), LeasePhase::Starting);
        world.advance("4m");
        if comes_back {
            let up = world.up(member);
            world.fact(member, up);
            assert_eq!(world.phase("a"), LeasePhase::Ready);
        }
        world.advance("2m");
        let reason = (!comes_back).then_some(FailedReason::MemberLost);
        assert_eq!(world.get("a").reason, reason);
    }
}

// rule L17
#[test]
fn a_leased_machine_that_stops_by_itself_is_started_again() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.fact(member, Machine::Stopped);
    assert_eq!(world.phase("a"), LeasePhase::Starting);
    assert!(world.message("a").contains("stopped by itself"), "{}", world.message("a"));
    assert_eq!(world.wants[&member].power, crate::machine::Power::Running);
    world.advance("4m");
    let up = world.up(member);
    world.fact(member, up);
    assert_eq!((world.phase("a"), world.member_of("a")), (LeasePhase::Ready, member));
    world.advance("10m");
    assert_eq!(world.phase("a"), LeasePhase::Ready);
}

// rule L17
#[test]
fn a_leased_machine_that_is_not_back_in_time_is_lost() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.fact(member, Machine::Stopped);
    world.advance("5m");
    assert_eq!(world.phase("a"), LeasePhase::Failed);
    assert_eq!(world.get("a").reason, Some(FailedReason::MemberLost));
    assert!(world.wants[&member].gone);
    assert!(world.message("a").ends_with("not up again within 5 minutes"), "{}", world.message("a"));
    assert_eq!(world.pool.events().filter(|event| event.reason == "MemberLost").count(), 1);
}

// rule L17
#[test]
fn a_member_deleted_by_hand_is_lost_to_its_lease() {
    let mut world = World::warm(json!({"warm": {"running": 2}}));
    world.lease("ready");
    world.settle();
    let lost = world.member_of("ready");
    world.delete_member(lost);
    assert_eq!(world.get("ready").reason, Some(FailedReason::MemberLost));
    world.lease("starting");
    let member = world.member_of("starting");
    world.delete_member(member);
    world.settle();
    assert_eq!(world.phase("starting"), LeasePhase::Ready, "one not yet Ready is bound again");
    assert_ne!(world.member_of("starting"), member);
}

// rule L17
#[test]
fn a_leased_machine_that_is_gone_or_broken_for_good_is_lost() {
    let broken = crate::machine::Failure { reason: "MachineBroken".into(), message: "disk".into() };
    for machine in [Machine::Absent, Machine::Failed(broken)] {
        let mut world = World::warm(json!({"warm": {"running": 1}, "recycle": {}}));
        world.lease("a");
        world.settle();
        let member = world.member_of("a");
        world.fact(member, machine);
        assert_eq!(world.get("a").reason, Some(FailedReason::MemberLost));
        assert_eq!(world.state(member), MemberState::Deleting);
        let event = world.pool.events().next().expect("an event");
        assert!(event.message.contains(&world.member(member).metadata.name), "{}", event.message);
    }
}

// rule L17
// rule L7
#[test]
fn a_lease_that_was_never_ready_gets_another_member_when_its_own_stays_down() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    let member = world.member_of("a");
    world.fact(member, Machine::Stopped);
    world.advance("4m59s");
    assert_eq!(world.member_of("a"), member);
    world.advance("1s");
    assert_ne!(world.member_of("a"), member);
    world.settle();
    assert_eq!((world.phase("a"), world.pool.events().count()), (LeasePhase::Ready, 0));
}

// rule L17
#[test]
fn a_member_lost_while_releasing_is_deleted_and_the_lease_goes() {
    let mut world = ready();
    let member = world.member_of("a");
    world.done("a");
    world.fact(member, Machine::Stopped);
    assert!(world.wants[&member].gone, "there is nobody left to drop the keys");
    assert!(world.find("a").is_none());
}

// rule L17
#[test]
fn a_member_deleted_by_hand_while_releasing_goes_on_going() {
    let mut world = ready();
    let member = world.member_of("a");
    world.done("a");
    world.delete_member(member);
    assert_eq!((world.phase("a"), world.state(member)), (LeasePhase::Releasing, MemberState::Deleting));
    world.settle();
    assert!(world.find("a").is_none() && world.pool.member(member).is_none());
    assert_eq!(world.pool.events().count(), 0, "it was no loss");
}

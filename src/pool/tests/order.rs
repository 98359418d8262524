//! Which member a lease gets within one step of the order, and whose turn it is: rules L5, L7.

use serde_json::json;
use ulid::Ulid;

use super::world::*;
use crate::object::{LeasePhase, MemberState};
use crate::pool::*;

/// Two members that became idle a minute apart: the one with the lower uid, unused for longest,
/// and the other, used most recently.
fn two_idle(world: &mut World) -> [Ulid; 2] {
    world.run();
    let [low, high] = world.in_state(MemberState::Building)[..] else { panic!("two are built") };
    for member in [low, high] {
        let up = world.up(member);
        world.fact(member, up);
        world.advance("1m");
    }
    [low, high]
}

// rule L5
#[test]
fn the_most_recently_used_running_member_goes_before_one_of_a_lower_uid() {
    let mut world = World::new(json!({"warm": {"running": 2}}));
    let [low, high] = two_idle(&mut world);
    world.lease("a");
    world.lease("b");
    assert_eq!((world.member_of("a"), world.member_of("b")), (high, low));
}

// rule L5
#[test]
fn the_end_of_a_recycle_is_what_counts_as_used() {
    let mut world = World::new(json!({"warm": {"running": 2}, "size": {"max": 2}, "recycle": {}}));
    let [low, high] = two_idle(&mut world);
    world.lease("a");
    world.lease("b");
    world.settle();
    world.recycle("a");
    world.settle();
    world.advance("1s");
    world.recycle("b");
    world.settle();
    assert_eq!([world.member(low).reuses, world.member(high).reuses], [1, 1]);
    world.lease("c");
    assert_eq!(world.member_of("c"), low, "its recycle ended last");
}

// rule L5
#[test]
fn members_used_at_the_same_instant_go_by_uid() {
    let mut world = World::new(json!({"warm": {"running": 2}}));
    world.run();
    let [low, high] = world.in_state(MemberState::Building)[..] else { panic!("two are built") };
    for member in [high, low] {
        let up = world.up(member);
        world.fact(member, up);
    }
    world.lease("a");
    assert_eq!(world.member_of("a"), low);
}

// rule L5
#[test]
fn the_most_recently_used_stopped_member_is_started() {
    let mut world = World::new(json!({"warm": {"running": 2}}));
    let [low, high] = two_idle(&mut world);
    world.change(json!({"warm": {"running": 0, "stopped": 2}}));
    world.live("1h");
    assert_eq!(world.in_state(MemberState::IdleStopped), [low, high]);
    world.lease("a");
    assert_eq!(world.member_of("a"), high);
}

// rule L5
#[test]
fn of_members_on_their_way_the_one_begun_first_serves_be_it_built_or_started() {
    let mut world = World::warm(json!({"warm": {"stopped": 1}}));
    let old = world.only(MemberState::IdleStopped);
    world.advance("1m");
    world.change(json!({"warm": {"running": 1}}));
    let built = world.only(MemberState::Building);
    world.advance("1m");
    world.change(json!({"warm": {"running": 2, "stopped": 0}}));
    assert_eq!(world.only(MemberState::Starting), old);
    world.lease("a");
    world.lease("b");
    assert_eq!((world.member_of("a"), world.member_of("b")), (built, old));
}

// rule L5
#[test]
fn a_running_member_of_the_present_template_goes_before_a_stale_one_used_more_recently() {
    let mut world = World::new(json!({"size": {"max": 3}, "recycle": {}}));
    world.lease("a");
    world.settle();
    let stale = world.member_of("a");
    world.recycle("a");
    let order = world.order_of(stale).id;
    world.change(json!({"warm": {"running": 2}, "template": {"spec": {"environment": {"A": "1"}}}}));
    let fresh = world.in_state(MemberState::Building)[0];
    let up = world.up(fresh);
    world.fact(fresh, up);
    world.advance("1m");
    world.report(stale, order, crate::machine::RecycleStage::Succeeded);
    assert_eq!(world.counts(), [1, 0, 2, 0, 0, 0, 0], "both are idle, the stale one since now");
    world.lease("b");
    world.lease("c");
    assert_eq!((world.member_of("b"), world.member_of("c")), (fresh, stale));
    assert!(world.message("c").ends_with("was built from an older template"));
    assert!(!world.message("b").contains("older template"));
}

// rule L5
#[test]
fn a_fresh_build_goes_before_a_stale_start_that_was_begun_first() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"stopped": 1}}));
    let stale = world.only(MemberState::IdleStopped);
    world.change(json!({"warm": {"running": 1, "stopped": 0}}));
    world.advance("1m");
    world.change(json!({"template": {"spec": {"environment": {"A": "1"}}}}));
    let fresh = world.only(MemberState::Building);
    world.lease("a");
    world.lease("b");
    assert_eq!((world.member_of("a"), world.member_of("b")), (fresh, stale));
}

// rule L5
// rule C1
#[test]
fn a_build_that_was_cordoned_for_a_while_keeps_its_turn() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    let first = world.only(MemberState::Building);
    world.advance("1m");
    world.cordon(first, true).expect("cordoned");
    world.advance("1m");
    assert_eq!(world.counts()[0], 2, "it is outside the floors");
    world.cordon(first, false).expect("uncordoned");
    world.lease("a");
    assert_eq!(world.member_of("a"), first);
}

// rule L7
#[test]
fn leases_of_the_same_second_are_served_by_uid() {
    let mut world = World::new(json!({"size": {"max": 1}}));
    for (name, uid) in [("asked-first", 99), ("asked-next", 98)] {
        let mut object = world.get_new(name);
        object.metadata.uid = Some(Ulid(uid));
        world.command(Command::CreateLease { object: Box::new(object), by: holder() }).expect("taken");
    }
    world.run();
    assert_eq!(phases(&world, ["asked-first", "asked-next"]), [LeasePhase::Pending, LeasePhase::Starting]);
}

// rule L7
#[test]
fn a_lease_that_loses_its_member_goes_before_those_that_came_later() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"running": 1}}));
    world.lease("first");
    world.advance("1s");
    world.lease("second");
    world.advance("1s");
    world.lease("third");
    let (lost, other) = (world.member_of("first"), world.member_of("second"));
    world.delete_member(lost);
    world.advance("5s");
    world.settle_deletes();
    assert_ne!(world.member_of("first"), other, "a lease is not moved for another");
    assert_eq!((world.member_of("second"), world.phase("third")), (other, LeasePhase::Pending));
}

// rule L5
// rule L6
#[test]
fn a_stopped_member_that_cannot_be_started_holds_its_lease_until_there_is_room() {
    let mut world = World::warm(json!({"warm": {"stopped": 1}}));
    let member = world.only(MemberState::IdleStopped);
    world.change(json!({"warm": {"stopped": 0}}));
    world.lease("a");
    assert_eq!((world.member_of("a"), world.state(member)), (member, MemberState::Starting));
    world.fact(member, crate::machine::Machine::Unplaceable { why: "no memory".into() });
    assert_eq!(
        (world.phase("a"), world.message("a")),
        (LeasePhase::Pending, "waits for room: no memory".into())
    );
    world.advance("1h");
    assert_eq!(world.state(member), MemberState::Starting, "it waits for room and is not lost");
    world.fact(member, crate::machine::Machine::Booting);
    assert_eq!(world.member_of("a"), member);
    world.advance("4m");
    world.settle();
    assert_eq!(world.phase("a"), LeasePhase::Ready, "its five minutes began when it was placed");
}

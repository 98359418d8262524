//! Changing a pool, and taking members out of service: rules T1 to T5, C1 to C3, A3, A6.

use serde_json::{Value, json};

use super::world::*;
use crate::object::{LeasePhase, MemberState};
use crate::pool::*;

/// A template that differs from the first one by `name`.
fn template(name: &str) -> Value {
    json!({"template": {"spec": {"environment": {"NAME": name}}}})
}

// rule T1
#[test]
fn a_template_changed_back_makes_its_members_current_again() {
    let mut world = World::warm(json!({"size": {"max": 1}, "warm": {"running": 1}}));
    let member = world.only(MemberState::IdleRunning);
    world.inputs.builds_allowed = 0;
    world.change(template("B"));
    assert_eq!(world.state(member), MemberState::IdleRunning);
    world.change(json!({"template": {"spec": {"environment": null}}}));
    world.inputs.builds_allowed = 8;
    world.settle();
    assert_eq!(world.only(MemberState::IdleRunning), member);
}

// rule T2
#[test]
fn below_size_max_the_new_member_comes_first_and_no_floor_drops_to_zero() {
    let mut world = World::warm(json!({"warm": {"running": 1, "stopped": 1}}));
    let (running, stopped) = (world.only(MemberState::IdleRunning), world.only(MemberState::IdleStopped));
    world.change(template("B"));
    assert_eq!(world.counts(), [2, 0, 1, 1, 0, 0, 0]);
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 1, 0, 0, 0]);
    assert!(world.pool.member(running).is_none() && world.pool.member(stopped).is_none());
}

// rule T2
#[test]
fn at_size_max_members_are_replaced_one_at_a_time() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"running": 2}}));
    world.change(template("B"));
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 1]);
    world.settle_deletes();
    assert_eq!(world.counts(), [1, 0, 1, 0, 0, 0, 0], "the next waits until this one is idle");
    world.settle();
    assert_eq!(world.counts(), [0, 0, 2, 0, 0, 0, 0]);
    let hash = world.pool.row().template_hash.clone();
    assert!(world.pool.members().all(|member| member.template_hash == hash));
}

// rule T2
#[test]
fn at_size_max_nothing_is_replaced_while_the_template_has_an_uncleared_failure() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"running": 2}}));
    world.change(template("B"));
    world.settle_deletes();
    world.fail(world.only(MemberState::Building));
    world.settle_deletes();
    world.advance("1h");
    assert_eq!(world.counts()[2], 1, "the last one of the old template serves on");
}

// rule T2
#[test]
fn stale_members_beyond_the_floors_go_without_replacement_and_stale_builds_are_dropped() {
    let mut world = World::warm(json!({"warm": {"running": 3}}));
    world.change(json!({"warm": {"running": 1}}));
    world.change(template("B"));
    assert_eq!(world.counts(), [1, 0, 1, 0, 0, 0, 2]);
    world.change(template("C"));
    assert_eq!(world.counts(), [1, 0, 1, 0, 0, 0, 3]);
    assert_eq!(world.status().template.consecutive_failures, 0, "dropped builds are no failures");
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 0]);
}

// rule T3
#[test]
fn a_leased_member_of_an_old_template_finishes_its_lease_and_is_deleted() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "recycle": {}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.change(template("B"));
    world.settle();
    assert_eq!((world.phase("a"), world.member_of("a")), (LeasePhase::Ready, member));
    world.recycle("a");
    world.settle();
    assert!(world.pool.member(member).is_none());
}

// rule T4
// case 27 (coder#19871)
#[test]
fn a_lower_size_drops_builds_then_idle_members_and_leaves_leased_and_cordoned_ones() {
    let mut world = World::warm(json!({"size": {"max": 6}, "warm": {"running": 2, "stopped": 1}}));
    world.lease("a");
    world.settle();
    let cordoned = world.in_state(MemberState::IdleRunning)[0];
    world.cordon(cordoned, true).expect("cordoned");
    let leased = world.member_of("a");
    assert_eq!(world.counts(), [1, 0, 2, 1, 1, 0, 0], "the cordoned one is outside the floors");
    world.change(json!({"size": {"max": 3}, "warm": {"running": 0, "stopped": 0}}));
    assert_eq!(world.counts()[0], 0, "the build goes first");
    assert_eq!(world.counts()[6], 2);
    world.change(json!({"size": {"max": 1}}));
    world.settle();
    assert_eq!(world.pool.members().map(Member::uid).collect::<Vec<_>>().len(), 2, "the pool sits above");
    assert_eq!((world.state(leased), world.state(cordoned)), (MemberState::Leased, MemberState::IdleRunning));
    world.lease("waits");
    assert_eq!(world.phase("waits"), LeasePhase::Pending);
}

// rule T5
#[test]
fn a_paused_pool_neither_builds_nor_binds_and_lets_leases_end() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    world.change(json!({"paused": true}));
    world.lease("b");
    assert_eq!(world.phase("b"), LeasePhase::Pending);
    world.done("a");
    world.settle();
    assert!(world.find("a").is_none());
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 0]);
    world.change(json!({"paused": false}));
    assert_eq!(world.phase("b"), LeasePhase::Starting);
}

// rule C1
#[test]
fn a_cordoned_member_takes_no_new_lease_and_is_deleted_after_its_own() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let idle = world.only(MemberState::IdleRunning);
    world.cordon(idle, true).expect("cordoned");
    world.settle();
    world.lease("a");
    assert_ne!(world.member_of("a"), idle);
    world.settle();
    let leased = world.member_of("a");
    world.cordon(leased, true).expect("cordoned");
    world.recycle("a");
    world.settle();
    assert!(world.pool.member(leased).is_none());
}

// rule C2
#[test]
fn an_idle_cordoned_member_stays_exactly_as_it_is() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "maxAge": "1h"}));
    let member = world.only(MemberState::IdleRunning);
    world.cordon(member, true).expect("cordoned");
    world.change(template("B"));
    world.change(json!({"size": {"max": 1}, "warm": {"running": 0}}));
    world.live("7d");
    assert_eq!(world.state(member), MemberState::IdleRunning);
    assert_eq!(world.pool.members().count(), 1);
    world.cordon(member, false).expect("uncordoned");
    world.settle();
    assert_eq!(world.pool.members().count(), 0, "of an old template and beyond the floors");
}

// rule W4
#[test]
fn the_idle_clock_starts_anew_at_uncordon() {
    let mut world = World::warm(json!({"warm": {"running": 1, "stopAfter": "15m"}}));
    let member = world.only(MemberState::IdleRunning);
    world.cordon(member, true).expect("cordoned");
    world.change(json!({"warm": {"running": 0}}));
    world.advance("1h");
    world.cordon(member, false).expect("uncordoned");
    world.advance("14m");
    assert_eq!(world.state(member), MemberState::IdleRunning);
    world.advance("1m");
    assert_eq!(world.state(member), MemberState::Stopping);
}

// rule A3
// rule A6
#[test]
fn only_the_cordon_of_a_member_may_be_written_and_only_by_its_keepers() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let uid = world.only(MemberState::IdleRunning);
    let mut object = world.member(uid).present();
    object.spec.cordoned = true;
    let command = Command::UpdateMember { uid, object: Box::new(object.clone()), standing: Standing::Other };
    assert_eq!(world.command(command), Err(Denied::NotYourMember));
    object.spec.environment.insert("A".into(), "1".into());
    let command = Command::UpdateMember { uid, object: Box::new(object), standing: Standing::OwnerOrAdmin };
    assert_eq!(world.command(command), Err(Denied::OnlyCordonMayChange));
    let command = Command::DeleteMember { uid, standing: Standing::Other };
    assert_eq!(world.command(command), Err(Denied::NotYourMember));
}

// rule S5
#[test]
fn a_members_name_is_its_pools_and_eight_hex_digits() {
    let mut world = World::warm(json!({"warm": {"running": 3}}));
    world.lease("a");
    for member in world.pool.members() {
        let digits = member.metadata.name.strip_prefix("agents-").expect("the pool's name");
        assert!(digits.len() == 8 && digits.chars().all(|digit| digit.is_ascii_hexdigit()));
    }
}

// rule R5
#[test]
fn a_member_shows_what_it_is_to_its_pool() {
    let mut world = World::warm(json!({"warm": {"running": 1},
        "template": {"metadata": {"labels": {"app": "runner"}}, "spec": {}}}));
    world.lease("a");
    world.settle();
    let shown = world.member(world.member_of("a")).present();
    let annotation =
        |key: &str| shown.metadata.annotations.get(&format!("pools.ringleader.dev/{key}")).cloned();
    assert_eq!(annotation("state").as_deref(), Some("Leased"));
    assert_eq!(annotation("lease").as_deref(), Some("a"));
    assert_eq!(annotation("reuses").as_deref(), Some("0"));
    assert_eq!(shown.metadata.labels["app"], "runner");
    assert_eq!(shown.metadata.labels["pools.ringleader.dev/pool"], "agents");
}

// rule T2
#[test]
fn at_size_max_the_stopped_floor_makes_way_first_and_a_running_member_always_stays() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"running": 1, "stopped": 1}}));
    let running = world.only(MemberState::IdleRunning);
    world.change(template("B"));
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 1]);
    assert_eq!(world.state(running), MemberState::IdleRunning);
    world.settle_deletes();
    let fresh = world.only(MemberState::Building);
    let up = world.up(fresh);
    world.fact(fresh, up);
    assert_eq!(world.state(fresh), MemberState::IdleRunning, "it takes the place of the running one");
    assert_eq!(world.state(running), MemberState::Deleting);
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 1, 0, 0, 0]);
}

// rule T4
// rule W5
#[test]
fn a_lower_size_drops_the_member_with_the_least_life_and_nothing_that_is_bound_or_recycling() {
    let mut world = World::warm(json!({"size": {"max": 6}, "warm": {"running": 1}, "recycle": {}}));
    let old = world.only(MemberState::IdleRunning);
    world.advance("1m");
    world.change(json!({"warm": {"running": 2}}));
    world.settle();
    world.lease("once");
    let recycled = world.member_of("once");
    world.settle();
    world.recycle("once");
    world.settle();
    world.change(json!({"warm": {"running": 0, "stopAfter": "30d"}}));
    assert_eq!((world.member(old).reuses, world.member(recycled).reuses), (0, 1));
    let idle = world.in_state(MemberState::IdleRunning).len();
    world.change(json!({"size": {"max": idle - 1}}));
    assert_eq!(world.only(MemberState::Deleting), recycled, "the younger one, but used");

    let mut world = World::new(json!({"recycle": {}}));
    world.lease("recycles");
    world.settle();
    let recycling = world.member_of("recycles");
    world.recycle("recycles");
    world.lease("built");
    world.change(json!({"size": {"max": 1}}));
    assert_eq!(world.state(recycling), MemberState::Recycling);
    assert_eq!(world.state(world.member_of("built")), MemberState::Building);
}

// rule T4
#[test]
fn a_lower_size_drops_a_start_that_cannot_be_placed() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"stopped": 1}}));
    let member = world.only(MemberState::IdleStopped);
    world.change(json!({"warm": {"running": 1, "stopped": 0}}));
    world.fact(member, crate::machine::Machine::Unplaceable { why: "no memory".into() });
    world.cordon(member, true).expect("cordoned");
    world.inputs.room = Room::Limited { more: 0, why: "full".into() };
    world.cordon(member, false).expect("uncordoned");
    world.change(json!({"warm": {"running": 0}}));
    assert_eq!(world.state(member), MemberState::Starting, "it waits for room");
    world.lease("a");
    world.inputs.room = Room::Unlimited;
    world.run();
    assert_eq!(world.phase("a"), LeasePhase::Pending, "there is no room for another either");
    world.change(json!({"size": {"max": 1}}));
    assert_eq!(world.state(member), MemberState::Starting, "one member is not too many");
}

// rule T2
// rule W6
#[test]
fn a_stale_stopped_member_beyond_its_floor_goes_and_is_not_started_to_replace_a_stale_one() {
    let mut world = World::warm(json!({"warm": {"running": 1, "stopped": 1}}));
    let mut change = template("B");
    change["warm"] = json!({"stopped": 0});
    world.change(change);
    assert_eq!(world.counts(), [1, 0, 1, 0, 0, 0, 1]);
    assert_eq!(world.in_state(MemberState::Starting), []);
}

// rule T2
// rule W6
#[test]
fn a_stale_stopped_member_still_fills_an_empty_running_floor() {
    let mut world = World::warm(json!({"warm": {"stopped": 1}}));
    let stale = world.only(MemberState::IdleStopped);
    world.inputs.room = Room::Limited { more: 0, why: "full".into() };
    world.change(template("B"));
    world.change(json!({"warm": {"running": 1, "stopped": 0}}));
    assert_eq!(world.only(MemberState::Starting), stale, "better than none");
}

// rule T1
// rule T2
#[test]
fn a_stopped_member_that_is_current_again_replaces_a_running_one_that_is_not() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"stopped": 1}}));
    let first = world.only(MemberState::IdleStopped);
    let mut change = template("B");
    change["warm"] = json!({"running": 1});
    world.change(change);
    let second = world.only(MemberState::Building);
    world.inputs.room = Room::Limited { more: 0, why: "full".into() };
    let up = world.up(second);
    world.fact(second, up);
    world.change(json!({"warm": {"stopped": 0}, "template": {"spec": {"environment": null}}}));
    assert_eq!((world.state(first), world.state(second)), (MemberState::Starting, MemberState::IdleRunning));
    world.settle();
    assert_eq!((world.only(MemberState::IdleRunning), world.pool.members().count()), (first, 1));
}

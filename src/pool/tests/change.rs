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

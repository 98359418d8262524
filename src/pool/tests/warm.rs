//! Keeping members warm: rules W1 to W8.

use serde_json::json;

use super::world::*;
use crate::machine::{Machine, Power};
use crate::object::{LeasePhase, MemberState, Truth};
use crate::pool::*;

const BUILDING: usize = 0;
const IDLE_RUNNING: usize = 2;
const IDLE_STOPPED: usize = 3;

// rule W1
#[test]
fn a_waiting_lease_may_empty_a_floor_which_is_refilled_afterwards() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    assert_eq!(world.counts(), [1, 0, 0, 0, 1, 0, 0], "leased, and a refill is being built");
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 0, 1, 0, 0]);
}

// rule W2
#[test]
fn members_count_until_their_machine_is_gone() {
    let mut world = World::warm(json!({"size": {"max": 1}, "warm": {"running": 1}}));
    let member = world.only(MemberState::IdleRunning);
    world.delete_member(member);
    assert_eq!(world.counts(), [0, 0, 0, 0, 0, 0, 1], "its replacement waits");
    let revision = world.wants[&member].revision;
    world.fact_at(member, revision - 1, Machine::Absent);
    assert_eq!(world.counts(), [0, 0, 0, 0, 0, 0, 1], "that sight is older than the order to go");
    world.fact(member, Machine::Absent);
    assert_eq!(world.counts(), [1, 0, 0, 0, 0, 0, 0]);
}

// rule W3
#[test]
fn a_member_for_the_stopped_floor_is_configured_and_then_stopped() {
    let mut world = World::new(json!({"warm": {"stopped": 1}}));
    world.run();
    let member = world.only(MemberState::Building);
    assert_eq!(world.wants[&member].power, Power::Running);
    let up = world.up(member);
    world.fact(member, up);
    assert_eq!(world.state(member), MemberState::Stopping);
    assert_eq!(world.wants[&member].power, Power::Stopped);
    world.fact(member, Machine::Stopped);
    assert_eq!(world.state(member), MemberState::IdleStopped);
}

// rule W4
#[test]
fn surplus_members_are_stopped_and_then_deleted_each_after_its_own_time() {
    let mut world = World::warm(json!({"warm": {"running": 2, "stopAfter": "15m", "deleteAfter": "1h"}}));
    world.advance("1h");
    assert_eq!(world.counts()[IDLE_RUNNING], 2, "a floor needs both");
    world.change(json!({"warm": {"running": 0}}));
    assert_eq!(world.counts()[IDLE_RUNNING], 0, "they have waited their time already");
    world.settle();
    assert_eq!(world.counts()[IDLE_STOPPED], 2);
    world.live("59m");
    assert_eq!(world.counts()[IDLE_STOPPED], 2, "the clock began when they stopped");
    world.live("1m");
    assert_eq!(world.counts(), [0; 7]);
}

// rule W4
#[test]
fn a_member_is_let_go_only_when_it_has_itself_waited_its_time() {
    let mut world = World::new(json!({"warm": {"running": 2, "stopAfter": "15m"}}));
    world.run();
    let [old, young] = world.in_state(MemberState::Building)[..] else { panic!("two are built") };
    for member in [young, old] {
        let up = world.up(member);
        world.fact(member, up);
        world.advance("10m");
    }
    // The older has the least life and is surplus by rank, but became idle ten minutes ago.
    world.change(json!({"warm": {"running": 1}}));
    assert_eq!(world.counts()[IDLE_RUNNING], 2);
    world.advance("5m");
    assert_eq!(world.state(old), MemberState::Stopping);
    assert_eq!(world.state(young), MemberState::IdleRunning);
}

// rule W4
#[test]
fn a_provider_that_cannot_stop_deletes_instead() {
    let mut world = World::new(json!({"warm": {"running": 1, "stopped": 1}}));
    let provider = ProviderState { stopping: Stopping::Impossible, ..world.inputs.providers[0].clone() };
    world.inputs.providers = [provider].into();
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 0], "nothing is built to be stopped");
    world.change(json!({"warm": {"running": 0, "stopped": 0}}));
    world.live("15m");
    assert_eq!(world.counts(), [0; 7]);
}

// rule W5
#[test]
fn letting_go_keeps_the_youngest() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.settle();
    let old = world.only(MemberState::IdleRunning);
    world.advance("1m");
    world.change(json!({"warm": {"running": 2}}));
    world.settle();
    let young = world.in_state(MemberState::IdleRunning).into_iter().find(|uid| *uid != old).expect("two");
    world.change(json!({"warm": {"running": 1}}));
    world.live("1h");
    assert_eq!(world.only(MemberState::IdleRunning), young);
}

// rule W6
#[test]
fn a_running_floor_first_starts_stopped_members_above_the_stopped_floor() {
    let mut world = World::warm(json!({"warm": {"stopped": 2}}));
    world.change(json!({"warm": {"running": 1, "stopped": 1}}));
    assert_eq!(world.counts(), [0, 1, 0, 1, 0, 0, 0], "one is started and nothing is built");
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 1, 0, 0, 0]);
}

// rule W6
#[test]
fn surplus_running_members_count_towards_the_stopped_floor() {
    let mut world = World::warm(json!({"warm": {"running": 2, "stopAfter": "15m"}}));
    world.change(json!({"warm": {"running": 1, "stopped": 1}}));
    assert_eq!(world.counts(), [0, 0, 2, 0, 0, 0, 0], "nothing is built");
    let filled = world.status().conditions.iter().find(|condition| condition.r#type == "WarmFloorsFilled");
    assert_eq!(filled.expect("a condition").status, Truth::True);
    world.live("15m");
    assert_eq!(world.counts(), [0, 0, 1, 1, 0, 0, 0]);
    world.live("7d");
    assert_eq!(world.counts(), [0, 0, 1, 1, 0, 0, 0], "timers leave what floors need");
}

// rule W6
#[test]
fn a_floor_withholds_nothing_from_a_waiting_lease() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"running": 1, "stopped": 1}}));
    world.lease("a");
    world.lease("b");
    world.settle();
    assert_eq!(phases(&world, ["a", "b"]), [LeasePhase::Ready; 2]);
}

// rule W7
#[test]
fn an_idle_member_past_max_age_is_replaced_the_new_one_first() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "maxAge": "1h"}));
    let old = world.only(MemberState::IdleRunning);
    world.advance("59m");
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 0]);
    world.advance("1m");
    assert_eq!(world.counts(), [1, 0, 1, 0, 0, 0, 0], "its replacement comes first");
    world.settle();
    assert_ne!(world.only(MemberState::IdleRunning), old);
}

// rule W7
// rule T5
#[test]
fn a_raised_max_age_spares_those_that_were_too_old() {
    let mut world = World::warm(json!({"size": {"max": 1}, "warm": {"running": 1}, "maxAge": "1h"}));
    let old = world.only(MemberState::IdleRunning);
    world.inputs.room = Room::Limited { more: 0, why: "none".into() };
    world.advance("2h");
    assert_eq!(world.only(MemberState::IdleRunning), old, "nothing makes way while nothing may be built");
    world.change(json!({"maxAge": "3h"}));
    world.inputs.room = Room::Unlimited;
    world.settle();
    assert_eq!(world.only(MemberState::IdleRunning), old);
}

// rule W7
#[test]
fn at_size_max_an_aged_member_makes_way_for_its_replacement() {
    let mut world = World::warm(json!({"size": {"max": 1}, "warm": {"running": 1}, "maxAge": "1h"}));
    let old = world.only(MemberState::IdleRunning);
    world.live("1h");
    assert_ne!(world.only(MemberState::IdleRunning), old);
}

// rule W8
// case 9 (OpenSandbox#1423)
#[test]
fn a_pool_with_nothing_to_do_writes_nothing_and_wakes_for_nothing() {
    let mut world = World::warm(json!({"warm": {"running": 2, "stopped": 1}}));
    let (writes, acts) = (world.writes, world.acts.len());
    world.live("7d");
    assert_eq!((world.writes, world.acts.len()), (writes, acts));
    let tick = world.tick();
    assert_eq!(world.pool.next_deadline(&tick), None);
    let members: Vec<_> = world.wants.keys().copied().collect();
    for member in members {
        let machine = world.obeying(&world.wants[&member].clone());
        world.fact(member, machine);
    }
    assert_eq!(world.writes, writes, "a repeated fact changes nothing");
}

// rule F4
#[test]
fn the_daemon_bounds_how_many_are_built_at_once() {
    let mut world = World::new(json!({"warm": {"running": 3}}));
    world.inputs.builds_allowed = 0;
    world.lease("a");
    assert_eq!(world.counts()[BUILDING], 0);
    assert_eq!(world.message("a"), "waits for its turn: the daemon builds as many members as it may at once");
}

// rule W2
// rule C2
#[test]
fn cordoned_and_recycling_members_count_towards_size_max() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"running": 1}, "recycle": {}}));
    world.cordon(world.only(MemberState::IdleRunning), true).expect("cordoned");
    world.change(json!({"warm": {"running": 0}}));
    world.lease("a");
    world.settle();
    world.recycle("a");
    world.lease("b");
    assert_eq!(world.message("b"), "waits for a member to be released: the pool is at its size.max");
    assert_eq!(world.status().capacity.room, 0);
}

// rule W5
#[test]
fn letting_go_keeps_the_least_recycled_though_another_is_younger() {
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"running": 1}, "recycle": {}}));
    let old = world.only(MemberState::IdleRunning);
    world.advance("1m");
    world.change(json!({"warm": {"running": 2}}));
    world.settle();
    world.lease("a");
    let young = world.member_of("a");
    assert_ne!(young, old);
    world.settle();
    world.recycle("a");
    world.settle();
    world.change(json!({"warm": {"running": 1}}));
    world.live("2h");
    assert_eq!(world.only(MemberState::IdleRunning), old);
}

// rule W6
#[test]
fn a_build_on_its_way_keeps_a_stopped_member_from_being_started() {
    let mut world = World::warm(json!({"warm": {"stopped": 1}}));
    world.change(json!({"warm": {"running": 1}}));
    assert_eq!(world.counts(), [1, 0, 0, 1, 0, 0, 0], "the stopped floor keeps its own");
    world.change(json!({"warm": {"stopped": 0}}));
    assert_eq!(world.counts(), [1, 0, 0, 1, 0, 0, 0], "the build is on its way to the running floor");
    world.live("2h");
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 0], "above its floor, the stopped one went in its time");
}

// rule W4
// rule T5
#[test]
fn a_shorter_timer_acts_at_once_and_a_longer_one_spares() {
    let mut world = World::warm(json!({"warm": {"running": 1, "stopAfter": "1h", "deleteAfter": "1h"}}));
    world.change(json!({"warm": {"running": 0}}));
    world.advance("30m");
    world.change(json!({"warm": {"stopAfter": "2h"}}));
    world.advance("1h");
    assert_eq!(world.counts()[IDLE_RUNNING], 1);
    world.change(json!({"warm": {"stopAfter": "1h"}}));
    assert_eq!(world.counts()[IDLE_RUNNING], 0);
    world.settle();
    world.advance("30m");
    world.change(json!({"warm": {"deleteAfter": "30m"}}));
    assert_eq!(world.counts(), [0, 0, 0, 0, 0, 0, 1]);
}

// rule W7
#[test]
fn an_aged_member_that_is_leased_finishes_its_lease_and_is_deleted() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "maxAge": "1h", "recycle": {}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.live("2h");
    assert_eq!((world.phase("a"), world.member_of("a")), (LeasePhase::Ready, member));
    world.recycle("a");
    world.settle();
    assert!(world.pool.member(member).is_none());
}

// rule W3
// rule W6
#[test]
fn a_member_built_for_the_stopped_floor_stays_running_until_the_running_floor_is_filled() {
    let mut world = World::new(json!({"warm": {"running": 1, "stopped": 1}}));
    world.run();
    let builds = world.in_state(MemberState::Building);
    let (for_stopped, for_running): (Vec<_>, Vec<_>) =
        builds.into_iter().partition(|uid| world.member(*uid).destination == Destination::Stopped);
    let up = world.up(for_stopped[0]);
    world.fact(for_stopped[0], up);
    assert_eq!(world.state(for_stopped[0]), MemberState::IdleRunning);
    let up = world.up(for_running[0]);
    world.fact(for_running[0], up);
    assert_eq!(world.state(for_stopped[0]), MemberState::Stopping);
}

//! When something fails: rules F1 to F4.

use serde_json::json;

use super::world::*;
use crate::machine::Machine;
use crate::object::{LeasePhase, MemberState, PoolPhase, Truth};
use crate::pool::*;

/// The builds of a pool with a floor of one fail so often in a row.
fn failing(times: usize) -> World {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    for _ in 0..times {
        fail_the_build(&mut world);
    }
    world
}

fn fail_the_build(world: &mut World) {
    world.fail(world.only(MemberState::Building));
    world.settle_deletes();
}

fn truth(world: &World, condition: &str) -> Truth {
    world.status().conditions.iter().find(|c| c.r#type == condition).expect("a condition").status
}

// rule F1
#[test]
fn a_failed_build_is_deleted_told_and_its_lease_bound_again() {
    let mut world = World::new(json!({}));
    world.lease("a");
    let member = world.member_of("a");
    world.fail(member);
    assert_eq!(world.state(member), MemberState::Deleting);
    assert_ne!(world.member_of("a"), member);
    let event = world.pool.events().next().expect("an event").present();
    assert_eq!((event.reason.as_str(), event.count), ("TemplateFailed", 1));
    assert!(event.message.contains("Broken: it broke"), "{}", event.message);
    assert_eq!(event.regarding.name, "agents");
}

// rule F1
#[test]
fn a_new_member_has_thirty_minutes_over_a_restart_too() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    let member = world.only(MemberState::Building);
    assert_eq!(world.wants[&member].build_by, Some(world.now.plus_millis(millis("30m"))));
    world.advance("29m");
    world.restart();
    assert_eq!(world.state(member), MemberState::Building);
    world.advance("1m");
    assert_eq!(world.state(member), MemberState::Deleting);
    assert_eq!(world.status().template.last_failure.clone().expect("a failure").reason, "BuildTimedOut");
}

// rule F1
// case 7 (agent-sandbox#1215, OpenSandbox#1423)
#[test]
fn a_member_that_cannot_be_placed_is_still_to_be_made() {
    let mut world = World::new(json!({}));
    world.lease("a");
    let member = world.member_of("a");
    world.fact(member, Machine::Unplaceable { why: "no memory".into() });
    assert!(world.wants[&member].build_by.is_some(), "without it no machine is made (contract.rs)");
    world.advance("7h");
    world.fact(member, Machine::Booting);
    assert!(world.wants[&member].build_by <= Some(world.steady.plus_millis(millis("30m"))));
    world.settle();
    assert_eq!(world.phase("a"), LeasePhase::Ready);
}

// rule F1
// case 7 (agent-sandbox#1215, OpenSandbox#1423)
#[test]
fn a_member_that_cannot_be_placed_holds_builds_and_is_no_failure() {
    let mut world = World::new(json!({"warm": {"running": 2}}));
    world.lease("a");
    let member = world.member_of("a");
    let why = "4 GiB asked, 1.2 GiB left";
    world.fact(member, Machine::Unplaceable { why: why.into() });
    let waiting: Vec<_> =
        world.in_state(MemberState::Building).into_iter().filter(|uid| *uid != member).collect();
    for uid in waiting {
        world.fact(uid, Machine::Unplaceable { why: why.into() });
    }
    assert_eq!(world.message("a"), format!("waits for room: {why}"));
    assert_eq!(world.status().message, format!("waits for room: {why}"));
    assert_eq!(truth(&world, "RoomAvailable"), Truth::False);
    let acts = world.acts.len();
    world.advance("7d");
    assert_eq!(world.status().template.consecutive_failures, 0);
    assert_eq!(world.in_state(MemberState::Deleting), []);
    assert!(world.acts[acts..].iter().all(|act| matches!(act, Act::Expire | Act::Forget | Act::WriteStatus)));
    world.lease("b");
    assert_eq!(world.phase("b"), LeasePhase::Pending, "nobody is bound to what cannot be placed");
    world.fact(member, Machine::Booting);
    assert_eq!(world.member_of("b"), member, "it is placed at last");
    assert_eq!(world.member(member).build_by, Some(world.now.plus_millis(millis("30m"))));
}

// rule F1
#[test]
fn a_provider_that_is_unavailable_is_no_failure_of_the_template() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    let why = Some("no user namespaces: run rl doctor".to_owned());
    world.inputs.providers = [ProviderState { unavailable: why, ..world.inputs.providers[0].clone() }].into();
    world.run();
    assert_eq!(world.counts(), [0; 7]);
    assert_eq!(world.status().message, "waits for the provider: sandbox: no user namespaces: run rl doctor");
    assert_eq!(truth(&world, "TemplateHealthy"), Truth::True);
}

// rule F2
#[test]
fn the_first_two_retries_follow_at_once_and_then_the_pool_waits() {
    let mut world = failing(2);
    assert_eq!(world.counts()[0], 1, "the second retry is under way");
    assert_eq!(truth(&world, "TemplateHealthy"), Truth::True);
    fail_the_build(&mut world);
    assert_eq!(world.counts()[0], 0);
    assert_eq!(world.status().phase, PoolPhase::Degraded);
    assert_eq!(truth(&world, "TemplateHealthy"), Truth::False);
    assert_eq!(world.status().template.retry_at, Some(world.now.plus_millis(60_000)));
    world.advance("59s");
    assert_eq!(world.counts()[0], 0);
    world.advance("1s");
    assert_eq!(world.counts()[0], 1);
}

// rule F2
#[test]
fn the_wait_doubles_to_one_hour_with_one_build_probing_at_a_time() {
    let mut world = failing(3);
    world.change(json!({"warm": {"running": 3}}));
    for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
        let retry_at = world.pool.row().health.back_off.expect("a wait").until;
        assert_eq!(retry_at.millis_since(world.now), minutes * 60_000);
        world.advance(&format!("{minutes}m"));
        assert_eq!(world.counts()[0], 1, "one probes for all three");
        fail_the_build(&mut world);
    }
}

// rule F2
#[test]
fn failures_of_builds_begun_before_the_wait_do_not_double_it() {
    let mut world = World::new(json!({"warm": {"running": 5}}));
    world.run();
    let builds = world.in_state(MemberState::Building);
    for member in &builds[..3] {
        world.fail(*member);
    }
    let wait = world.pool.row().health.back_off;
    for member in &builds[3..] {
        world.fail(*member);
    }
    assert_eq!(world.pool.row().health.back_off, wait);
}

// rule F2
#[test]
fn existing_members_keep_serving_while_the_template_fails() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    for _ in 0..3 {
        fail_the_build(&mut world);
    }
    world.settle();
    assert_eq!((world.phase("a"), world.status().phase), (LeasePhase::Ready, PoolPhase::Degraded));
}

// rule F3
#[test]
fn a_success_clears_the_count() {
    let mut world = failing(3);
    world.live("1m");
    assert_eq!(world.status().template.consecutive_failures, 0);
    assert_eq!(world.status().phase, PoolPhase::Ready);
}

// rule F3
#[test]
fn a_template_change_clears_the_count_and_another_change_does_not() {
    let mut world = failing(3);
    world.change(json!({"warm": {"running": 2}}));
    assert_eq!(world.counts()[0], 0);
    world.change(json!({"template": {"spec": {"environment": {"A": "1"}}}}));
    assert_eq!(world.counts()[0], 2);
    assert_eq!(world.status().template.consecutive_failures, 0);
}

// rule F4
#[test]
fn a_build_that_cannot_be_placed_takes_no_turn_whatever_its_template() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    assert_eq!(world.pool.builds_in_flight(), 1);
    let member = world.only(MemberState::Building);
    world.fact(member, Machine::Unplaceable { why: "no room".into() });
    assert_eq!(world.pool.builds_in_flight(), 0);
    world.cordon(member, true).expect("the owner cordons");
    world.inputs.builds_allowed = 0;
    world.change(json!({"template": {"spec": {"environment": {"N": "2"}}}}));
    assert_eq!(world.state(member), MemberState::Building, "a cordoned one is left alone");
    assert_eq!(world.pool.builds_in_flight(), 0);
}

// rule F4
// case 12 (hive#1595, openkruise/agents#489)
#[test]
fn a_failed_member_counts_only_until_it_is_gone() {
    let mut world = World::new(json!({"size": {"max": 1}, "warm": {"running": 1}}));
    world.run();
    world.fail(world.only(MemberState::Building));
    assert_eq!(world.counts(), [0, 0, 0, 0, 0, 0, 1]);
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 0]);
}

// rule F1
#[test]
fn a_member_deleted_by_a_person_is_no_failure() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    for _ in 0..4 {
        world.delete_member(world.only(MemberState::Building));
        world.settle_deletes();
    }
    assert_eq!(world.status().template.consecutive_failures, 0);
    assert_eq!(world.pool.events().count(), 0);
}

// rule F2
#[test]
fn events_are_aggregated_and_bounded() {
    let mut world = failing(3);
    let event = world.pool.events().next().expect("an event");
    assert_eq!((world.pool.events().count(), event.count), (1, 3));
    world.advance("1m");
    for number in 0..150 {
        let member = world.only(MemberState::Building);
        let message = format!("cause {number}");
        world.fact(member, Machine::Failed(crate::machine::Failure { reason: "Broken".into(), message }));
        world.settle_deletes();
        world.advance("1h");
    }
    assert!(world.pool.events().count() <= 100);
    world.change(json!({"warm": {"running": 0}}));
    world.advance("2d");
    assert_eq!(world.pool.events().count(), 0, "they expire");
}

// rule F1
// rule T2
#[test]
fn a_template_that_asks_for_less_is_not_held_by_old_members_without_room() {
    let no_room = || Machine::Unplaceable { why: "no memory".into() };
    let mut world = World::warm(json!({"size": {"max": 2}, "warm": {"stopped": 1}}));
    let start = world.only(MemberState::IdleStopped);
    world.change(json!({"warm": {"running": 1, "stopped": 0}}));
    world.fact(start, no_room());
    assert_eq!(world.status().message, "waits for room: no memory");
    world.change(json!({"template": {"spec": {"providerConfig": {"memory": 1}}}}));
    assert_eq!(world.state(start), MemberState::Deleting, "it can serve nobody");
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 0]);

    let mut world = World::new(json!({"size": {"max": 2}, "warm": {"running": 1}}));
    world.run();
    let cordoned = world.only(MemberState::Building);
    world.fact(cordoned, no_room());
    world.cordon(cordoned, true).expect("cordoned");
    assert_eq!(world.counts()[0], 1, "nothing more is built where there is no room");
    world.change(json!({"template": {"spec": {"providerConfig": {"memory": 1}}}}));
    assert_eq!(world.counts()[0], 2);
}

// rule T2
// rule F2
#[test]
fn builds_of_an_older_template_neither_count_as_failures_nor_clear_the_count() {
    let mut world = World::new(json!({"size": {"max": 4}}));
    for name in ["fails", "succeeds"] {
        world.lease(name);
    }
    let (fails, succeeds) = (world.member_of("fails"), world.member_of("succeeds"));
    world.change(json!({"template": {"spec": {"environment": {"A": "1"}}}}));
    world.fail(fails);
    assert_eq!(world.status().template.consecutive_failures, 0);
    assert_eq!(world.pool.events().count(), 0);
    let rebuilt = world.member_of("fails");
    world.fail(rebuilt);
    assert_eq!(world.status().template.consecutive_failures, 1);
    let up = world.up(succeeds);
    world.fact(succeeds, up);
    assert_eq!(world.phase("succeeds"), LeasePhase::Starting);
    assert_eq!(world.status().template.consecutive_failures, 1);
}

// rule F3
#[test]
fn a_later_success_clears_the_count_too_and_ends_the_wait() {
    let mut world = World::warm(json!({"size": {"max": 6}, "warm": {"running": 1}}));
    world.change(json!({"warm": {"running": 5}}));
    let builds = world.in_state(MemberState::Building);
    for member in &builds[..3] {
        world.fail(*member);
    }
    world.settle_deletes();
    assert_eq!((world.status().phase, world.counts()[0]), (PoolPhase::Degraded, 2));
    let up = world.up(builds[3]);
    world.fact(builds[3], up);
    let health = &world.pool.row().health;
    assert_eq!((health.consecutive_failures, health.back_off), (0, None));
    assert_eq!((world.status().phase, world.counts()[0]), (PoolPhase::Ready, 3), "it builds again at once");
}

// rule F2
// rule C2
#[test]
fn a_build_that_was_cordoned_does_not_double_the_wait_it_was_begun_before() {
    let mut world = World::new(json!({"size": {"max": 4}, "warm": {"running": 4}}));
    world.run();
    let builds = world.in_state(MemberState::Building);
    for member in &builds[..3] {
        world.fail(*member);
    }
    world.settle_deletes();
    world.cordon(builds[3], true).expect("cordoned");
    world.inputs.room = Room::Limited { more: 0, why: "full".into() };
    world.advance("2m");
    world.cordon(builds[3], false).expect("uncordoned");
    let wait = world.pool.row().health.back_off;
    world.fail(builds[3]);
    assert_eq!(world.pool.row().health.back_off, wait);
}

// rule C2
// rule F1
#[test]
fn a_cordoned_member_still_being_built_fails_like_any_other() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    let [broken, slow] = [0, 1].map(|_| {
        let building = world.pool.members().find(|member| !member.cordoned).expect("a build").uid();
        world.cordon(building, true).expect("cordoned");
        building
    });
    world.fail(broken);
    assert_eq!(world.state(broken), MemberState::Deleting);
    assert_eq!(world.status().template.consecutive_failures, 1);
    world.advance("30m");
    assert_eq!(world.state(slow), MemberState::Deleting);
    assert_eq!(world.status().template.consecutive_failures, 3, "and so did the one in its place");
}

// rule L17
// rule F1
#[test]
fn a_member_that_cannot_be_started_in_time_goes_and_is_no_failure_of_the_template() {
    let mut world = World::warm(json!({"warm": {"stopped": 1}}));
    let member = world.only(MemberState::IdleStopped);
    world.change(json!({"warm": {"running": 1, "stopped": 0}}));
    world.advance("5m");
    assert_eq!(world.state(member), MemberState::Deleting);
    assert_eq!(world.status().template.consecutive_failures, 0);
    world.settle();
    assert_eq!(world.counts(), [0, 0, 1, 0, 0, 0, 0]);
}

// rule F2
#[test]
fn of_too_many_events_the_oldest_goes() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    for number in 0..102 {
        let message = format!("cause {number}");
        let failure = crate::machine::Failure { reason: "Broken".into(), message };
        world.fact(world.only(MemberState::Building), Machine::Failed(failure));
        world.settle_deletes();
        world.advance("1s");
        // Another template starts with a clean record, so that the next build follows at once.
        world.change(json!({"template": {"spec": {"environment": {"N": number.to_string()}}}}));
        world.settle_deletes();
    }
    let causes: Vec<_> = world.pool.events().map(|event| event.cause.clone()).collect();
    assert_eq!(causes.len(), 100);
    assert!(!causes.contains(&"Broken: cause 1".into()) && causes.contains(&"Broken: cause 2".into()));
    world.advance("23h");
    assert_eq!(world.pool.events().count(), 100);
}

// rule F2
#[test]
fn only_a_build_probes_and_no_lease_bound_since_the_wait_ended() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.change(json!({"warm": {"running": 2}}));
    for _ in 0..3 {
        fail_the_build(&mut world);
    }
    world.inputs.builds_allowed = 0;
    world.advance("2m");
    world.lease("a");
    world.settle();
    assert_eq!((world.phase("a"), world.counts()[0]), (LeasePhase::Ready, 0));
    world.inputs.builds_allowed = 8;
    world.run();
    assert_eq!(world.counts()[0], 1);
}

// rule F1
#[test]
fn a_member_that_was_never_placed_is_no_failure_of_the_template() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    let member = world.only(MemberState::Building);
    world.fact(member, Machine::Unplaceable { why: "no memory".into() });
    world.fail(member);
    assert_eq!(world.state(member), MemberState::Deleting);
    assert_eq!(world.status().template.consecutive_failures, 0);
}

// rule F1
// rule A4
#[test]
fn a_build_has_arrived_only_when_it_is_configured_under_its_newest_want() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    let member = world.only(MemberState::Building);
    let Machine::Running(mut running) = world.up(member) else { panic!("it is up") };
    running.configured = false;
    world.fact(member, Machine::Running(running.clone()));
    assert_eq!(world.state(member), MemberState::Building, "it is up and not set up");
    let older = world.wants[&member].revision;
    world.inputs.owner_keys = OwnerKeys::new(vec!["ssh-ed25519 LAPTOP".into()]);
    world.run();
    running.configured = true;
    world.fact_at(member, older, Machine::Running(running.clone()));
    assert_eq!(world.state(member), MemberState::Building, "it has not heard of the new device");
    world.fact(member, Machine::Running(running));
    assert_eq!(world.state(member), MemberState::IdleRunning);
}

// rule L17
// case 3 (kobe#63)
#[test]
fn a_sight_older_than_one_already_heard_of_is_dropped() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    let newest = world.wants[&member].revision;
    world.fact_at(member, newest - 1, Machine::Absent);
    world.fact_at(member, newest + 1, Machine::Absent);
    assert_eq!((world.state(member), world.phase("a")), (MemberState::Leased, LeasePhase::Ready));
}

//! What a pool counts, hour by hour. That the seconds of a pool go on from what is there, an
//! invariant checks after every step of every test; that a pool read back from its rows has counted
//! the same, the world does.

use serde_json::{Value, json};

use super::world::*;
use crate::machine::{Failure, Machine, RecycleStage};
use crate::object::{
    Endings, LeasePhase, LeaseState, Level, Mark, MemberState, Spent, Supply, Time, USAGE_HOURS, UsageHour,
    UsageRow, WAIT_BUCKETS_MILLIS, Waits, usage_at,
};
use crate::pool::*;

const HOUR: i64 = 3_600_000;
/// How far into its hour the world's clock begins.
const INTO: i64 = START % HOUR;

// rule U1
#[test]
fn what_is_asked_of_a_pool_is_counted_in_its_hour() {
    let mut world = World::warm(json!({"size": {"max": 1}, "warm": {"running": 1}}));
    world.lease("a");
    world.advance("40ms");
    world.settle();
    world.lease("b");
    world.lease("c");
    world.advance("10s");
    let demand = present(&mut world).demand;
    assert_eq!((demand.created, demand.bound, demand.held_max, demand.waiting_max), (3, 1, 1, 2));
    assert_eq!((demand.wait.count, demand.wait.sum_millis, demand.wait.max_millis), (1, 40, 40));
    let bucket = WAIT_BUCKETS_MILLIS.iter().position(|bound| *bound == 50).expect("a bucket");
    assert_eq!(demand.wait.histogram[bucket], 1);
}

// rule U1
#[test]
fn a_lease_that_is_bound_at_once_never_waited() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    assert_eq!((present(&mut world).demand.waiting_max, present(&mut world).demand.held_max), (0, 1));
}

// rule U1
#[test]
fn each_end_of_a_lease_is_counted_by_its_kind() {
    let mut world = World::warm(json!({
        "size": {"max": 6}, "warm": {"running": 6}, "recycle": {"maxReuses": 3},
        "lease": {"maxTerm": "2h"},
    }));
    for name in ["done", "recycled", "failed", "expires", "lost", "unrecycled"] {
        world.lease(name);
        world.settle();
    }
    world.done("done");
    world.settle();
    world.recycle("recycled");
    world.settle();
    let cordoned = world.member_of("unrecycled");
    world.cordon(cordoned, true).expect("the owner cordons");
    world.recycle("unrecycled");
    world.settle();
    let failed = world.member_of("failed");
    world.recycle("failed");
    let up = world.up(failed);
    world.fact(failed, up);
    let order = world.order_of(failed).id;
    world.report(
        failed,
        order,
        RecycleStage::Failed(Failure { reason: "clean".into(), message: "no".into() }),
    );
    world.settle();
    let lost = world.member_of("lost");
    world.fact(lost, Machine::Absent);
    world.settle();
    world.live("2h");
    let ended = total(&mut world).endings;
    let expected = Endings { done: 2, recycled: 1, recycle_failed: 1, expired: 1, member_lost: 1 };
    assert_eq!(ended, expected);
}

// rule U1
#[test]
fn a_waiting_lease_that_is_cancelled_or_fails_with_its_pool_is_no_end() {
    let mut world = World::warm(json!({
        "size": {"max": 1}, "warm": {"running": 1}, "lease": {"maxTerm": "2h"},
    }));
    world.lease("holds");
    world.settle();
    for name in ["cancelled", "fails", "expires"] {
        world.lease(name);
    }
    world.done("cancelled");
    let soon = world.now.plus_millis(HOUR / 2);
    world.write("expires", json!({"expiresAt": soon}), &holder()).expect("an earlier time is allowed");
    world.advance("40m");
    assert_eq!(world.phase("expires"), LeasePhase::Failed);
    world.delete_pool();
    assert_eq!(world.phase("fails"), LeasePhase::Failed);
    let hour = total(&mut world);
    assert_eq!((hour.endings, hour.demand.expired_unbound), (Endings::default(), 1));
}

// rule U1
#[test]
fn members_are_counted_by_what_they_are_to_the_millisecond_and_over_the_hour() {
    let mut world = World::new(json!({"size": {"max": 2}, "warm": {"running": 1, "stopAfter": "90m"}}));
    world.run();
    world.advance("30s");
    world.settle();
    world.advance("1h");
    world.lease("a");
    world.advance("7ms");
    world.settle();
    world.live("2h");
    let spent = total(&mut world).supply;
    let at = |millis: i64| Spent { millis: u64::try_from(millis).expect("positive") };
    assert_eq!(spent.building_seconds, at(30_000 + 7));
    assert_eq!(spent.idle_running_seconds, at(HOUR + 2 * HOUR));
    assert_eq!(spent.leased_seconds, at(7 + 2 * HOUR));
    assert_eq!((spent.built, spent.deleted), (2, 0));
    let first = &week(&mut world)[0];
    assert_eq!(first.supply.building_seconds, at(30_000), "the second was built in a later hour");
    assert_eq!(first.supply.idle_running_seconds, at(HOUR - INTO - 30_000));
}

// rule U1
#[test]
fn a_member_that_is_recycled_or_stopped_is_counted_as_that() {
    let mut world = World::warm(json!({
        "size": {"max": 2}, "warm": {"stopped": 1, "stopAfter": "1h"}, "recycle": {"maxReuses": 3},
    }));
    world.advance("1m");
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.recycle("a");
    world.advance("20s");
    assert_eq!(world.state(member), MemberState::Recycling);
    let before = total(&mut world).supply;
    assert_eq!(before.recycling_seconds.millis, 20_000);
    assert!(before.idle_stopped_seconds.millis >= 60_000, "{before:?}");
}

// rule U1
#[test]
fn an_hour_in_which_nothing_happens_is_right_when_it_is_read() {
    let mut world = World::warm(json!({"warm": {"running": 2}}));
    let writes = world.writes;
    world.advance("5h");
    assert_eq!(world.writes, writes, "an idle pool wrote something");
    let hours = week(&mut world);
    assert_eq!(hours.len(), 6, "the hour it began in, four whole ones and the present one");
    for whole in &hours[1..5] {
        assert_eq!(whole.supply.idle_running_seconds.millis, 2 * 3_600_000);
    }
    world.lease("a");
    let again = week(&mut world);
    assert_eq!(again[1..5], hours[1..5], "what is read is what is written later");
    assert_eq!(world.pool.usage().count(), 6);
}

// rule U1
#[test]
fn a_week_is_kept_and_no_more() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "lease": {"maxTerm": "1h"}}));
    for day in 0..9 {
        world.lease(&format!("day-{day}"));
        world.settle();
        world.done(&format!("day-{day}"));
        world.live("24h");
    }
    let hours = week(&mut world);
    assert_eq!(hours.len(), USAGE_HOURS);
    assert_eq!(hours.iter().map(|hour| hour.demand.created).sum::<u32>(), 6);
    assert!(world.pool.usage().count() <= USAGE_HOURS);
    assert!(hours.windows(2).all(|two| two[1].start.millis_since(two[0].start) == HOUR));
}

// rule U1
#[test]
fn a_pool_that_was_idle_for_longer_than_a_week_shows_a_whole_week() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.advance("1000h");
    let hours = week(&mut world);
    assert_eq!(hours.len(), USAGE_HOURS);
    let whole = &hours[..USAGE_HOURS - 1];
    assert!(whole.iter().all(|hour| hour.supply.idle_running_seconds.millis == 3_600_000));
    world.lease("a");
    assert_eq!(week(&mut world).len(), USAGE_HOURS);
    assert_eq!(world.pool.usage().count(), USAGE_HOURS);
}

// rule U2
#[test]
fn a_restart_counts_nothing_again_and_loses_nothing() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    world.advance("10m");
    let before = week(&mut world);
    world.restart();
    world.restart();
    assert_eq!(week(&mut world), before);
    world.settle();
    assert_eq!(total(&mut world).demand.created, 1);
}

// rule U2
#[test]
fn a_decision_that_a_crash_lost_is_not_counted_and_counts_once_when_it_is_done_again() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    world.command(Command::Pass).expect("a pass");
    let tick = world.tick();
    let mut object = world.get("a").present();
    object.spec.state = LeaseState::Done;
    object.metadata.generation += 1;
    let uid = world.get("a").uid();
    let command = || Command::UpdateLease {
        uid,
        object: Box::new(object.clone()),
        by: holder(),
        standing: Standing::Other,
    };
    let lost = world.pool.decide(command(), &tick, &world.inputs).expect("Done is taken");
    assert!(!lost.changes.is_empty());
    world.restart();
    world.command(command()).expect("Done is taken again");
    world.settle();
    world.settle();
    assert_eq!(total(&mut world).endings.done, 1);
}

// rule U2
#[test]
fn rows_that_are_put_twice_count_once() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let (uid, tick) = (world.lease("a"), world.tick());
    world.settle();
    let command = Command::DeleteLease { uid, by: holder(), standing: Standing::Other };
    let decision = world.pool.decide(command, &tick, &world.inputs).expect("a delete is taken");
    let mut once = world.pool.clone();
    once.evolve_all(&decision.changes);
    let mut twice = once.clone();
    twice.evolve_all(&decision.changes);
    assert!(once == twice);
}

// rule U2
#[test]
fn a_wall_clock_that_is_set_counts_no_time_twice() {
    for step in [-2 * HOUR, -60_000, 5 * HOUR, 40_000] {
        let mut world = World::warm(json!({"warm": {"running": 1, "stopAfter": "48h"}}));
        world.advance("3h");
        world.step_wall(step);
        world.lease("a");
        world.settle();
        world.advance("3h");
        world.done("a");
        world.settle();
        let spent = stored(&mut world, HOUR * 12).supply;
        let members =
            spent.idle_running_seconds.millis + spent.leased_seconds.millis + spent.building_seconds.millis;
        // One member for three hours, then the leased one and its successor for three more.
        assert_eq!(members, 9 * 3_600_000, "stepped by {step} ms");
        assert_eq!(total(&mut world).demand.created, 1);
    }
}

// rule U2
#[test]
fn a_wall_clock_that_was_years_ahead_leaves_no_rows_behind() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let years = 1000 * 24 * HOUR;
    world.step_wall(years);
    world.lease("a");
    world.settle();
    world.step_wall(-years);
    world.done("a");
    world.settle();
    assert_eq!(week(&mut world).len(), 1);
    assert_eq!(world.pool.usage().count(), 1);
}

// rule U3
#[test]
fn the_history_goes_with_the_pool_and_failed_leases_that_outlive_it_count_nothing() {
    let mut world = World::warm(json!({"size": {"max": 1}, "warm": {"running": 1}}));
    world.lease("a");
    world.lease("b");
    world.settle();
    assert!(world.pool.usage().count() > 0);
    world.delete_pool();
    world.done("a");
    world.settle();
    assert!(world.pool.row().is_gone() && world.find("b").is_some());
    assert_eq!(world.pool.usage().count(), 0);
    world.done("b");
    assert!(world.pool.has_ended());
    assert_eq!(world.pool.usage().count(), 0);
}

// rule D4
#[test]
fn another_pool_of_the_same_name_has_rows_of_its_own() {
    let (one, other) = (ulid::Ulid::from_parts(1, 1), ulid::Ulid::from_parts(1, 2));
    let now = Time::from_millis(START);
    assert_ne!(UsageRow::uid_at(one, now), UsageRow::uid_at(other, now));
    assert_eq!(UsageRow::uid_at(one, now), UsageRow::at(one, now.plus_millis(HOUR - INTO - 1)).uid());
    assert_ne!(UsageRow::uid_at(one, now), UsageRow::uid_at(one, now.plus_millis(HOUR - INTO)));
}

#[test]
fn a_pool_of_a_version_that_did_not_count_begins_with_what_is_there() {
    let mut world = World::warm(json!({"warm": {"running": 2}}));
    let before = world.pool.clone();
    world.pool = Pool::load(
        before.row().clone(),
        before.leases().cloned(),
        before.members().cloned(),
        before.events().cloned(),
    );
    let (object, tick) = (world.get_new("a"), world.tick());
    let command = Command::CreateLease { object: Box::new(object), by: holder() };
    let decision = world.pool.decide(command, &tick, &world.inputs).expect("a lease is taken");
    world.pool.evolve_all(&decision.changes);
    let mark = world.pool.usage().find_map(|row| row.mark).expect("a mark");
    assert_eq!(mark.level, Level { idle_running: 2, ..Level::default() });
}

#[test]
fn the_seconds_of_a_mark_are_spread_over_the_hours_and_lose_none() {
    let level = Level { idle_running: 1, ..Level::default() };
    let mark = Mark { wall: Time::from_millis(START), steady: Time::from_millis(50), level };
    for elapsed in [0, 1, HOUR - INTO, HOUR - INTO + 1, HOUR, 24 * HOUR + 17, 10_000 * HOUR] {
        let tick = crate::object::Tick {
            wall: Time::from_millis(START + elapsed),
            steady: Time::from_millis(50 + elapsed),
            entropy: 0,
        };
        let mut spread = 0;
        mark.spread(&tick, |start, millis| {
            assert!(start.millis() % HOUR == 0 && millis <= 3_600_000);
            spread += i64::try_from(millis).expect("an hour");
        });
        assert_eq!(spread, elapsed.min(168 * HOUR));
    }
}

#[test]
fn seconds_are_written_to_the_millisecond_and_read_back() {
    let supply = Supply {
        idle_running_seconds: Spent { millis: 3_600_000 },
        leased_seconds: Spent { millis: 1_234_567 },
        ..Supply::default()
    };
    let value = serde_json::to_value(&supply).expect("plain data");
    assert_eq!((&value["idleRunningSeconds"], &value["leasedSeconds"]), (&json!(3600), &json!(1234.567)));
    assert_eq!(serde_json::from_value::<Supply>(value).expect("what was written"), supply);
}

#[test]
fn waits_on_a_bound_belong_to_its_bucket_and_longer_ones_to_the_last() {
    let mut waits = Waits::default();
    for millis in [0, 5, 6, 1_800_000, 1_800_001] {
        waits.add(millis);
    }
    assert_eq!((waits.histogram[0], waits.histogram[1]), (2, 1));
    assert_eq!(waits.histogram[14..], [1, 1]);
    assert_eq!(Value::from(waits.count), json!(5));
}

/// The week as people read it now.
fn week(world: &mut World) -> Vec<UsageHour> {
    let tick = world.tick();
    usage_at(world.pool.usage(), &tick)
}

fn present(world: &mut World) -> UsageHour {
    week(world).pop().expect("something was counted")
}

/// All hours together.
fn total(world: &mut World) -> UsageHour {
    joined(week(world))
}

/// Every hour on record, those ahead of the clock too.
fn stored(world: &mut World, ahead: i64) -> UsageHour {
    let mut tick = world.tick();
    tick.wall = tick.wall.plus_millis(ahead);
    joined(usage_at(world.pool.usage(), &tick))
}

fn joined(hours: Vec<UsageHour>) -> UsageHour {
    let mut all = UsageHour::default();
    for hour in &hours {
        all.join(hour);
    }
    all
}

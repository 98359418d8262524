//! What is counted of each life. That the counts add up to what is there, the world checks after
//! every step of every test.

use serde_json::{Value, json};

use super::world::*;
use crate::machine::{Failure, Machine, RecycleStage};
use crate::object::MemberState;
use crate::pool::*;

#[test]
fn a_lease_on_a_running_member_started_warm() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.advance("10s");
    world.lease("a");
    let member = world.member_of("a");
    world.advance("250ms");
    let up = world.up(member);
    world.fact(member, up);
    assert_eq!(readiness(&world), [(Start::Warm, 250)]);
    assert!(world.happened.contains(&Happening::LeaseBound { start: Start::Warm }));
}

#[test]
fn a_lease_on_a_stopped_member_was_resumed() {
    let mut world = World::warm(json!({"warm": {"stopped": 1}}));
    world.advance("10s");
    world.lease("a");
    let member = world.member_of("a");
    world.advance("3s");
    let up = world.up(member);
    world.fact(member, up);
    world.settle();
    assert_eq!(readiness(&world), [(Start::Resumed, 3_000)]);
    assert!(world.happened.contains(&Happening::LeaseBound { start: Start::Resumed }));
}

#[test]
fn a_lease_whose_member_is_built_for_it_started_cold() {
    let mut world = World::new(json!({}));
    world.lease("a");
    let member = world.member_of("a");
    world.advance("20s");
    let up = world.up(member);
    world.fact(member, up);
    world.settle();
    assert_eq!(readiness(&world), [(Start::Cold, 20_000)]);
    assert!(world.happened.contains(&Happening::LeaseBound { start: Start::Cold }));
    assert!(world.happened.contains(&Happening::MemberBuilt { build_millis: 20_000 }));
}

#[test]
fn a_wait_is_told_once_and_is_no_other_for_a_wall_clock_that_was_set() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.advance("1234ms");
    world.lease("a");
    let member = world.member_of("a");
    world.step_wall(-60_000);
    world.advance("250ms");
    world.settle();
    assert_eq!(readiness(&world), [(Start::Warm, 250)], "the clock was stepped back");
    world.fact(member, Machine::Stopped);
    world.settle();
    let up = world.up(member);
    world.fact(member, up);
    world.settle();
    assert_eq!(readiness(&world).len(), 1, "Ready again is no new wait");
}

#[test]
fn a_lease_that_loses_its_member_before_it_is_usable_is_bound_twice_and_ready_once() {
    let mut world = World::new(json!({}));
    world.lease("a");
    world.fail(world.member_of("a"));
    world.settle();
    let count = |happening| world.happened.iter().filter(|h| **h == happening).count();
    assert_eq!(count(Happening::LeaseBound { start: Start::Cold }), 2);
    assert_eq!(count(Happening::LeaseWaitsAgain), 1);
    assert_eq!(readiness(&world).len(), 1);
    assert_eq!(count(Happening::BuildOrdered), 2);
}

#[test]
fn each_way_for_a_lease_to_end_is_told_once() {
    let plain = || json!({"lease": {"maxTerm": "1h", "failedRetention": "1h"}});
    assert_eq!(ending(plain(), |world| world.done("a")), [Ending::Done]);
    assert_eq!(ending(plain(), |world| world.delete_lease("a", &holder()).unwrap()), [Ending::Done]);
    assert_eq!(ending(plain(), |world| world.recycle("a")), [Ending::NotRecycled]);
    assert_eq!(ending(plain(), |world| world.live("3h")), [Ending::ExpiredBound], "and it is forgotten");
    assert_eq!(ending(plain(), |world| world.delete_member(world.member_of("a"))), [Ending::MemberLost]);
    let lost_and_acknowledged = |world: &mut World| {
        world.fact(world.member_of("a"), Machine::Absent);
        world.done("a");
    };
    assert_eq!(ending(plain(), lost_and_acknowledged), [Ending::MemberLost]);
    let lost_while_handed_back = |world: &mut World| {
        let member = world.member_of("a");
        world.done("a");
        world.fact(member, Machine::Absent);
    };
    assert_eq!(ending(plain(), lost_while_handed_back), [Ending::Done]);
    let deleted = |world: &mut World| {
        world.delete_pool();
        world.recycle("a");
    };
    assert_eq!(ending(plain(), deleted), [Ending::NotRecycled]);
}

#[test]
fn a_lease_handed_back_before_a_key_was_sent_is_recycled_or_done() {
    let building = || {
        let mut world = World::new(json!({"recycle": {}}));
        world.lease("a");
        world
    };
    let mut recycled = building();
    recycled.recycle("a");
    assert_eq!((endings(&recycled), removals(&recycled)), (vec![Ending::Recycled], vec![]));
    let mut done = building();
    done.done("a");
    assert_eq!((endings(&done), removals(&done)), (vec![Ending::Done], vec![Removal::Released]));
    let mut cordoned = building();
    let member = cordoned.member_of("a");
    cordoned.cordon(member, true).expect("taken");
    cordoned.recycle("a");
    assert_eq!(
        (endings(&cordoned), removals(&cordoned)),
        (vec![Ending::NotRecycled], vec![Removal::Released])
    );
}

#[test]
fn a_recycle_ends_its_lease_as_it_went() {
    let recycling = || {
        let mut world = World::warm(json!({"recycle": {"timeout": "2m"}}));
        world.lease("a");
        world.settle();
        let member = world.member_of("a");
        world.recycle("a");
        assert_eq!(endings(&world), [], "it is not over yet");
        (world, member)
    };
    let ended = |world: &World| (endings(world), removals(world));
    let (mut done, _) = recycling();
    done.settle();
    assert_eq!(ended(&done), (vec![Ending::Recycled], vec![]));
    for deleted_too in [false, true] {
        let failed = |act: &dyn Fn(&mut World, ulid::Ulid)| {
            let (mut world, member) = recycling();
            if deleted_too {
                world.delete_lease("a", &holder()).expect("taken");
            }
            act(&mut world, member);
            world.live("10s");
            ended(&world)
        };
        let broken = failed(&|world, member| {
            let id = world.order_of(member).id;
            let why = Failure { reason: "ScriptFailed".into(), message: "wipe: exit 3".into() };
            world.report(member, id, RecycleStage::Failed(why));
        });
        assert_eq!(broken, (vec![Ending::RecycleFailed], vec![Removal::RecycleFailed]));
        let lost = failed(&|world, member| world.fact(member, Machine::Absent));
        assert_eq!(lost, (vec![Ending::RecycleFailed], vec![Removal::RecycleFailed]));
        let overdue = failed(&|world, _| world.advance("2m"));
        assert_eq!(overdue, (vec![Ending::RecycleTimedOut], vec![Removal::RecycleFailed]));
        let of_a_pool_that_goes = failed(&|world, _| world.delete_pool());
        assert_eq!(of_a_pool_that_goes, (vec![Ending::NotRecycled], vec![Removal::PoolDeleted]));
    }
    let (mut stopped, _) = recycling();
    stopped.done("a");
    assert_eq!(ended(&stopped), (vec![Ending::Done], vec![Removal::Released]));
}

#[test]
fn a_lease_that_never_got_a_member_ends_apart_from_those_that_did() {
    let waiting = || {
        let mut world = World::warm(json!({"size": {"max": 1}, "lease": {"maxTerm": "1h"}}));
        world.lease("a");
        world.settle();
        world.lease("b");
        world
    };
    let mut cancelled = waiting();
    cancelled.recycle("b");
    assert_eq!(endings(&cancelled), [Ending::Cancelled]);
    let mut expired = waiting();
    expired.advance("1h");
    let mut both = endings(&expired);
    both.sort_unstable();
    assert_eq!(both, [Ending::ExpiredBound, Ending::ExpiredUnbound]);
    let mut deleted = waiting();
    deleted.delete_pool();
    assert_eq!(endings(&deleted), [Ending::PoolDeleted]);
}

#[test]
fn why_a_member_goes_is_told_from_what_was_done() {
    let floor = || {
        World::warm(json!({"warm": {"running": 1, "stopAfter": "1m", "deleteAfter": "1m"},
        "maxAge": "24h"}))
    };
    let goes = |act: &dyn Fn(&mut World, ulid::Ulid)| {
        let mut world = floor();
        let member = world.only(MemberState::IdleRunning);
        act(&mut world, member);
        removals(&world)[0]
    };
    assert_eq!(goes(&|world, member| world.fact(member, Machine::Absent)), Removal::Lost);
    assert_eq!(goes(&|world, member| world.fail(member)), Removal::Lost);
    assert_eq!(goes(&|world, member| world.delete_member(member)), Removal::ByHand);
    assert_eq!(goes(&|world, _| world.delete_pool()), Removal::PoolDeleted);
    assert_eq!(goes(&|world, _| world.live("25h")), Removal::TooOld);
    assert_eq!(goes(&|world, _| world.change(json!({"size": {"max": 0}, "warm": null}))), Removal::Surplus);
    let surplus = |world: &mut World, _| {
        world.change(json!({"warm": {"running": 0}}));
        world.live("10m");
    };
    assert_eq!(goes(&surplus), Removal::Surplus);
    let another_template = |world: &mut World, _| {
        world.change(json!({"template": {"spec": {"environment": {"A": "b"}}}}));
        world.settle();
    };
    assert_eq!(goes(&another_template), Removal::TemplateChanged);
    let expired = |world: &mut World, _| {
        world.ask("a", json!({"expiresAt": world.now.plus_millis(1000)})).expect("taken");
        world.live("2s");
    };
    assert_eq!(goes(&expired), Removal::Expired);
    let not_back = |world: &mut World, member| {
        world.lease("a");
        world.settle();
        world.fact(member, Machine::Stopped);
        world.advance("6m");
    };
    assert_eq!(goes(&not_back), Removal::Lost);
}

#[test]
fn a_failed_build_has_one_of_a_few_reasons_whatever_was_said() {
    let failed = |reason: &str| {
        let mut world = World::new(json!({"warm": {"running": 1}}));
        world.run();
        let member = world.only(MemberState::Building);
        world.fact(member, Machine::Failed(Failure { reason: reason.into(), message: "it broke".into() }));
        assert_eq!(removals(&world), [Removal::BuildFailed]);
        failures(&world)
    };
    assert_eq!(failed("CreateFailed"), [BuildFailure::Create]);
    assert_eq!(failed("StartFailed"), [BuildFailure::Start]);
    assert_eq!(failed("MachineBroken"), [BuildFailure::Broken]);
    assert_eq!(failed("HomeFailed"), [BuildFailure::Setup]);
    assert_eq!(failed("BuildTimedOut"), [BuildFailure::TimedOut]);
    assert_eq!(failed("no space left on /dev/vda1 of host 17"), [BuildFailure::Other]);

    let mut overdue = World::new(json!({"warm": {"running": 1}}));
    overdue.advance("30m");
    assert_eq!(failures(&overdue), [BuildFailure::TimedOut]);
    let mut dropped = World::new(json!({"warm": {"running": 1}}));
    dropped.run();
    dropped.delete_member(dropped.only(MemberState::Building));
    assert_eq!((failures(&dropped), removals(&dropped)), (vec![], vec![Removal::ByHand]));
}

/// How the lease `a` ends on a pool with this spec, by `act`.
fn ending(spec: Value, act: impl FnOnce(&mut World)) -> Vec<Ending> {
    let mut world = World::warm(spec);
    world.lease("a");
    world.settle();
    act(&mut world);
    world.live("10s");
    endings(&world)
}

fn endings(world: &World) -> Vec<Ending> {
    let of = |h: &Happening| if let Happening::LeaseEnded(ending) = h { Some(*ending) } else { None };
    world.happened.iter().filter_map(of).collect()
}

fn removals(world: &World) -> Vec<Removal> {
    let of = |h: &Happening| if let Happening::MemberRemoved(removal) = h { Some(*removal) } else { None };
    world.happened.iter().filter_map(of).collect()
}

fn failures(world: &World) -> Vec<BuildFailure> {
    let of = |h: &Happening| if let Happening::BuildFailed(why) = h { Some(*why) } else { None };
    world.happened.iter().filter_map(of).collect()
}

/// Whenever a lease was first Ready: how it was started, and after how long.
fn readiness(world: &World) -> Vec<(Start, u64)> {
    let of = |h: &Happening| {
        if let Happening::LeaseReady { start, wait_millis } = h { Some((*start, *wait_millis)) } else { None }
    };
    world.happened.iter().filter_map(of).collect()
}

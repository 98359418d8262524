//! What people see of a pool, a lease and a member: the status fields of the three, rules S2, D2,
//! and what foreign finalizers keep.

use serde_json::json;

use super::world::*;
use crate::machine::Machine;
use crate::object::{
    Condition, MemberState, PoolPhase, Time, Truth, Workstation, WorkstationPhase, WorkstationPoolLease,
};
use crate::pool::*;

fn condition<'a>(conditions: &'a [Condition], r#type: &str) -> &'a Condition {
    conditions.iter().find(|condition| condition.r#type == r#type).expect("a condition")
}

fn truth(world: &World, r#type: &str) -> Truth {
    condition(&world.status().conditions, r#type).status
}

fn shown(world: &World, name: &str) -> WorkstationPoolLease {
    world.get(name).present()
}

fn annotation(member: &Workstation, key: &str) -> Option<String> {
    member.metadata.annotations.get(&format!("pools.ringleader.dev/{key}")).cloned()
}

// rule S2
#[test]
fn a_pool_is_pending_until_its_first_member_was_ready_and_ready_ever_after() {
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    assert_eq!(world.status().phase, PoolPhase::Pending);
    assert_eq!(truth(&world, "Ready"), Truth::False);
    world.settle();
    assert_eq!((world.status().phase, truth(&world, "Ready")), (PoolPhase::Ready, Truth::True));
    world.change(json!({"warm": {"running": 0, "stopAfter": "0s", "deleteAfter": "0s"}}));
    world.live("1h");
    assert_eq!((world.counts(), world.status().phase), ([0; 7], PoolPhase::Ready));
}

// rule S2
#[test]
fn a_member_of_an_older_template_makes_the_pool_ready_too() {
    let mut world = World::new(json!({"size": {"max": 1}}));
    world.lease("a");
    world.change(json!({"template": {"spec": {"environment": {"A": "1"}}}}));
    world.settle();
    assert_eq!(world.phase("a"), crate::object::LeasePhase::Ready);
    assert_eq!(world.status().phase, PoolPhase::Ready);
}

// rule S2
#[test]
fn the_pool_counts_its_members_and_leases_and_how_many_more_may_be_built() {
    let spec = json!({"size": {"max": 5}, "warm": {"running": 1, "stopped": 1}, "lease": {"maxTerm": "1h"}});
    let mut world = World::warm(spec);
    world.lease("expires");
    world.settle();
    world.advance("1h");
    world.settle();
    for name in ["a", "b", "c", "d", "e"] {
        world.lease(name);
    }
    world.done("d");
    let a = world.member_of("a");
    world.cordon(a, true).expect("cordoned");
    world.settle();
    world.lease("f");
    world.lease("g");
    let status = world.status();
    let of = |counts: &crate::object::MemberCounts| (counts.leased, counts.idle_running, counts.cordoned);
    assert_eq!(of(&status.members), (5, 0, 1), "{:?}", status.members);
    let leases = &status.leases;
    assert_eq!((leases.pending, leases.bound, leases.ready, leases.failed), (1, 5, 4, 1), "{leases:?}");
    assert_eq!((status.capacity.max, status.capacity.members, status.capacity.room), (5, 5, 0));
    world.change(json!({"size": {"max": 9}, "warm": {"running": 0, "stopped": 0}}));
    assert_eq!(world.status().capacity.room, 9 - world.status().capacity.members);
    world.inputs.room = Room::Limited { more: 2, why: "namespace dev may hold 8 workstations".into() };
    world.run();
    assert_eq!(world.status().capacity.room, 2, "the namespace allows no more");
}

// rule S2
#[test]
fn no_room_is_told_only_while_the_pool_wants_to_build_and_cannot() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let why = "namespace dev may hold 1 workstation";
    world.inputs.room = Room::Limited { more: 0, why: why.into() };
    world.run();
    assert_eq!((truth(&world, "RoomAvailable"), world.status().message.as_str()), (Truth::True, ""));
    world.lease("a");
    let room = condition(&world.status().conditions, "RoomAvailable").clone();
    assert_eq!((room.status, room.reason.as_str()), (Truth::False, "CannotBePlaced"));
    assert_eq!(room.message, format!("waits for room: {why}"));
    world.change(json!({"warm": {"running": 0}}));
    assert_eq!(truth(&world, "RoomAvailable"), Truth::True, "it wants to build nothing");
    world.lease("b");
    assert_eq!(truth(&world, "RoomAvailable"), Truth::False);
    world.change(json!({"size": {"max": 1}}));
    assert_eq!(truth(&world, "RoomAvailable"), Truth::True, "its own size is what holds it");
    assert_eq!(world.status().message, "waits for a member to be released: the pool is at its size.max");
}

// rule S2
#[test]
fn the_floors_are_filled_when_enough_members_are_idle_and_not_before() {
    let mut world = World::new(json!({"warm": {"running": 1, "stopped": 1}}));
    world.run();
    let filled = condition(&world.status().conditions, "WarmFloorsFilled").clone();
    assert_eq!(
        (filled.status, filled.message.as_str()),
        (Truth::False, "0 running and 0 stopped members are idle")
    );
    world.settle();
    assert_eq!(truth(&world, "WarmFloorsFilled"), Truth::True);
    world.lease("a");
    assert_eq!(truth(&world, "WarmFloorsFilled"), Truth::False, "a stopped one is no running one");
    world.settle();
    assert_eq!(truth(&world, "WarmFloorsFilled"), Truth::True);
}

// rule S2
#[test]
fn a_condition_keeps_the_time_of_its_last_change_and_names_the_generation_it_is_of() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let filled = |world: &World| condition(&world.status().conditions, "WarmFloorsFilled").clone();
    let since = filled(&world).last_transition_time;
    world.advance("10s");
    world.change(json!({"lease": {"maxTerm": "1h"}}));
    assert_eq!(world.status().observed_generation, 2);
    assert_eq!((filled(&world).last_transition_time, filled(&world).observed_generation), (since, 2));
    world.lease("a");
    assert_eq!(filled(&world).status, Truth::False);
    assert_eq!(filled(&world).last_transition_time, since.plus_millis(10_000));
}

// rule D2
#[test]
fn a_pool_that_goes_says_that_it_waits_for_machines_when_no_lease_is_left() {
    let mut world = World::warm(json!({"warm": {"running": 2}}));
    world.delete_pool();
    assert_eq!(world.status().message, "waits for the machines of 2 members to go");
    let one = world.in_state(MemberState::Deleting)[0];
    world.fact(one, Machine::Absent);
    assert_eq!(world.status().message, "waits for the machines of 1 member to go");
    assert_eq!(world.status().phase, PoolPhase::Terminating);
}

// rule L1
// rule S1
#[test]
fn a_lease_shows_when_it_was_bound_ready_and_ended_and_its_conditions_say_since_when() {
    let mut world = World::warm(json!({"size": {"max": 1}, "lease": {"maxTerm": "1h"}}));
    let asked = world.now;
    world.lease("a");
    let lease = shown(&world, "a");
    assert_eq!(lease.status.pool_uid, Some(world.pool.row().uid()));
    assert_eq!(lease.metadata.labels["pools.ringleader.dev/pool"], "agents");
    assert_eq!((lease.status.bound_at, lease.status.ready_at), (Some(asked), None));
    world.advance("90s");
    world.settle();
    let lease = shown(&world, "a");
    let ready = asked.plus_millis(90_000);
    assert_eq!((lease.status.ready_at, lease.status.wait_seconds), (Some(ready), Some(90)));
    let since = |lease: &WorkstationPoolLease, r#type: &str| {
        let condition = condition(&lease.status.conditions, r#type);
        (condition.status, condition.last_transition_time)
    };
    assert_eq!(since(&lease, "Bound"), (Truth::True, asked));
    assert_eq!(since(&lease, "Ready"), (Truth::True, ready));
    world.advance("1m");
    let down = world.now;
    world.fact(world.member_of("a"), Machine::Stopped);
    assert_eq!(since(&shown(&world, "a"), "Ready"), (Truth::False, down));
    world.advance("10s");
    world.settle();
    let lease = shown(&world, "a");
    assert_eq!(
        (lease.status.ready_at, lease.status.wait_seconds),
        (Some(ready), Some(90)),
        "the first time counts"
    );
    world.advance("1h");
    let lease = shown(&world, "a");
    assert_eq!(lease.status.ended_at, Some(asked.plus_millis(millis("1h"))));
    assert_eq!(since(&lease, "Bound"), (Truth::False, asked.plus_millis(millis("1h"))));
}

// rule W4
// rule C1
#[test]
fn a_member_shows_its_state_lease_cordon_hash_and_since_when_it_is_idle() {
    let mut world = World::new(json!({"warm": {"stopped": 1}}));
    world.run();
    let member = world.only(MemberState::Building);
    let present = |world: &World| world.member(member).present();
    let state = |world: &World| annotation(&present(world), "state").expect("a state");
    assert_eq!((state(&world), annotation(&present(&world), "idle-since")), ("Building".into(), None));
    assert_eq!(present(&world).status.phase, WorkstationPhase::Pending);
    assert_eq!(annotation(&present(&world), "template-hash"), Some(world.pool.row().template_hash.clone()));
    world.settle();
    let since: Time = world.now;
    assert_eq!(state(&world), "IdleStopped");
    assert_eq!(annotation(&present(&world), "idle-since"), Some(since.to_string()));
    assert_eq!(
        (present(&world).spec.stopped, present(&world).status.phase),
        (true, WorkstationPhase::Stopped)
    );
    let generation = present(&world).metadata.generation;
    world.lease("a");
    assert_eq!((state(&world), annotation(&present(&world), "lease")), ("Starting".into(), Some("a".into())));
    assert_eq!(annotation(&present(&world), "idle-since"), None);
    assert_eq!((present(&world).spec.stopped, present(&world).metadata.generation), (false, generation + 1));
    world.settle();
    assert_eq!((state(&world), present(&world).status.phase), ("Leased".into(), WorkstationPhase::Ready));
    world.cordon(member, true).expect("cordoned");
    assert_eq!(annotation(&present(&world), "cordoned").as_deref(), Some("true"));
    world.done("a");
    assert_eq!(
        (state(&world), present(&world).status.phase),
        ("Deleting".into(), WorkstationPhase::Deleting)
    );
}

// rule W2
#[test]
fn a_foreign_finalizer_keeps_a_members_object_and_nothing_else() {
    let mut world = World::warm(json!({"size": {"max": 1}, "warm": {"running": 1}}));
    let kept = world.only(MemberState::IdleRunning);
    let finalizers = |world: &mut World, finalizers: &[&str]| {
        let mut object = world.member(kept).present();
        object.metadata.finalizers = finalizers.iter().map(ToString::to_string).collect();
        let standing = Standing::OwnerOrAdmin;
        let command = Command::UpdateMember { uid: kept, object: Box::new(object), standing };
        world.command(command).expect("a finalizer is metadata");
        world.run();
    };
    finalizers(&mut world, &["example.org/audit"]);
    world.delete_member(kept);
    world.settle();
    assert_eq!(world.member(kept).metadata.finalizers, ["example.org/audit"]);
    assert_eq!((world.status().members.deleting, world.status().capacity.members), (0, 1));
    world.lease("a");
    assert_ne!(world.member_of("a"), kept, "its place was taken by another");
    finalizers(&mut world, &[]);
    assert!(world.pool.member(kept).is_none());
}

// rule S2
// rule L6
#[test]
fn a_member_that_cannot_be_placed_is_told_of_whether_a_floor_or_a_lease_wants_it() {
    let why = || Machine::Unplaceable { why: "4 GiB asked, 1 GiB left".into() };
    let said = "waits for room: 4 GiB asked, 1 GiB left";
    let mut world = World::new(json!({"warm": {"running": 1}}));
    world.run();
    world.fact(world.only(MemberState::Building), why());
    assert_eq!((truth(&world, "RoomAvailable"), world.status().message.as_str()), (Truth::False, said));
    world.settle();
    assert_eq!((truth(&world, "RoomAvailable"), world.status().message.as_str()), (Truth::True, ""));

    let mut world = World::new(json!({"size": {"max": 1}}));
    world.lease("a");
    world.fact(world.member_of("a"), why());
    assert_eq!(world.message("a"), said, "size.max is not what keeps it waiting");
    assert_eq!(truth(&world, "RoomAvailable"), Truth::False);
}

// rule W8
#[test]
fn no_second_status_is_written_before_the_last_is_durable() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.inputs.status_write = StatusWrite::InFlight;
    world.lease("a");
    assert_eq!(world.status().leases.bound, 0);
    world.inputs.status_write = StatusWrite::Idle;
    world.run();
    assert_eq!(world.status().leases.bound, 1);
}

// rule T1
// rule S5
#[test]
fn a_new_member_bears_the_templates_labels_and_annotations_and_its_pools_namespace() {
    let template =
        json!({"metadata": {"labels": {"app": "runner"}, "annotations": {"team": "blue"}}, "spec": {}});
    let mut world = World::new(json!({"warm": {"running": 1}, "template": template}));
    world.run();
    let metadata = world.member(world.only(MemberState::Building)).present().metadata;
    assert_eq!((metadata.labels["app"].as_str(), metadata.annotations["team"].as_str()), ("runner", "blue"));
    assert_eq!((metadata.namespace.as_deref(), metadata.generation), (Some("dev"), 1));
    assert_eq!(metadata.creation_timestamp, Some(world.now.whole_seconds()));
}

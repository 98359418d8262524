//! Anything, in any order: people, machines that obey, fail, lie late or twice, time, restarts.
//! After each step the world checks every invariant and that memory is what was stored; here come
//! the properties of the steps themselves.

use proptest::prelude::*;
use serde_json::json;

use super::world::*;
use crate::machine::{Fact, Failure, Machine};
use crate::object::{LeasePhase, LeaseState, MemberState};
use crate::pool::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Lease(u8),
    Release(u8, bool),
    DeleteLease(u8),
    Renew(u8),
    Keys(u8, u8),
    Obey(u8),
    Report(u8, Report),
    Repeat(u8),
    Time(u32),
    Back(u32),
    Restart,
    Cordon(u8, bool),
    DeleteMember(u8),
    Template(u8),
    Size(u8),
    Floors(u8, u8),
    Pause(bool),
    Room(u8),
    Builds(u8),
    Devices(u8),
    DeletePool,
}

#[derive(Clone, Copy, Debug)]
enum Report {
    Failed,
    Stopped,
    Absent,
    Booting,
    Unknown,
    Unplaceable,
    Unconfigured,
}

fn step() -> impl Strategy<Value = Step> {
    let report = prop_oneof![
        Just(Report::Failed),
        Just(Report::Stopped),
        Just(Report::Absent),
        Just(Report::Booting),
        Just(Report::Unknown),
        Just(Report::Unplaceable),
        Just(Report::Unconfigured),
    ];
    prop_oneof![
        8 => (0_u8..12).prop_map(Step::Lease),
        5 => (any::<u8>(), any::<bool>()).prop_map(|(n, recycle)| Step::Release(n, recycle)),
        2 => any::<u8>().prop_map(Step::DeleteLease),
        1 => any::<u8>().prop_map(Step::Renew),
        2 => (any::<u8>(), 0_u8..3).prop_map(|(n, key)| Step::Keys(n, key)),
        20 => any::<u8>().prop_map(Step::Obey),
        5 => (any::<u8>(), report).prop_map(|(n, report)| Step::Report(n, report)),
        3 => any::<u8>().prop_map(Step::Repeat),
        8 => (0_u32..4_000_000).prop_map(Step::Time),
        1 => (0_u32..4_000_000).prop_map(Step::Back),
        3 => Just(Step::Restart),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(n, on)| Step::Cordon(n, on)),
        1 => any::<u8>().prop_map(Step::DeleteMember),
        2 => (0_u8..3).prop_map(Step::Template),
        2 => (1_u8..7).prop_map(Step::Size),
        3 => (0_u8..3, 0_u8..3).prop_map(|(running, stopped)| Step::Floors(running, stopped)),
        1 => any::<bool>().prop_map(Step::Pause),
        1 => (0_u8..3).prop_map(Step::Room),
        1 => (0_u8..3).prop_map(Step::Builds),
        1 => (0_u8..3).prop_map(Step::Devices),
        1 => Just(Step::DeletePool),
    ]
}

/// The n-th of what there is.
fn nth<T: Clone>(all: impl Iterator<Item = T>, n: u8) -> Option<T> {
    let all: Vec<T> = all.collect();
    (!all.is_empty()).then(|| all[usize::from(n) % all.len()].clone())
}

fn take(world: &mut World, step: Step) {
    let lease = |world: &World, n| nth(world.pool.leases().map(|lease| lease.metadata.name.clone()), n);
    let member = |world: &World, n| nth(world.pool.members().map(Member::uid), n);
    match step {
        Step::Lease(n) => {
            let name = format!("lease-{n}");
            if world.find(&name).is_none() {
                let _ = world.ask(&name, json!({}));
            }
        }
        Step::Release(n, recycle) => {
            let state = if recycle { "Recycle" } else { "Done" };
            lease(world, n).map(|name| world.write(&name, json!({"state": state}), &holder()));
        }
        Step::DeleteLease(n) => _ = lease(world, n).map(|name| world.delete_lease(&name, &owner())),
        Step::Renew(n) => {
            lease(world, n).map(|name| world.write(&name, json!({"expiresAt": null}), &holder()));
        }
        Step::Keys(n, other) => {
            let keys = json!({"authorizedKeys": [format!("ssh-ed25519 OTHER-{other}")]});
            lease(world, n).map(|name| world.write(&name, keys, &holder()));
        }
        Step::Obey(n) => {
            if let Some(want) = nth(world.wants.values().cloned(), n) {
                let machine = world.obeying(&want);
                world.fact(want.member_uid, machine);
            }
        }
        Step::Report(n, report) => {
            if let Some(uid) = member(world, n) {
                let machine = reported(world, uid, report);
                world.fact(uid, machine);
            }
        }
        Step::Repeat(n) => {
            if let Some(want) = nth(world.wants.values().cloned(), n) {
                let machine = world.up(want.member_uid);
                world.fact_at(want.member_uid, want.revision.saturating_sub(1), machine);
            }
        }
        Step::Time(millis) => world.advance(&format!("{millis}ms")),
        Step::Back(millis) => {
            world.now = world.now.plus_millis(-i64::from(millis));
            world.run();
        }
        Step::Restart => world.restart(),
        Step::Cordon(n, on) => _ = member(world, n).map(|uid| world.cordon(uid, on)),
        Step::DeleteMember(n) => {
            if let Some(uid) = member(world, n) {
                world.delete_member(uid);
            }
        }
        Step::Template(n) => {
            let environment = json!({"N": n.to_string()});
            change(world, json!({"template": {"spec": {"environment": environment}}}));
        }
        Step::Size(max) => change(world, json!({"size": {"max": max}})),
        Step::Floors(running, stopped) => {
            change(world, json!({"warm": {"running": running, "stopped": stopped}}));
        }
        Step::Pause(paused) => change(world, json!({"paused": paused})),
        Step::Room(more) => {
            world.inputs.room = match more {
                0 => Room::Limited { more: 0, why: "full".into() },
                _ => Room::Unlimited,
            };
            world.run();
        }
        Step::Builds(allowed) => {
            world.inputs.builds_allowed = allowed.into();
            // The shell lowers the allowance with every build; one look after another is as good.
            let _ = world.command(Command::Pass);
            world.inputs.builds_allowed = u32::MAX;
            world.run();
        }
        Step::Devices(n) => {
            world.inputs.owner_keys = OwnerKeys::new(vec![format!("ssh-ed25519 DEVICE-{n}")]);
            world.run();
        }
        Step::DeletePool if world.pool.row().is_gone() => {}
        Step::DeletePool => world.delete_pool(),
    }
}

fn change(world: &mut World, patch: serde_json::Value) {
    if !world.pool.row().is_gone() {
        world.change(patch);
    }
}

fn reported(world: &mut World, uid: ulid::Ulid, report: Report) -> Machine {
    match report {
        Report::Failed => Machine::Failed(Failure { reason: "Broken".into(), message: "it broke".into() }),
        Report::Stopped => Machine::Stopped,
        Report::Absent => Machine::Absent,
        Report::Booting => Machine::Booting,
        Report::Unknown => Machine::Unknown { why: "no answer".into() },
        Report::Unplaceable => Machine::Unplaceable { why: "no room".into() },
        Report::Unconfigured => {
            let Machine::Running(mut running) = world.up(uid) else { return Machine::Booting };
            running.configured = false;
            running.keys_confirmed = false;
            Machine::Running(running)
        }
    }
}

/// What must hold between one state and the next, and of the wants.
fn check(before: &Pool, world: &World) {
    let after = &world.pool;
    let built = after.members().any(|member| before.member(member.uid()).is_none());
    let live = after.members().filter(|member| !member.is_over()).count();
    assert!(!built || live <= after.row().spec.size.max as usize, "built above size.max");
    for member in after.members() {
        let Some(old) = before.member(member.uid()) else { continue };
        assert!(!old.is_gone_ordered() || member.is_gone_ordered(), "gone is absorbing");
        assert!(member.wanted.revision >= old.wanted.revision, "a revision went back");
    }
    for lease in after.leases() {
        let Some(old) = before.lease(lease.uid()) else { continue };
        assert_eq!(old.holder, lease.holder);
        assert!(old.spec.state == lease.spec.state || old.spec.state != LeaseState::Done);
        assert!(old.phase != LeasePhase::Failed || lease.phase == LeasePhase::Failed, "Failed is final");
        let rebound = old.ready_at.is_some() && lease.member.is_some() && old.member != lease.member;
        assert!(!rebound, "a lease that was Ready was moved to another member");
    }
    for want in world.wants.values() {
        let Some(member) = after.member(want.member_uid) else { continue };
        assert_eq!(want.revision, member.wanted.revision, "the newest want was not sent");
        for lease in after.leases().filter(|lease| lease.phase != LeasePhase::Failed) {
            let bound = lease.member.as_ref().is_some_and(|bond| bond.uid == member.uid());
            let entitled =
                bound && member.state == MemberState::Leased && lease.asked() == LeaseState::Needed;
            let carried = lease.spec.authorized_keys.iter().all(|key| want.keys.contains(key));
            let alone = lease.spec.authorized_keys[0].starts_with("ssh-ed25519 KEY-OF");
            assert!(!entitled || carried, "a lease's keys are missing");
            assert!(entitled || !alone || !carried, "a member carries the keys of a lease it does not serve");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 4_000, ..ProptestConfig::default() })]

    // rule L8
    // rule F5
    // rule W2
    #[test]
    fn whatever_happens_in_whatever_order_the_invariants_hold(
        max in 1_u8..6,
        recycles in any::<bool>(),
        ages in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let mut spec = json!({"size": {"max": max}, "warm": {"running": 1}, "lease": {"maxTerm": "3h", "maxPending": 5}});
        if recycles {
            spec["recycle"] = json!({});
        }
        if ages {
            spec["maxAge"] = json!("2h");
        }
        let mut world = World::new(spec);
        let mut latest = world.now;
        for step in steps {
            latest = latest.max(world.now);
            let before = world.pool.clone();
            take(&mut world, step);
            check(&before, &world);
            if world.pool.has_ended() {
                break;
            }
        }
        // A wall clock that was stepped back is set right again before all has to be well.
        world.now = latest.max(world.now);
        come_to_rest(&mut world);
    }
}

/// Once machines obey and there is room again, every lease is served or over within its term and
/// the floors are filled: nothing was forgotten on the way.
fn come_to_rest(world: &mut World) {
    world.inputs.room = Room::Unlimited;
    change(world, json!({"paused": false, "size": {"max": 12}}));
    let cordoned: Vec<_> = world.pool.members().filter(|member| member.cordoned).map(Member::uid).collect();
    for uid in cordoned {
        world.cordon(uid, false).expect("uncordoned");
    }
    world.live("90m");
    for lease in world.pool.leases() {
        assert!(matches!(lease.phase, LeasePhase::Ready | LeasePhase::Failed), "{lease:?}");
    }
    let warm = &world.pool.row().spec.warm;
    let [building, starting, running, stopped, _, stopping, deleting] = world.counts();
    assert_eq!([building, starting, stopping, deleting], [0; 4], "all have arrived");
    if !world.pool.row().is_deleting() {
        assert_eq!(
            (running, stopped),
            (warm.running as usize, warm.stopped as usize),
            "the floors are exact"
        );
    }
    let tick = world.tick();
    let decision =
        world.pool.decide(Command::Fact(unknown_fact()), &tick, &world.inputs).expect("never refused");
    assert_eq!(decision.act, Act::Nothing, "a fact of an unknown member is dropped");
}

fn unknown_fact() -> Fact {
    Fact { member_uid: ulid::Ulid(1), observed_revision: 1, machine: Machine::Absent, recycle: None }
}

//! Asking for a member, getting it, and keeping it: rules L1 to L8, L16, L18 to L21.

use serde_json::json;

use super::world::*;
use crate::machine::Machine;
use crate::object::{FailedReason, LeasePhase, MemberState, Subject};
use crate::pool::*;

// rule L1
#[test]
fn the_holder_and_the_pool_of_a_lease_never_change() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    assert_eq!(world.get("a").holder, holder());
    let other = json!({"workstationPoolRef": {"name": "others"}});
    assert_eq!(world.write("a", other, &holder()), Err(Denied::PoolRefChanged));
    let mut object = world.get("a").present();
    object.status.holder = Some(owner());
    assert_eq!(world.update("a", object, &holder()), Err(Denied::IdentityChanged { path: "status.holder" }));
    let mut object = world.get("a").present();
    object.status.pool_uid = Some(ulid::Ulid(8));
    assert_eq!(world.update("a", object, &holder()), Err(Denied::IdentityChanged { path: "status.poolUID" }));
}

// rule L2
#[test]
fn the_state_moves_forward_only_and_a_refusal_names_both() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let denied = world.ask("born-done", json!({"state": "Done"})).expect_err("a new lease is Needed");
    assert_eq!(denied, Denied::BornReleased(crate::object::LeaseState::Done));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    world.done("a");
    assert_eq!(world.state(member), MemberState::Deleting);
    for state in ["Needed", "Recycle"] {
        let denied = world.write("a", json!({"state": state}), &holder()).expect_err("it has ended");
        assert!(denied.to_string().contains(&format!("from Done to {state}")), "{denied}");
    }
}

// rule L2
#[test]
fn once_released_only_the_state_may_change() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    let together = json!({"state": "Done", "authorizedKeys": []});
    let path = "spec.authorizedKeys";
    assert_eq!(world.write("a", together, &holder()), Err(Denied::OnlyStateMayChange { path }));
    world.recycle("a");
    let later = json!({"expiresAt": world.now.plus_millis(1000)});
    let path = "spec.expiresAt";
    assert_eq!(world.write("a", later, &holder()), Err(Denied::OnlyStateMayChange { path }));
    world.write("a", json!({"expiresAt": null, "state": "Done"}), &holder()).expect("only the state changes");
}

// rule L3
#[test]
fn a_lease_without_a_time_ends_one_term_after_the_write() {
    let mut world = World::new(json!({"lease": {"maxTerm": "1h"}}));
    world.lease("a");
    assert_eq!(world.get("a").expires_at(), world.now.plus_millis(millis("1h")));
    world.advance("10m");
    let kept = world.get("a").expires_at();
    world.write("a", json!({"authorizedKeys": []}), &holder()).expect("a patch that leaves it out");
    assert_eq!(world.get("a").expires_at(), kept);
    world.write("a", json!({"expiresAt": null}), &holder()).expect("a write without it");
    assert_eq!(world.get("a").expires_at(), world.now.plus_millis(millis("1h")));
}

// rule L4
#[test]
fn only_a_changed_time_is_judged() {
    let mut world = World::new(json!({"lease": {"maxTerm": "1h"}}));
    world.lease("a");
    let now = world.now;
    let past = world.write("a", json!({"expiresAt": now}), &holder()).expect_err("now is past");
    assert!(matches!(past, Denied::ExpiresInThePast { .. }));
    let far = json!({"expiresAt": now.plus_millis(millis("1h") + 1)});
    assert!(matches!(world.write("a", far, &holder()), Err(Denied::ExpiresTooLate { .. })));
    world.write("a", json!({"expiresAt": now.plus_millis(1000)}), &holder()).expect("earlier is allowed");
    world.write("a", json!({"expiresAt": now.plus_millis(millis("1h"))}), &holder()).expect("renewed");
    world.change(json!({"lease": {"maxTerm": "1m"}}));
    world.write("a", json!({"authorizedKeys": []}), &holder()).expect("an old time is left alone");
    assert_eq!(world.get("a").expires_at(), now.plus_millis(millis("1h")));
}

// rule L4
#[test]
fn a_renewal_handled_at_the_instant_of_expiry_is_refused() {
    let mut world = World::new(json!({"lease": {"maxTerm": "1h"}}));
    world.lease("a");
    let expiry = world.get("a").expires_at();
    world.now = expiry;
    let renewal = json!({"expiresAt": expiry.plus_millis(1000)});
    assert_eq!(world.write("a", renewal, &holder()), Err(Denied::Expired(expiry)));
}

// rule L5
#[test]
fn a_lease_gets_the_idle_running_member_used_most_recently() {
    let mut world = World::new(json!({"warm": {"running": 2}}));
    world.run();
    let [first, second] = world.in_state(MemberState::Building)[..] else { panic!("two are built") };
    for member in [second, first] {
        world.advance("1m");
        let up = world.up(member);
        world.fact(member, up);
    }
    world.advance("1m");
    // A start is no use: `second` became idle first and stays the one unused for longest.
    world.fact(second, Machine::Stopped);
    world.settle();
    world.lease("a");
    assert_eq!(world.member_of("a"), first);
}

// rule L5
#[test]
fn a_lease_prefers_running_to_being_built_to_stopped_to_new() {
    let mut world = World::warm(json!({"size": {"max": 4}, "warm": {"running": 1, "stopped": 1}}));
    let (running, stopped) = (world.only(MemberState::IdleRunning), world.only(MemberState::IdleStopped));
    world.lease("a");
    assert_eq!(world.member_of("a"), running);
    let refill = world.only(MemberState::Building);
    world.lease("b");
    assert_eq!(world.member_of("b"), refill, "the refill of the floor serves the next lease");
    let spare =
        world.in_state(MemberState::Building).into_iter().find(|uid| *uid != refill).expect("a refill");
    world.cordon(spare, true).expect("the owner may cordon");
    world.lease("c");
    assert_eq!(world.member_of("c"), stopped);
    assert_eq!(world.state(stopped), MemberState::Starting);
    world.lease("d");
    assert_eq!(world.phase("d"), LeasePhase::Pending, "the pool is at its size");
}

// rule L5
#[test]
fn a_member_on_its_way_to_stopped_is_started_again() {
    let mut world = World::warm(json!({"warm": {"running": 0, "stopped": 1}}));
    let member = world.only(MemberState::IdleStopped);
    world.lease("a");
    world.settle();
    assert_eq!((world.member_of("a"), world.phase("a")), (member, LeasePhase::Ready));
    let mut world = World::new(json!({"warm": {"running": 0, "stopped": 1}}));
    world.run();
    let member = world.only(MemberState::Building);
    let up = world.up(member);
    world.fact(member, up);
    assert_eq!(world.state(member), MemberState::Stopping);
    world.lease("a");
    assert_eq!((world.member_of("a"), world.state(member)), (member, MemberState::Starting));
}

// rule L6
#[test]
fn a_waiting_lease_says_what_it_waits_for() {
    let mut world = World::new(json!({"size": {"max": 1}}));
    world.lease("first");
    world.lease("second");
    assert_eq!(world.message("second"), "waits for a member to be released: the pool is at its size.max");
    world.change(json!({"paused": true}));
    assert_eq!(world.message("second"), "waits for the pool to be resumed: it is paused");
    world.change(json!({"paused": false, "size": {"max": 2}, "template": {"spec": {"requirements": ["provider:moon"]}}}));
    assert_eq!(
        world.message("second"),
        "waits for the template to be fixed: this daemon has no provider moon"
    );
    world.inputs.room = Room::Limited { more: 0, why: "namespace dev may hold 1 workstation".into() };
    world.change(json!({"template": {"spec": {"requirements": []}}}));
    assert_eq!(world.message("second"), "waits for room: namespace dev may hold 1 workstation");
    world.inputs.room = Room::Unlimited;
    world.run();
    assert_eq!(world.phase("second"), LeasePhase::Starting);
}

// rule L6
#[test]
fn a_lease_that_waits_for_the_back_off_says_until_when() {
    let mut world = World::new(json!({}));
    world.lease("a");
    for _ in 0..3 {
        world.fail(world.only(MemberState::Building));
        world.settle_deletes();
    }
    let until = world.now.plus_millis(60_000);
    let said = format!("waits for the next build at {until}: the template failed 3 times in a row");
    assert_eq!(world.message("a"), said);
}

// rule L7
#[test]
fn waiting_leases_are_served_oldest_first() {
    let mut world = World::new(json!({"size": {"max": 1}}));
    for name in ["first", "second", "third"] {
        world.lease(name);
        world.advance("1s");
    }
    world.settle();
    assert_eq!(
        phases(&world, ["first", "second", "third"]),
        [LeasePhase::Ready, LeasePhase::Pending, LeasePhase::Pending]
    );
    world.done("first");
    world.settle();
    assert_eq!(phases(&world, ["second", "third"]), [LeasePhase::Ready, LeasePhase::Pending]);
}

// rule L7
#[test]
fn a_lease_that_loses_its_member_keeps_its_place() {
    let mut world = World::new(json!({"size": {"max": 1}}));
    world.lease("first");
    world.advance("1s");
    world.lease("second");
    let member = world.only(MemberState::Building);
    world.fail(member);
    assert_eq!(phases(&world, ["first", "second"]), [LeasePhase::Pending, LeasePhase::Pending]);
    world.settle();
    assert_eq!(phases(&world, ["first", "second"]), [LeasePhase::Ready, LeasePhase::Pending]);
    assert_ne!(world.member_of("first"), member);
}

// rule L7
#[test]
fn a_lease_is_not_moved_while_its_own_member_is_healthy() {
    let mut world = World::new(json!({"size": {"max": 3}}));
    world.lease("a");
    let member = world.member_of("a");
    world.change(json!({"warm": {"running": 1}}));
    let spare =
        world.in_state(MemberState::Building).into_iter().find(|uid| *uid != member).expect("a spare");
    let up = world.up(spare);
    world.fact(spare, up);
    assert_eq!((world.state(spare), world.member_of("a")), (MemberState::IdleRunning, member));
}

// rule L8
#[test]
fn a_binding_is_written_from_both_sides_at_once() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let object = world.get_new("a");
    world.command(Command::CreateLease { object: Box::new(object), by: holder() }).expect("taken");
    let bind = world.command(Command::Pass).expect("a pass");
    assert_eq!(bind.act, Act::Bind);
    let lease =
        bind.changes.iter().any(|change| matches!(change, Change::PutLease(lease) if lease.member.is_some()));
    let member = bind
        .changes
        .iter()
        .any(|change| matches!(change, Change::PutMember(member) if member.lease.is_some()));
    let counted = matches!(bind.changes.last(), Some(Change::PutUsage(_)));
    assert!(lease && member && counted && bind.changes.len() == 3);
}

// rule L16
#[test]
fn a_lease_is_refused_when_too_many_wait() {
    let mut world = World::new(json!({"size": {"max": 1}, "lease": {"maxPending": 2}}));
    for name in ["bound", "waits", "waits-too"] {
        world.lease(name);
    }
    let denied = world.ask("one-more", json!({})).expect_err("two wait already");
    assert!(matches!(denied.answer(), Answer::TooMany { .. }), "{denied}");
    world.change(json!({"lease": {"maxPending": 1}}));
    assert_eq!(world.phase("waits-too"), LeasePhase::Pending, "those that wait stay");
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
// rule L21
#[test]
fn a_machine_that_restarts_after_the_wall_clock_was_set_back_is_believed() {
    let mut world = World::new(json!({}));
    world.lease("a");
    let member = world.member_of("a");
    let Machine::Running(mut running) = world.up(member) else { panic!("it is up") };
    let first = Machine::Running(running.clone());
    running.keys_confirmed = false;
    world.fact(member, Machine::Running(running));
    assert_eq!(world.phase("a"), LeasePhase::Starting);
    world.step_wall(-3_600_000);
    world.forget_boot(member);
    let next = world.up(member);
    world.fact(member, next);
    assert_eq!(world.phase("a"), LeasePhase::Ready);
    let seen = world.member(member).observed.boot_id;
    world.fact(member, first);
    assert_eq!(world.member(member).observed.boot_id, seen, "and nothing of the boot before is");
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

// rule L18
#[test]
fn changed_keys_are_on_the_member_when_observed_generation_says_so() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    world.write("a", json!({"authorizedKeys": ["ssh-ed25519 NEW"]}), &holder()).expect("taken");
    let lease = world.get("a");
    assert_eq!(
        (lease.phase, lease.metadata.generation, lease.observed_generation),
        (LeasePhase::Ready, 2, 1)
    );
    let member = world.member_of("a");
    assert_eq!(world.wants[&member].keys, ["ssh-ed25519 OWNER", "ssh-ed25519 NEW"]);
    let before = world.wants[&member].revision - 1;
    let up = world.up(member);
    world.fact_at(member, before, up);
    assert_eq!(world.get("a").observed_generation, 1, "an older want says nothing of these keys");
    world.settle();
    assert_eq!(world.get("a").observed_generation, 2);
    world.write("a", json!({"expiresAt": world.now.plus_millis(1000)}), &holder()).expect("taken");
    assert_eq!(world.get("a").observed_generation, 3, "other changes need nobody's word");
}

// rule L18
#[test]
fn a_ready_lease_says_why_its_new_keys_are_not_on_the_member() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    assert_eq!(world.message("a"), "");
    world.write("a", json!({"authorizedKeys": ["ssh-ed25519 NEW"]}), &holder()).expect("taken");
    let Machine::Running(mut running) = world.up(member) else { panic!("it is up") };
    running.keys_confirmed = false;
    running.remarks = vec!["keys: no space left".into()];
    world.fact(member, Machine::Running(running));
    let name = world.member(member).metadata.name.clone();
    assert_eq!(world.message("a"), format!("{name} is taking the lease's keys: keys: no space left"));
    assert_eq!(world.phase("a"), LeasePhase::Ready, "the old keys still open it");
    world.settle();
    assert_eq!((world.message("a"), world.get("a").observed_generation), (String::new(), 2));
}

// rule L19
#[test]
fn a_lease_is_ready_only_when_the_agent_has_confirmed_the_keys() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    let uid = world.lease("a");
    let member = world.member_of("a");
    assert!(world.has_key(member, "a"));
    let revision = world.wants[&member].revision;
    let up = world.up(member);
    world.fact_at(member, revision - 1, up.clone());
    assert_eq!(world.phase("a"), LeasePhase::Starting, "those were the keys of an older want");
    let Machine::Running(mut running) = up else { panic!("it is up") };
    running.keys_confirmed = false;
    world.fact_at(member, revision, Machine::Running(running));
    assert_eq!(world.phase("a"), LeasePhase::Starting);
    assert!(world.get("a").ssh.is_none());
    world.settle();
    let lease = world.pool.lease(uid).expect("the lease");
    let ssh = lease.ssh.clone().expect("ssh works from now on");
    assert_eq!(lease.phase, LeasePhase::Ready);
    let name = world.member(member).metadata.name.clone();
    assert_eq!(
        (ssh.user, ssh.command, ssh.proxy),
        ("dev".into(), format!("rl shell {name}"), format!("rl proxy {name}"))
    );
}

// rule L19
#[test]
fn a_lease_is_not_ready_on_a_machine_that_has_booted_anew_without_the_keys() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    let member = world.member_of("a");
    let old_boot = world.up(member);
    world.fact(member, Machine::Stopped);
    world.fact(member, old_boot);
    assert_eq!(world.phase("a"), LeasePhase::Starting, "a fact of the old boot is dropped");
    let Machine::Running(mut running) = world.up(member) else { panic!("it is up") };
    running.keys_confirmed = false;
    world.fact(member, Machine::Running(running));
    assert_eq!(world.phase("a"), LeasePhase::Starting);
}

// rule L20
#[test]
fn after_a_restart_everything_due_is_done_at_once() {
    let mut world =
        World::warm(json!({"size": {"max": 2}, "warm": {"running": 1}, "lease": {"maxTerm": "1h"}}));
    for name in ["a", "b", "c", "d"] {
        world.lease(name);
    }
    world.settle();
    world
        .write("c", json!({"expiresAt": world.now.plus_millis(millis("3h").min(millis("1h")))}), &holder())
        .expect("taken");
    world.now = world.now.plus_millis(millis("1h"));
    world.restart();
    for name in ["a", "b", "c", "d"] {
        assert_eq!(world.get(name).reason, Some(FailedReason::Expired), "{name}");
    }
}

// rule L21
#[test]
fn a_clock_stepped_back_extends_nothing() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "lease": {"maxTerm": "1h"}}));
    world.lease("a");
    world.settle();
    world.now = world.now.plus_millis(-millis("10h"));
    world.advance("59m");
    assert_eq!(world.phase("a"), LeasePhase::Ready);
    world.advance("1m");
    assert_eq!(world.get("a").reason, Some(FailedReason::Expired));
}

// rule L21
#[test]
fn a_renewal_that_comes_out_at_the_same_date_is_a_renewal() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "lease": {"maxTerm": "1h"}}));
    world.lease("a");
    world.settle();
    let expiry = world.get("a").expires_at();
    world.advance("30m");
    world.step_wall(-millis("30m"));
    world.write("a", json!({"expiresAt": null}), &holder()).expect("a renewal");
    assert_eq!(world.get("a").expires_at(), expiry);
    world.advance("59m");
    assert_eq!(world.phase("a"), LeasePhase::Ready);
    world.advance("1m");
    assert_eq!(world.get("a").reason, Some(FailedReason::Expired));
}

// rule A7
// rule A8
#[test]
fn the_owner_may_end_a_lease_and_write_nothing_else_of_it() {
    let mut world = World::warm(json!({"warm": {"running": 1}}));
    world.lease("a");
    world.settle();
    let stranger = Subject::user("stranger");
    assert_eq!(world.write("a", json!({"state": "Done"}), &stranger), Err(Denied::NotYourLease));
    assert_eq!(world.delete_lease("a", &stranger), Err(Denied::NotYourLease));
    for (patch, path) in [
        (json!({"state": "Recycle"}), "spec.state: Recycle"),
        (json!({"authorizedKeys": []}), "spec.authorizedKeys"),
        (json!({"expiresAt": world.now.plus_millis(1000)}), "spec.expiresAt"),
    ] {
        assert_eq!(world.write("a", patch, &owner()), Err(Denied::OnlyTheHolder { path }));
    }
    world.write("a", json!({"state": "Done"}), &owner()).expect("the owner may write Done");
}

// rule A4
#[test]
fn a_change_of_the_owners_devices_reaches_every_member() {
    let mut world = World::warm(json!({"warm": {"running": 1, "stopped": 1}}));
    world.lease("a");
    world.settle();
    world.inputs.owner_keys = OwnerKeys::new(vec!["ssh-ed25519 LAPTOP".into(), "ssh-ed25519 LAPTOP".into()]);
    world.run();
    for want in world.wants.values().filter(|want| !want.gone) {
        assert_eq!(want.keys[0], "ssh-ed25519 LAPTOP");
    }
    assert_eq!(world.wants[&world.member_of("a")].keys.len(), 2);
}

// rule L2
#[test]
fn a_recycle_is_not_taken_back_and_a_new_lease_is_not_born_with_one() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "recycle": {}}));
    let denied = world.ask("born", json!({"state": "Recycle"})).expect_err("a new lease is Needed");
    assert_eq!(denied, Denied::BornReleased(crate::object::LeaseState::Recycle));
    world.lease("a");
    world.settle();
    world.recycle("a");
    let denied = world.write("a", json!({"state": "Needed"}), &holder()).expect_err("it is released");
    assert!(denied.to_string().contains("from Recycle to Needed"), "{denied}");
    world.write("a", json!({"state": "Done"}), &holder()).expect("Recycle moves on to Done");
}

// rule L2
// rule L4
#[test]
fn a_failed_lease_cannot_be_renewed() {
    let mut world = World::new(json!({"lease": {"maxTerm": "1h"}}));
    world.lease("a");
    world.advance("1h");
    let renewal = json!({"expiresAt": world.now.plus_millis(1000)});
    let path = "spec.expiresAt";
    assert_eq!(world.write("a", renewal, &holder()), Err(Denied::OnlyStateMayChange { path }));
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

// rule L16
// rule T5
#[test]
fn a_lowered_max_pending_refuses_new_leases_until_fewer_wait() {
    let mut world = World::new(json!({"size": {"max": 1}, "lease": {"maxPending": 3}}));
    for name in ["bound", "one", "two"] {
        world.lease(name);
    }
    world.change(json!({"lease": {"maxPending": 2}}));
    let denied = world.ask("late", json!({})).expect_err("two wait");
    let Answer::TooMany { retry_after_secs } = denied.answer() else { panic!("{denied}") };
    assert!(retry_after_secs > 0);
    world.done("one");
    world.ask("late", json!({})).expect("one waits");
}

// rule L21
// rule L4
#[test]
fn a_renewal_begins_a_new_term_on_both_clocks() {
    let mut world = World::warm(json!({"warm": {"running": 1}, "lease": {"maxTerm": "1h"}}));
    world.lease("a");
    world.settle();
    world.advance("30m");
    world.write("a", json!({"expiresAt": world.now.plus_millis(millis("1h"))}), &holder()).expect("renewed");
    world.now = world.now.plus_millis(-millis("10h"));
    world.advance("59m");
    assert_eq!(world.phase("a"), LeasePhase::Ready, "the term is counted from the renewal");
    world.steady = world.steady.plus_millis(millis("1m"));
    let renewal = json!({"expiresAt": world.now.plus_millis(millis("1h"))});
    assert!(matches!(world.write("a", renewal, &holder()), Err(Denied::Expired(_))), "its term has ended");
}

// rule L20
// rule L7
#[test]
fn the_queue_keeps_its_order_over_a_restart() {
    let mut world = World::new(json!({"size": {"max": 1}}));
    let names: Vec<String> = (0..8).map(|number| format!("lease-{number}")).collect();
    for name in &names {
        world.lease(name);
        world.advance("1s");
    }
    for name in &names {
        world.restart();
        world.settle();
        assert_eq!(world.phase(name), LeasePhase::Ready, "{name}");
        world.done(name);
    }
    assert_eq!(world.pool.leases().count(), 1, "the last one's keys are going");
}

//! The configurations: each is narrow enough to be explored to its end, and wide where the others are
//! narrow. What must happen in each is demanded, so that a rule cannot hold because nothing happens.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::{Value, json};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

use crate::machine::Fault::{Break, Crowd, Reboot, Spoil, Stop, Vanish};
use crate::model::Person::{
    ChangesKeys, ChangesTemplate, Cordons, DeletesLease, DeletesMember, DeletesPool, LowersSize, Recycles,
};
use crate::model::Witness as W;
use crate::model::{Boots, Late, Lending, Scope};
use crate::timer::Timer::{Age, BackOff, Build, Down, Expiry, Idle, Recycle, Retention, Revoke, Term};

/// Two clients ask for leases and write Done; machines obey.
const LEAST: Scope = Scope {
    leases_max: 3,
    people: &[],
    faults: &[],
    faults_max: 0,
    timers: &[],
    late: Late::Never,
    boots: Boots::AtOnce,
    crashes_max: 0,
    shows: &[W::BecameReady, W::LeaseOver, W::ServedAfterWaiting, W::BuildDropped],
};

/// Lends to three: what is seen of a machine comes late, twice, or not at all.
// rule L7
// rule L8
// rule L9
// rule L19
#[test]
fn three_leases_take_turns_on_two_members() {
    let shows = &[W::BecameReady, W::LeaseOver, W::ServedAfterWaiting, W::HeardLate, W::LateDropped];
    explore(json!({"size": {"max": 2}}), Scope { late: Late::InOrder, shows, ..LEAST });
}

// rule L7
// rule W2
#[test]
fn machines_are_looked_at_while_they_boot() {
    explore(json!({"size": {"max": 2}}), Scope { boots: Boots::Seen, ..LEAST });
}

// rule L8
// rule L19
#[test]
fn what_is_heard_out_of_order_leads_to_nothing_forbidden() {
    let shows = &[W::BecameReady, W::Moved, W::HeardLate, W::LateDropped];
    let scope = Scope { leases_max: 2, late: Late::AnyOrder, shows, ..LEAST };
    explore(json!({"size": {"max": 2}}), scope);
}

// rule L10
// rule L11
// rule R6
#[test]
fn recycled_members_serve_again() {
    let shows = &[
        W::BecameReady,
        W::WaitedForARecycledMember,
        W::Recycled,
        W::RecycledMemberServesAgain,
        W::RecycleStopped,
        W::RecycleRefused,
    ];
    let spec = json!({"size": {"max": 2}, "recycle": {"maxReuses": 1}});
    explore(spec, Scope { people: &[Recycles], shows, ..LEAST });
}

// rule R3
// rule R4
#[test]
fn recycles_fail_in_every_way() {
    let shows = &[
        W::RecycledMemberServesAgain,
        W::RecycleFailed,
        W::RecycleTimedOut,
        W::MemberLost,
        W::WentDown,
        W::FailedForgotten,
    ];
    let spec = json!({"size": {"max": 2}, "recycle": {"maxReuses": 1}});
    let (faults, timers) = (&[Spoil, Stop, Reboot, Vanish], &[Recycle]);
    explore(
        spec,
        Scope { leases_max: 2, people: &[Recycles], faults, faults_max: 1, timers, shows, ..LEAST },
    );
}

// rule R3
// rule L12
#[test]
fn recycles_with_a_reboot_end_well_or_in_a_delete() {
    let shows =
        &[W::Recycled, W::RecycleFailed, W::RecycleTimedOut, W::RecycleStopped, W::WentDown, W::HeardLate];
    let spec = json!({"size": {"max": 1}, "recycle": {"maxReuses": 1, "reboot": true}});
    let scope = Scope {
        leases_max: 2,
        people: &[Recycles, DeletesLease],
        faults: &[Spoil, Stop, Reboot],
        faults_max: 1,
        timers: &[Recycle],
        late: Late::InOrder,
        boots: Boots::Seen,
        shows,
        ..LEAST
    };
    explore(spec, scope);
}

// rule L17
// rule F1
#[test]
fn machines_fail_in_every_way() {
    let shows = &[
        W::MemberLost,
        W::Moved,
        W::WentDown,
        W::BuildFailed,
        W::BuildRetried,
        W::BackedOff,
        W::Unplaceable,
    ];
    let (faults, timers) = (&[Stop, Reboot, Vanish, Break, Crowd], &[Down, Build]);
    let scope = Scope { leases_max: 2, faults, faults_max: 1, timers, shows, ..LEAST };
    explore(json!({"size": {"max": 2}}), scope);
}

// rule F2
// rule F3
#[test]
fn builds_fail_again_and_again() {
    let shows = &[W::BecameReady, W::BuildFailed, W::BuildRetried, W::BackedOff, W::Moved, W::Unplaceable];
    let (faults, timers) = (&[Break, Crowd], &[Build, BackOff]);
    let scope = Scope { leases_max: 1, faults, faults_max: 4, timers, shows, ..LEAST };
    explore(json!({"size": {"max": 2}}), scope);
}

// rule W1
// rule W6
#[test]
fn floors_are_emptied_and_filled() {
    let shows = &[W::BecameReady, W::Resumed, W::IdleStopped, W::Moved];
    let spec = json!({"size": {"max": 2}, "warm": {"running": 1, "stopped": 1}});
    explore(spec, Scope { leases_max: 2, timers: &[Idle, Down], shows, ..LEAST });
}

// rule W7
// rule T2
#[test]
fn members_of_age_or_of_an_older_template_are_replaced() {
    let shows = &[W::Aged, W::IdleLetGo, W::IdleStopped, W::Resumed, W::RecycleRefused];
    let spec =
        json!({"size": {"max": 2}, "warm": {"running": 1}, "maxAge": "1h", "recycle": {"maxReuses": 1}});
    let people = &[Recycles, ChangesTemplate];
    explore(spec, Scope { leases_max: 1, people, timers: &[Age, Idle], shows, ..LEAST });
}

// rule L13
// rule L15
// rule L18
// rule L21
#[test]
fn leases_expire_by_either_clock() {
    let shows = &[W::ExpiredPending, W::ExpiredBound, W::FailedForgotten, W::RevokeTimedOut];
    let spec = json!({"size": {"max": 1}, "lease": {"maxPending": 1}});
    let (people, timers) = (&[DeletesLease, ChangesKeys], &[Expiry, Term, Retention, Revoke]);
    explore(spec, Scope { people, timers, shows, ..LEAST });
}

// rule C1
// rule C2
// rule T4
#[test]
fn members_are_cordoned_and_deleted_by_hand() {
    let shows = &[W::CordonedGoesWithItsLease, W::MemberLost, W::Moved, W::IdleLetGo];
    let spec = json!({"size": {"max": 2}, "warm": {"running": 1}});
    let people = &[Cordons, DeletesMember, LowersSize];
    explore(spec, Scope { leases_max: 1, people, shows, ..LEAST });
}

// rule D1
// rule D4
#[test]
fn a_pool_is_deleted_with_whatever_it_has() {
    let shows =
        &[W::PoolDeletedUnderIt, W::PoolEnded, W::RecycleStopped, W::ExpiredBound, W::FailedForgotten];
    let spec = json!({"size": {"max": 2}, "warm": {"running": 1}, "recycle": {"maxReuses": 1}});
    let (people, timers) = (&[Recycles, DeletesPool], &[Expiry, Retention]);
    explore(spec, Scope { leases_max: 2, people, timers, shows, ..LEAST });
}

// rule F5
// rule L20
#[test]
fn the_owner_dies_at_every_submission() {
    let shows = &[
        W::Died,
        W::WantMadeGood,
        W::CaughtUp,
        W::RecycledMemberServesAgain,
        W::RecycleTimedOut,
        W::ExpiredBound,
        W::RevokeTimedOut,
    ];
    let spec = json!({"size": {"max": 1}, "recycle": {"maxReuses": 1}});
    let timers = &[Build, Recycle, Expiry, Revoke, Retention];
    explore(spec, Scope { leases_max: 2, people: &[Recycles], crashes_max: 1, timers, shows, ..LEAST });
}

/// Explores one configuration to its end and prints its size.
fn explore(spec: Value, mut scope: Scope) {
    let wider = std::env::var("EXHAUSTIVE_LEASES").ok().and_then(|leases| leases.parse().ok());
    scope.leases_max = wider.unwrap_or(scope.leases_max);
    let threads =
        if wider.is_some() { std::thread::available_parallelism().map_or(1, Into::into) } else { 1 };
    let (shows, began) = (scope.shows, Instant::now());
    let checker = Lending::new(spec, scope)
        .checker()
        .threads(threads)
        // Never early: some rule always holds.
        .finish_when(HasDiscoveries::All)
        .spawn_bfs()
        .join();
    let seconds = began.elapsed().as_secs_f64();
    let (unique, all, depth) = (checker.unique_state_count(), checker.state_count(), checker.max_depth());
    println!("{unique} states, {all} steps, at most {depth} deep, in {seconds:.1} s");
    let model = checker.model();
    for (witness, said) in W::ALL.into_iter().filter(|(witness, _)| model.times(*witness) > 0) {
        println!("{:>10} times {said}", model.times(witness));
    }
    let properties = model.properties();
    let discoveries = checker.discoveries();
    let mut broken = String::new();
    for property in properties.iter().filter(|property| property.expectation == Expectation::Always) {
        let Some(path) = discoveries.get(property.name) else { continue };
        let last = path.last_state().clone();
        let _ = writeln!(broken, "broken: {}\n{}", property.name, last.told());
        for action in path.clone().into_actions() {
            let _ = writeln!(broken, "    {action:?}");
        }
        let _ = writeln!(broken, "and by itself it comes to:\n{}", model.fair_end(last).told());
    }
    assert!(broken.is_empty(), "{broken}");
    for witness in shows {
        assert!(model.times(*witness) > 0, "it never happened: {witness:?}");
    }
    assert!(checker.is_done(), "the search was cut short");
}

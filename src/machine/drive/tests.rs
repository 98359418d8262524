use super::*;
use crate::machine::{MachineSpec, Setup};

const MINUTE_MS: i64 = 60_000;

fn at(ms: u64) -> Tick {
    let now = Time::from_millis(i64::try_from(ms).expect("small"));
    Tick { wall: now, steady: now, entropy: 0 }
}

fn want(revision: u64) -> Want {
    Want {
        member_uid: Ulid::from_bytes([1; 16]),
        revision,
        machine: MachineSpec::default(),
        power: Power::Running,
        keys: Vec::new(),
        setup: Setup::default(),
        recycle: None,
        build_by: Some(Time::from_millis(30 * MINUTE_MS)),
        gone: false,
    }
}

fn drive() -> Drive {
    Drive::new(Ulid::from_bytes([1; 16]))
}

fn applied(revision: u64) -> Event {
    Event::Applied(Applied { revision, keys: Ok(()), setup: Ok(()), remarks: Vec::new() })
}

fn running() -> Seen {
    Seen::Running { boot_id: Ulid::from_bytes([2; 16]), started_at: Time::from_millis(1) }
}

fn tell(drive: &mut Drive, event: Event) -> Vec<Act> {
    drive.handle(event, &at(10));
    std::iter::from_fn(|| drive.next(&at(10))).collect()
}

fn booted() -> Drive {
    let mut drive = drive();
    assert_eq!(tell(&mut drive, Event::Want(Box::new(want(1)))), [Act::Provider(Call::Inspect)]);
    assert_eq!(tell(&mut drive, Event::Inspected(Seen::Absent)), [Act::Provider(Call::Create)]);
    assert_eq!(tell(&mut drive, Event::Done(Call::Create)), [Act::Provider(Call::Inspect)]);
    assert_eq!(tell(&mut drive, Event::Inspected(running())), [Act::Connect]);
    let up = Event::LinkUp { agent: AgentInfo::default() };
    assert_eq!(tell(&mut drive, up), [Act::Apply { revision: 1 }]);
    assert_eq!(tell(&mut drive, applied(1)), []);
    drive
}

fn state(drive: &Drive) -> Running {
    match drive.fact().machine {
        Machine::Running(running) => running,
        other => panic!("not running: {other:?}"),
    }
}

#[test]
fn a_new_machine_is_made_connected_and_configured() {
    let drive = booted();
    assert!(state(&drive).configured && state(&drive).keys_confirmed);
    assert_eq!(drive.next_deadline_ms(&at(10)), None, "a settled machine wakes nobody");
}

#[test]
fn new_keys_are_confirmed_only_at_the_revision_that_asked() {
    let mut drive = booted();
    assert_eq!(tell(&mut drive, Event::Want(Box::new(want(2)))), [Act::Apply { revision: 2 }]);
    assert!(!state(&drive).keys_confirmed);
    tell(&mut drive, applied(2));
    assert_eq!(drive.fact().observed_revision, 2);
    assert!(state(&drive).keys_confirmed);
}

#[test]
fn an_older_want_is_ignored() {
    let mut drive = booted();
    tell(&mut drive, Event::Want(Box::new(want(5))));
    tell(&mut drive, Event::Want(Box::new(want(4))));
    assert_eq!(drive.fact().observed_revision, 5);
}

// rule L17
#[test]
fn a_machine_that_stops_by_itself_is_started_again() {
    let mut drive = booted();
    assert_eq!(tell(&mut drive, Event::Ended), [Act::Provider(Call::Inspect)]);
    assert_eq!(tell(&mut drive, Event::Inspected(Seen::Stopped)), [Act::Provider(Call::Start)]);
    tell(&mut drive, Event::Done(Call::Start));
    assert_eq!(tell(&mut drive, Event::Inspected(running())), [Act::Connect]);
}

#[test]
fn a_machine_that_vanishes_after_its_build_is_not_built_again_under_the_same_want() {
    let mut drive = booted();
    tell(&mut drive, Event::Ended);
    assert_eq!(tell(&mut drive, Event::Inspected(Seen::Absent)), []);
    assert_eq!(drive.fact().machine, Machine::Absent);
}

#[test]
fn a_built_machine_that_is_not_there_is_lost_and_never_made_anew() {
    let mut drive = drive();
    tell(&mut drive, Event::Want(Box::new(Want { build_by: None, ..want(7) })));
    assert_eq!(tell(&mut drive, Event::Inspected(Seen::Absent)), []);
    assert_eq!(drive.fact().machine, Machine::Absent);
}

// rule F1
#[test]
fn a_build_that_runs_out_of_time_fails_and_says_where_it_was() {
    let mut drive = drive();
    tell(&mut drive, Event::Want(Box::new(want(1))));
    tell(&mut drive, Event::Inspected(running()));
    let late = at(30 * 60_000);
    drive.handle(Event::Timer, &late);
    let Machine::Failed(failure) = drive.fact().machine else { panic!("not failed") };
    assert_eq!(failure.reason, "BuildTimedOut");
    assert!(failure.message.contains("waiting for the agent"), "{}", failure.message);
}

// rule F1
#[test]
fn a_first_configuration_that_fails_fails_the_build_and_a_later_one_does_not() {
    let failed = |revision| {
        let failure = Failure { reason: "HomeFailed".into(), message: "home: no space".into() };
        Event::Applied(Applied { revision, keys: Ok(()), setup: Err(failure), remarks: Vec::new() })
    };
    let mut drive = drive();
    tell(&mut drive, Event::Want(Box::new(want(1))));
    tell(&mut drive, Event::Inspected(running()));
    tell(&mut drive, Event::LinkUp { agent: AgentInfo::default() });
    tell(&mut drive, failed(1));
    assert!(matches!(drive.fact().machine, Machine::Failed(failure) if failure.reason == "HomeFailed"));
    let mut drive = booted();
    tell(&mut drive, Event::Want(Box::new(want(2))));
    tell(&mut drive, failed(2));
    assert!(!state(&drive).configured && state(&drive).keys_confirmed);
    assert_eq!(state(&drive).remarks, ["home: no space"]);
}

#[test]
fn an_order_that_the_agent_could_not_carry_out_is_sent_again_after_a_wait() {
    let failed = |revision| {
        let failure = Failure { reason: "KeysFailed".into(), message: "keys: no space".into() };
        Event::Applied(Applied { revision, keys: Err(failure), setup: Ok(()), remarks: Vec::new() })
    };
    let mut drive = booted();
    assert_eq!(tell(&mut drive, Event::Want(Box::new(want(2)))), [Act::Apply { revision: 2 }]);
    assert_eq!(tell(&mut drive, failed(2)), []);
    assert_eq!(state(&drive).remarks, ["keys: no space"]);
    let first = drive.next_deadline_ms(&at(10)).expect("sent again");
    assert_eq!(drive.next(&at(first)), Some(Act::Apply { revision: 2 }));
    assert_eq!(drive.next(&at(first)), None, "one is under way");
    drive.handle(failed(2), &at(first));
    let second = drive.next_deadline_ms(&at(first)).expect("and again");
    assert!(second > first + 1_000, "later each time: {first} {second}");
    assert_eq!(drive.next(&at(second)), Some(Act::Apply { revision: 2 }));
    drive.handle(applied(2), &at(second));
    assert!(state(&drive).keys_confirmed && state(&drive).remarks.is_empty());
    assert_eq!(drive.next_deadline_ms(&at(second)), None);
}

// case 7 (agent-sandbox#1215, OpenSandbox#1423)
#[test]
fn a_machine_that_cannot_be_placed_is_held_and_tried_again_later() {
    let mut drive = drive();
    tell(&mut drive, Event::Want(Box::new(want(1))));
    tell(&mut drive, Event::Inspected(Seen::Absent));
    let error = CallError::Unplaceable("no memory".into());
    assert_eq!(tell(&mut drive, Event::CallFailed(Call::Create, error)), []);
    assert_eq!(drive.fact().machine, Machine::Unplaceable { why: "no memory".into() });
    let deadline = drive.next_deadline_ms(&at(10)).expect("tries again");
    assert_eq!(drive.next(&at(deadline)), Some(Act::Provider(Call::Create)));
}

#[test]
fn gone_is_absorbing_and_waits_for_the_call_in_flight() {
    let mut drive = drive();
    tell(&mut drive, Event::Want(Box::new(want(1))));
    tell(&mut drive, Event::Inspected(Seen::Absent));
    assert_eq!(tell(&mut drive, Event::Want(Box::new(Want { gone: true, ..want(2) }))), []);
    assert_eq!(tell(&mut drive, Event::Done(Call::Create)), [Act::Provider(Call::Delete)]);
    assert_eq!(tell(&mut drive, Event::Want(Box::new(want(3)))), []);
    tell(&mut drive, Event::Done(Call::Delete));
    assert_eq!(drive.fact().machine, Machine::Absent);
    assert!(drive.is_over());
}

#[test]
fn a_delete_that_fails_is_repeated() {
    let mut drive = booted();
    assert_eq!(
        tell(&mut drive, Event::Want(Box::new(Want { gone: true, ..want(2) }))),
        [Act::Provider(Call::Delete)]
    );
    tell(&mut drive, Event::CallFailed(Call::Delete, CallError::Failed("busy".into())));
    let deadline = drive.next_deadline_ms(&at(10)).expect("tries again");
    assert_eq!(drive.next(&at(deadline)), Some(Act::Provider(Call::Delete)));
}

#[test]
fn a_lost_link_is_opened_again_and_the_keys_stay_confirmed() {
    let mut drive = booted();
    assert_eq!(tell(&mut drive, Event::LinkDown { why: "reset".into() }), []);
    assert!(state(&drive).keys_confirmed);
    let deadline = drive.next_deadline_ms(&at(10)).expect("reconnects");
    assert_eq!(drive.next(&at(deadline)), Some(Act::Connect));
}

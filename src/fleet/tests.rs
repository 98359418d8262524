use super::*;
use crate::machine::{AgentInfo, Running};
use crate::object::{Metadata, WorkstationSpec, WorkstationStatus};

const TICK: Tick = Tick {
    wall: Time::from_millis(1_700_000_000_000),
    steady: Time::from_millis(1_700_000_000_000),
    entropy: 7,
};

fn uid() -> Ulid {
    Ulid::from_bytes([3; 16])
}

fn inputs() -> Inputs {
    let device_keys = BTreeMap::from([("local".to_owned(), vec!["ssh-ed25519 AAAA laptop".to_owned()])]);
    Inputs { default_provider: "sandbox".into(), device_keys, builds_held: None, turn: Turn::Free }
}

fn hello() -> Workstation {
    let metadata = Metadata {
        name: "hello".into(),
        namespace: Some("local".into()),
        uid: Some(uid()),
        ..Metadata::default()
    };
    Workstation { metadata, spec: WorkstationSpec::default(), status: WorkstationStatus::default() }
}

fn take(fleet: &mut Fleet, command: Command) -> Vec<Want> {
    let decision = fleet.decide(command, &TICK, &inputs()).expect("taken");
    decision.changes.iter().for_each(|change| fleet.evolve(change));
    let mut wants = decision.wants;
    loop {
        let pass = fleet.decide(Command::Pass, &TICK, &inputs()).expect("a pass is never denied");
        if pass.changes.is_empty() {
            return wants;
        }
        pass.changes.iter().for_each(|change| fleet.evolve(change));
        wants.extend(pass.wants);
    }
}

fn created() -> (Fleet, Vec<Want>) {
    let mut fleet = Fleet::default();
    let wants = take(&mut fleet, Command::Create { object: hello(), by: Subject::user("local") });
    (fleet, wants)
}

fn fact(revision: u64, machine: Machine) -> Command {
    Command::Fact(Fact { member_uid: uid(), observed_revision: revision, machine, recycle: None })
}

fn up() -> Machine {
    Machine::Running(Running {
        boot_id: uid(),
        started_at: TICK.wall,
        configured: true,
        keys_confirmed: true,
        agent: AgentInfo { login_user: "dev".into(), ..AgentInfo::default() },
        remarks: Vec::new(),
        sessions: 0,
    })
}

#[test]
fn a_new_workstation_is_asked_for_with_its_creators_keys() {
    let (_, wants) = created();
    let [want] = wants.as_slice() else { panic!("{wants:?}") };
    assert_eq!(want.keys, ["ssh-ed25519 AAAA laptop"]);
    assert!(want.build_by.is_some() && !want.gone);
}

#[test]
fn once_up_it_is_ready_and_says_how_to_connect() {
    let (mut fleet, _) = created();
    let wants = take(&mut fleet, fact(1, up()));
    assert!(wants.is_empty(), "nothing new is wanted: {wants:?}");
    let status = fleet.get(uid()).expect("there").present().status;
    assert_eq!(status.phase, WorkstationPhase::Ready);
    assert_eq!(status.ssh.expect("ready").command, "rl shell hello");
}

#[test]
fn stopping_keeps_the_machine_and_starting_asks_for_it_again() {
    let (mut fleet, _) = created();
    take(&mut fleet, fact(1, up()));
    let mut object = fleet.get(uid()).expect("there").present();
    object.spec.stopped = true;
    let wants = take(&mut fleet, Command::Update { uid: uid(), object: object.clone() });
    assert_eq!(wants[0].power, Power::Stopped);
    take(&mut fleet, fact(2, Machine::Stopped));
    assert_eq!(fleet.get(uid()).expect("there").phase, WorkstationPhase::Stopped);
    object.spec.stopped = false;
    let wants = take(&mut fleet, Command::Update { uid: uid(), object });
    assert_eq!(wants[0].power, Power::Running);
}

#[test]
fn a_deleted_one_goes_when_its_machine_has_gone() {
    let (mut fleet, _) = created();
    let wants = take(&mut fleet, Command::Delete { uid: uid() });
    assert!(wants[0].gone);
    assert!(fleet.get(uid()).is_some(), "the finalizer keeps it");
    take(&mut fleet, fact(2, Machine::Absent));
    assert!(fleet.is_empty());
}

#[test]
fn a_pass_with_nothing_new_asks_for_nothing() {
    let (fleet, _) = created();
    let pass = fleet.decide(Command::Pass, &TICK, &inputs()).expect("taken");
    assert_eq!(pass, Decision::default());
}

#[test]
fn the_machine_is_made_once() {
    let (mut fleet, _) = created();
    let mut object = fleet.get(uid()).expect("there").present();
    object.spec.requirements = vec!["provider:other".into()];
    let denied = fleet.decide(Command::Update { uid: uid(), object }, &TICK, &inputs());
    assert!(matches!(denied, Err(Denied::Invalid(error)) if error.path == "spec"));
    assert!(take(&mut fleet, Command::Pass).is_empty());
}

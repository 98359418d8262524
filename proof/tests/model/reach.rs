//! What histories come to. A model test that never gets anywhere proves nothing, so here is a list
//! of where it must have been.

use std::collections::BTreeSet;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};
use proptest_state_machine::ReferenceStateMachine;
use ringleader_proof::pool::{Act, Decision, WaitsFor};

use crate::Histories;
use crate::naive::{Naive, Refusal};
use crate::rest::come_to_rest;
use crate::rig::Rig;

/// The words for what was seen; kept only where somebody asks for them.
#[derive(Default)]
pub struct Reach(Option<BTreeSet<String>>);

impl Reach {
    fn note(&mut self, word: impl FnOnce() -> String) {
        if let Some(words) = &mut self.0 {
            words.insert(word());
        }
    }

    pub fn refusal(&mut self, refusal: Refusal) {
        self.note(|| format!("refused: {refusal:?}"));
    }

    pub fn crash(&mut self, pending: usize, mail: usize) {
        self.note(|| format!("crash: {} not durable, {} on their way", of(pending), of(mail)));
    }

    /// What can be read off the model after a step.
    pub fn step(&mut self, decision: &Decision, model: &Naive) {
        if self.0.is_none() {
            return;
        }
        self.note(|| format!("act: {:?}", decision.act));
        for lease in &model.leases {
            self.note(|| format!("lease: {:?}, {:?}", lease.phase, lease.written));
            if let Some(reason) = lease.reason {
                self.note(|| format!("failed: {reason:?}"));
            }
            if let Some(release) = lease.release {
                self.note(|| format!("release: {:?}, {:?}", release.outcome, release.reason));
            }
            if let Some(start) = lease.start {
                self.note(|| format!("start: {start:?}"));
            }
            if let Some(told) = &lease.told {
                self.note(|| format!("waits for: {}", kind(told)));
            }
        }
        for member in &model.members {
            self.note(|| format!("member: {:?}", member.state));
            self.note(|| format!("seen: {:?}", member.seen.sighting));
            self.note(|| format!("over: {}", member.over));
            self.note(|| format!("aged: {}", member.aged));
            self.note(|| format!("reuses: {}", member.reuses.min(2)));
        }
        let minutes = model.back_off.map(|(began, until)| until.millis_since(began) / 60_000);
        self.note(|| format!("back-off of minutes: {minutes:?}"));
        self.note(|| format!("ended: {}", model.ended));
    }
}

const fn of(count: usize) -> &'static str {
    if count == 0 { "none" } else { "some" }
}

fn kind(told: &WaitsFor) -> &'static str {
    match told {
        WaitsFor::Release => "Release",
        WaitsFor::BackOff { .. } => "BackOff",
        WaitsFor::Probe { .. } => "Probe",
        WaitsFor::Room { .. } => "Room",
        WaitsFor::Provider { .. } => "Provider",
        WaitsFor::TemplateFix { .. } => "TemplateFix",
        WaitsFor::Turn => "Turn",
        WaitsFor::Paused => "Paused",
    }
}

const ACTS: [Act; 17] = [
    Act::Nothing,
    Act::Record,
    Act::Expire,
    Act::Release,
    Act::Forget,
    Act::Revoke,
    Act::GiveUp,
    Act::Bind,
    Act::Build,
    Act::Start,
    Act::Stop,
    Act::LetGo,
    Act::Age,
    Act::Refresh,
    Act::Tell,
    Act::WriteStatus,
    Act::End,
];

/// Where histories must have led, beside every act.
const PLACES: &str = "
    refused: Gone
    refused: Unknown
    refused: Deleting
    refused: TooManyPending
    refused: Reference
    refused: Identity
    refused: BornReleased
    refused: MovedBack
    refused: OnlyState
    refused: OnlyHolder
    refused: Past
    refused: TooLate
    refused: Expired
    refused: NotYours
    refused: OnlyCordon
    crash: none not durable, none on their way
    crash: some not durable, none on their way
    crash: none not durable, some on their way
    crash: some not durable, some on their way
    lease: Pending, Needed
    lease: Starting, Needed
    lease: Starting, Recycle
    lease: Ready, Needed
    lease: Ready, Done
    lease: Recycling, Recycle
    lease: Recycling, Done
    lease: Releasing, Done
    lease: Releasing, Recycle
    lease: Failed, Needed
    lease: Failed, Recycle
    failed: Expired
    failed: PoolDeleted
    failed: MemberLost
    failed: RecycleFailed
    failed: RecycleTimedOut
    release: None, None
    release: Some(Recycled), None
    release: Some(Deleted), None
    release: Some(Deleted), Some(PoolDeleted)
    release: Some(Deleted), Some(RecycleDisabled)
    release: Some(Deleted), Some(MaxReusesReached)
    release: Some(Deleted), Some(MaxAgeReached)
    release: Some(Deleted), Some(TemplateChanged)
    release: Some(Deleted), Some(Cordoned)
    release: Some(Deleted), Some(RecycleUnsupported)
    start: Warm
    start: Resumed
    start: Cold
    waits for: Release
    waits for: BackOff
    waits for: Probe
    waits for: Room
    waits for: Provider
    waits for: TemplateFix
    waits for: Turn
    waits for: Paused
    member: Building
    member: Starting
    member: IdleRunning
    member: IdleStopped
    member: Leased
    member: Recycling
    member: Stopping
    member: Deleting
    seen: Never
    seen: Booting
    seen: Running
    seen: Stopping
    seen: Stopped
    seen: Absent
    seen: Failed
    over: true
    aged: true
    reuses: 2
    back-off of minutes: Some(1)
    back-off of minutes: Some(2)
    ended: true
";

#[test]
fn histories_lead_everywhere() {
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let mut reached = BTreeSet::new();
    for _ in 0..400 {
        let tree = Histories::sequential_strategy(1..500).new_tree(&mut runner).expect("a history");
        let (spec, transitions, _) = tree.current();
        let mut rig = Rig::new(&spec);
        rig.reach = Reach(Some(BTreeSet::new()));
        for transition in &transitions {
            rig.take(transition);
        }
        reached.extend(rig.reach.0.take().unwrap_or_default());
        come_to_rest(rig);
    }
    let acts = ACTS.iter().map(|act| format!("act: {act:?}"));
    let places = PLACES.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned);
    let missed: Vec<String> = acts.chain(places).filter(|place| !reached.contains(place)).collect();
    assert!(missed.is_empty(), "no history led to {missed:?}");
}

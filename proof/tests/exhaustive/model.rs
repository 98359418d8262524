//! The world around the pool as `stateright` explores it: what may happen next, and what then is.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use stateright::{Model, Property};
use ulid::Ulid;

use crate::canonical::Whole;
use crate::machine::{Box_, Fault, Place, boot_number};
use crate::state::{Broken, Kept, State, Word};
use crate::timer::{self, Timer};
use crate::turn::Turn;
use crate::{NOW, START, ann, ben, key};
use ringleader_proof::object::{LeasePhase, LeaseState, Subject, WorkstationPoolLease};
use ringleader_proof::pool::*;

/// One configuration of the world, and what was seen of it.
pub struct Lending {
    pub row: PoolRow,
    pub inputs: Inputs,
    pub lease: WorkstationPoolLease,
    pub scope: Scope,
    seen: [AtomicU64; Witness::COUNT],
    /// States from which all goes well by itself.
    pub good: Mutex<HashSet<u128>>,
}

/// What may happen in a configuration. The narrower it is, the further everything else is looked at.
#[derive(Clone, Debug)]
pub struct Scope {
    /// At the same time.
    pub leases_max: usize,
    pub people: &'static [Person],
    pub faults: &'static [Fault],
    /// Over a whole history.
    pub faults_max: u8,
    pub timers: &'static [Timer],
    pub late: Late,
    pub boots: Boots,
    /// How often the owner dies over a whole history.
    pub crashes_max: u8,
    /// What must be seen to happen, so that the search says something.
    pub shows: &'static [Witness],
}

/// How what is seen of a machine comes to the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// At once.
    Never,
    /// It may be late, come twice, or be lost; what is seen of one machine stays in order. That is what
    /// a member actor's mailbox does.
    InOrder,
    /// Also after what was seen later, which the contract rules out. Nothing forbidden may come of it;
    /// that a lease has its member lost to a wrong word cannot be helped.
    AnyOrder,
}

/// Whether a machine can be looked at while it boots, or is up but not configured at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boots {
    AtOnce,
    Seen,
}

/// What people may do beside asking for leases and writing Done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Person {
    Recycles,
    DeletesLease,
    ChangesKeys,
    Cordons,
    DeletesMember,
    DeletesPool,
    ChangesTemplate,
    LowersSize,
}

/// One step of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The pool's owner has a turn.
    Turn(Event),
    /// It has, and dies in it.
    Dies(Event, Cut),
    /// It dies between two turns.
    Crash,
    /// It is back, at once or after so long that everything has fallen due.
    Restart {
        everything_is_due: bool,
    },
    /// A machine goes a step towards its want.
    Machine(Ulid),
    Fault(Ulid, Fault),
    /// A machine is looked at, and what was seen is on its way.
    Look(Ulid),
    /// What was on its way is lost.
    Lose,
}

/// What an owner's turn begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Lease,
    Write(Ulid, LeaseState),
    DeleteLease(Ulid),
    ChangeKeys(Ulid),
    Cordon(Ulid, bool),
    DeleteMember(Ulid),
    DeletePool,
    ChangeTemplate,
    LowerSize,
    /// A machine as it is.
    Hear(Ulid),
    /// What was on its way; it may come again.
    HearLate {
        again: bool,
    },
    Due(Timer, Ulid),
}

/// A turn that ends after so many submissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    pub after: u8,
    /// Of the last submission.
    pub wants_went_out: bool,
}

/// No turn has more submissions; one that had would be reported.
pub const SUBMISSIONS_MAX: u8 = 6;

macro_rules! witnesses {
    ($($witness:ident => $name:literal,)*) => {
        /// What must have happened at least once, so that the search says something.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Witness { $($witness,)* }

        impl Witness {
            pub const COUNT: usize = [$(Self::$witness),*].len();
            pub const ALL: [(Self, &'static str); Self::COUNT] = [$((Self::$witness, $name)),*];

            fn property(self) -> Property<Lending> {
                match self {
                    $(Self::$witness => Property::sometimes($name, |model: &Lending, _| model.times(Self::$witness) > 0),)*
                }
            }
        }
    };
}

witnesses! {
    BecameReady => "a lease became Ready",
    LeaseOver => "a lease ended and went",
    ServedAfterWaiting => "a lease waited and was served",
    WaitedForARecycledMember => "a lease waited and got a recycled member",
    Recycled => "a member was recycled",
    RecycledMemberServesAgain => "a recycled member served another lease",
    RecycleFailed => "a recycle failed",
    RecycleTimedOut => "a recycle timed out",
    RecycleStopped => "a recycle was stopped",
    RecycleRefused => "a member was deleted instead of recycled",
    MemberLost => "a member was lost under a Ready lease",
    Moved => "a lease not yet Ready lost its member and waited again",
    WentDown => "a leased machine went down",
    BuildFailed => "a build failed",
    BuildRetried => "a failed build was tried again",
    BackedOff => "builds were held back after failures",
    BuildDropped => "a build was given up",
    Unplaceable => "a member could not be placed",
    ExpiredPending => "a lease expired before it was bound",
    ExpiredBound => "a bound lease expired",
    FailedForgotten => "a failed lease went",
    RevokeTimedOut => "a delete went on without the agent's word",
    Resumed => "a stopped member was started for a lease",
    IdleStopped => "an idle member was stopped",
    IdleLetGo => "an idle member was let go",
    Aged => "a member passed maxAge",
    CordonedGoesWithItsLease => "a cordoned member went with its lease",
    PoolDeletedUnderIt => "a waiting lease failed with its pool",
    PoolEnded => "a deleted pool came to its end",
    Died => "the owner died within a turn",
    WantMadeGood => "a restart sent a want that had not gone out",
    CaughtUp => "a restart found everything due",
    HeardLate => "a late fact changed something",
    LateDropped => "a late fact was dropped",
}

macro_rules! rules {
    ($($name:literal,)*) => {
        fn rules() -> Vec<Property<Lending>> {
            vec![$(Property::always($name, |_, state: &State| !state.broke($name)),)*]
        }
    };
}

rules! {
    "bindings_are_mutual",
    "phase_says_whether_a_member_is_bound",
    "ready_means_usable",
    "only_failed_leases_have_a_reason",
    "only_waiting_leases_wait_for_something",
    "a_state_carries_its_own_deadlines_alone",
    "a_going_member_serves_nobody_new",
    "indexes_are_what_the_rows_say",
    "no member is bound twice",
    "no more members than size.max",
    "no want carries the key of an ended lease",
    "the want on record is the present one",
    "a revision is used once",
    "nothing is wanted after gone",
    "gone is for ever",
    "members move as drawn",
    "leases move as drawn",
    "a lease keeps its holder",
    "a lease that is over never comes back",
    "a released lease stays released",
    "a lease that was Ready is never moved",
    "the oldest waiting lease is served first",
    "no member goes unrecycled from one lease to another",
    "an idle member has nobody's keys",
    "a cordoned member takes no new lease",
    "Ready only when the machine has the keys",
    "Ready only in the newest boot",
    "a generation is observed with its keys",
    "a failed recycle is told in an event",
    "a member goes after its machine",
    "every machine has its newest want",
    "a pool read back is the pool in memory",
    "no deadline is missed",
    "the timer is set",
    "nobody writes another's lease",
    "the pool comes to rest",
    "nothing panics",
}

impl Lending {
    /// A pool of this spec with the least of templates.
    pub fn new(mut spec: Value, scope: Scope) -> Self {
        spec["template"] = json!({"spec": {}});
        let object = json!({
            "metadata": {"name": "agents", "namespace": "dev", "uid": Ulid(7), "generation": 1,
                "creationTimestamp": NOW},
            "spec": spec,
        });
        let object = serde_json::from_value(object).expect("a pool");
        let lease = json!({
            "metadata": {"name": "lease", "namespace": "dev", "generation": 1},
            "spec": {"workstationPoolRef": {"name": "agents"}, "authorizedKeys": []},
        });
        Self {
            row: Pool::create(object, &Subject::user("owner")),
            inputs: Inputs {
                room: Room::Unlimited,
                providers: [ProviderState {
                    name: "sandbox".into(),
                    unavailable: None,
                    stopping: Stopping::Possible,
                    resetting: Resetting::Impossible,
                }]
                .into(),
                owner_keys: OwnerKeys::new(vec!["ssh-ed25519 OWNER".into()]),
                builds_allowed: u32::MAX,
                // The status is for people alone: no decision looks at it, and it is not written.
                status_write: StatusWrite::InFlight,
            },
            lease: serde_json::from_value(lease).expect("a lease"),
            scope,
            seen: std::array::from_fn(|_| AtomicU64::new(0)),
            good: Mutex::new(HashSet::new()),
        }
    }

    pub fn saw(&self, witness: Witness) {
        self.seen[witness as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn times(&self, witness: Witness) -> u64 {
        self.seen[witness as usize].load(Ordering::Relaxed)
    }

    fn does(&self, person: Person) -> bool {
        self.scope.people.contains(&person)
    }

    /// What may come to the owner now.
    pub fn events(&self, state: &State, events: &mut Vec<Event>) {
        if state.leases.len() < self.scope.leases_max && !state.row.row.is_deleting() {
            events.push(Event::Lease);
        }
        for lease in &state.leases {
            let (uid, lease) = (lease.row.uid(), &lease.row);
            if lease.spec.state != LeaseState::Done {
                events.push(Event::Write(uid, LeaseState::Done));
            }
            if lease.spec.state == LeaseState::Needed && self.does(Person::Recycles) {
                events.push(Event::Write(uid, LeaseState::Recycle));
            }
            if lease.metadata.deletion_timestamp.is_none() && self.does(Person::DeletesLease) {
                events.push(Event::DeleteLease(uid));
            }
            if lease.asked() == LeaseState::Needed
                && lease.phase != LeasePhase::Failed
                && self.does(Person::ChangesKeys)
            {
                events.push(Event::ChangeKeys(uid));
            }
        }
        for member in &state.members {
            let (uid, member) = (member.row.uid(), &member.row);
            if self.does(Person::Cordons) && !member.is_gone_ordered() {
                events.push(Event::Cordon(uid, !member.cordoned));
            }
            if self.does(Person::DeletesMember) && !member.is_gone_ordered() {
                events.push(Event::DeleteMember(uid));
            }
            let waits = |late: &Word| self.scope.late == Late::InOrder && late.member == uid;
            if state.machines.contains_key(&uid) && !state.late.as_ref().is_some_and(waits) {
                events.push(Event::Hear(uid));
            }
        }
        if state.late.is_some() {
            events.extend([Event::HearLate { again: false }, Event::HearLate { again: true }]);
        }
        let present = !state.row.row.is_deleting();
        if present && self.does(Person::DeletesPool) {
            events.push(Event::DeletePool);
        }
        if present
            && self.does(Person::ChangesTemplate)
            && state.row.row.template_hash == self.row.template_hash
        {
            events.push(Event::ChangeTemplate);
        }
        if present && self.does(Person::LowersSize) && state.row.row.spec.size.max > 1 {
            events.push(Event::LowerSize);
        }
        let leases: Vec<&Lease> = state.leases.iter().map(|lease| &*lease.row).collect();
        let members: Vec<&Member> = state.members.iter().map(|member| &*member.row).collect();
        for timer in self.scope.timers {
            let whose = timer::running(*timer, &state.row.row, &leases, &members);
            events.extend(whose.into_iter().map(|uid| Event::Due(*timer, uid)));
        }
    }

    /// The state after an owner's turn. None when it was refused.
    pub fn turn(&self, state: &State, event: &Event, cut: Option<Cut>) -> Option<State> {
        let mut state = state.clone();
        if let Event::Due(timer, whose) = event {
            self.fire(&mut state, &[(*timer, *whose)]);
        }
        let mut turn = Turn::new(self, &state, cut);
        let command = self.command(&mut turn, &mut state, event)?;
        turn.take(Some(command))?;
        let quiet = turn.submissions == 0 && turn.broken.is_none();
        match event {
            Event::HearLate { again } => {
                self.saw(if quiet { Witness::LateDropped } else { Witness::HeardLate });
                if quiet && *again {
                    return None;
                }
            }
            // A step that leads nowhere is none.
            _ if quiet => return None,
            _ => {}
        }
        Some(self.after(state, turn))
    }

    /// What stands after a turn.
    fn after(&self, mut state: State, turn: Turn<'_>) -> State {
        state.up = turn.up;
        state.ended = turn.pool.has_ended();
        state.broken.clone_from(&turn.broken);
        // Every submission was durable before the next: what is in memory is what is on disk.
        let whole = Whole {
            row: turn.pool.row().clone(),
            leases: turn.pool.leases().cloned().collect(),
            members: turn.pool.members().cloned().collect(),
            machines: turn.machines,
            late: state.late.take(),
        };
        self.keep(state, whole)
    }

    fn keep(&self, state: State, whole: Whole) -> State {
        let Whole { row, leases, members, machines, late } = whole.canonical(&self.inputs);
        let leases = leases.into_iter().map(|row| Kept::again(row, &state.leases)).collect();
        let members = members.into_iter().map(|row| Kept::again(row, &state.members)).collect();
        let row = Kept::again(row, std::slice::from_ref(&state.row));
        State { row, leases, members, machines, late, ..state }
    }

    fn whole(state: &State) -> Whole {
        Whole {
            row: PoolRow::clone(&state.row.row),
            leases: state.leases.iter().map(|lease| Lease::clone(&lease.row)).collect(),
            members: state.members.iter().map(|member| Member::clone(&member.row)).collect(),
            machines: state.machines.clone(),
            late: state.late.clone(),
        }
    }

    fn fire(&self, state: &mut State, timers: &[(Timer, Ulid)]) {
        let mut whole = Self::whole(state);
        for (timer, whose) in timers {
            whole.fire(*timer, *whose);
        }
        whole.digest(&self.inputs);
        state.row = Kept::new(whole.row);
        state.leases = whole.leases.into_iter().map(Kept::new).collect();
        state.members = whole.members.into_iter().map(Kept::new).collect();
    }

    /// What the owner is asked or told with an event: a timer only makes it look.
    fn command(&self, turn: &mut Turn<'_>, state: &mut State, event: &Event) -> Option<Command> {
        let standing = Standing::OwnerOrAdmin;
        let command = match event {
            Event::Due(..) => Command::Pass,
            Event::Lease => self.new_lease(&turn.pool),
            Event::Write(uid, asked) => {
                let mut object = turn.pool.lease(*uid)?.present();
                object.spec.state = *asked;
                Self::written(turn, *uid, object)
            }
            Event::ChangeKeys(uid) => {
                let mut object = turn.pool.lease(*uid)?.present();
                let other = if object.spec.authorized_keys == [key(*uid, "a")] { "b" } else { "a" };
                object.spec.authorized_keys = vec![key(*uid, other)];
                Self::written(turn, *uid, object)
            }
            Event::DeleteLease(uid) => Command::DeleteLease {
                uid: *uid,
                by: turn.pool.lease(*uid)?.holder.clone(),
                standing: Standing::Other,
            },
            Event::Cordon(uid, cordoned) => {
                let mut object = turn.pool.member(*uid)?.present();
                object.spec.cordoned = *cordoned;
                Command::UpdateMember { uid: *uid, object: Box::new(object), standing }
            }
            Event::DeleteMember(uid) => Command::DeleteMember { uid: *uid, standing },
            Event::DeletePool => Command::DeletePool,
            Event::ChangeTemplate => {
                let mut object = turn.pool.row().present()?;
                object.spec.template.spec.environment.insert("VERSION".into(), "2".into());
                Command::UpdatePool { object: Box::new(object) }
            }
            Event::LowerSize => {
                let mut object = turn.pool.row().present()?;
                object.spec.size.max = 1;
                Command::UpdatePool { object: Box::new(object) }
            }
            Event::Hear(uid) => {
                let seen = turn.machines.get(uid)?.clone();
                let fact = seen.fact(*uid);
                turn.hearing = Some(Word { member: *uid, seen });
                Command::Fact(fact)
            }
            Event::HearLate { again } => {
                let word = if *again { state.late.clone() } else { state.late.take() }?;
                let fact = word.seen.fact(word.member);
                turn.hearing = Some(word);
                Command::Fact(fact)
            }
        };
        Some(command)
    }

    /// By whichever of the two clients has none, so that both are there.
    fn new_lease(&self, pool: &Pool) -> Command {
        let uid = Ulid::from_parts(u64::try_from(START).unwrap_or(0), 1);
        let mut object = self.lease.clone();
        object.metadata.uid = Some(uid);
        object.metadata.creation_timestamp = Some(NOW);
        object.spec.authorized_keys = vec![key(uid, "a")];
        let by = if pool.leases().any(|lease| lease.holder == ann()) { ben() } else { ann() };
        Command::CreateLease { object: Box::new(object), by }
    }

    /// A holder's write, once it is sure that the other client could not have made it.
    fn written(turn: &mut Turn<'_>, uid: Ulid, mut object: WorkstationPoolLease) -> Command {
        object.metadata.generation += 1;
        let object = Box::new(object);
        let holder = object.status.holder.clone().unwrap_or_else(ann);
        let other = if holder == ann() { ben() } else { ann() };
        let write = |by| Command::UpdateLease { uid, object: object.clone(), by, standing: Standing::Other };
        let tick = ringleader_proof::object::Tick { wall: NOW, steady: NOW, entropy: 1 };
        if turn.pool.decide(write(other), &tick, &turn.model.inputs) != Err(Denied::NotYourLease) {
            turn.break_rule("nobody writes another's lease", uid.to_string());
        }
        write(holder)
    }

    fn restart(&self, state: &State, everything_is_due: bool) -> Option<State> {
        let mut state = State { up: true, ..state.clone() };
        if everything_is_due {
            let leases: Vec<&Lease> = state.leases.iter().map(|lease| &*lease.row).collect();
            let members: Vec<&Member> = state.members.iter().map(|member| &*member.row).collect();
            let running = self.scope.timers.iter().flat_map(|timer| {
                let whose = timer::running(*timer, &state.row.row, &leases, &members);
                whose.into_iter().map(|uid| (*timer, uid))
            });
            let running: Vec<_> = running.collect();
            if running.is_empty() {
                return None;
            }
            self.fire(&mut state, &running);
            self.saw(Witness::CaughtUp);
        }
        let mut turn = Turn::new(self, &state, None);
        turn.restart()?;
        Some(self.after(state, turn))
    }

    /// The rows stay as they are, and so does the canonical form but for the machine's own part.
    fn with_machine(&self, state: &State, uid: Ulid, mut machine: Box_) -> State {
        if machine.place == Place::Booting && self.scope.boots == Boots::AtOnce {
            machine.place = Place::Running;
        }
        if matches!(machine.place, Place::Gone | Place::Failed) {
            (machine.landed, machine.used) = (false, false);
            machine.keys.clear();
        }
        let row = state.members.iter().find(|member| member.row.uid() == uid).map(|member| &member.row);
        let of_row = row.into_iter().flat_map(|row| {
            let begun = row.recycling.and_then(|recycling| recycling.boot);
            row.observed.boot_id.into_iter().chain(begun)
        });
        let of_late = state.late.iter().filter(|late| late.member == uid).map(|late| late.seen.boot);
        let others = of_row.map(boot_number).chain(of_late).max().unwrap_or(0);
        machine.boot = machine.boot.min(others + 1);
        let mut state = state.clone();
        state.machines.insert(uid, machine);
        state
    }
}

impl Model for Lending {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let state = State {
            row: Kept::new(self.row.clone()),
            leases: Vec::new(),
            members: Vec::new(),
            machines: std::collections::BTreeMap::new(),
            late: None,
            up: true,
            faults_left: self.scope.faults_max,
            crashes_left: self.scope.crashes_max,
            ended: false,
            broken: None,
        };
        // A new owner looks.
        self.restart(&state, false).into_iter().collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() || state.ended {
            return;
        }
        for uid in state.machines.keys() {
            actions.push(Action::Machine(*uid));
            if state.faults_left > 0 {
                actions.extend(self.scope.faults.iter().map(|fault| Action::Fault(*uid, *fault)));
            }
            if self.scope.late != Late::Never && state.late.is_none() && state.up {
                actions.push(Action::Look(*uid));
            }
        }
        if state.late.is_some() {
            actions.push(Action::Lose);
        }
        if !state.up {
            actions.push(Action::Restart { everything_is_due: false });
            actions.push(Action::Restart { everything_is_due: true });
            return;
        }
        let mut events = Vec::new();
        self.events(state, &mut events);
        if state.crashes_left > 0 {
            actions.push(Action::Crash);
            for event in &events {
                let cuts = (1..=SUBMISSIONS_MAX)
                    .flat_map(|after| [false, true].map(|wants_went_out| Cut { after, wants_went_out }));
                actions.extend(cuts.map(|cut| Action::Dies(event.clone(), cut)));
            }
        }
        actions.extend(events.into_iter().map(Action::Turn));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        match action {
            Action::Turn(event) => self.turn(state, &event, None),
            Action::Dies(event, cut) => {
                let state = State { crashes_left: state.crashes_left - 1, ..state.clone() };
                let next = self.turn(&state, &event, Some(cut))?;
                self.saw(Witness::Died);
                Some(next)
            }
            Action::Crash => Some(State { crashes_left: state.crashes_left - 1, up: false, ..state.clone() }),
            Action::Restart { everything_is_due } => self.restart(state, everything_is_due),
            Action::Machine(uid) => Some(self.with_machine(state, uid, state.machines[&uid].step()?)),
            Action::Fault(uid, fault) => {
                let machine = state.machines[&uid].fail(fault)?;
                let state = State { faults_left: state.faults_left - 1, ..state.clone() };
                Some(self.with_machine(&state, uid, machine))
            }
            Action::Lose => {
                let whole = Whole { late: None, ..Self::whole(state) };
                Some(self.keep(state.clone(), whole))
            }
            Action::Look(uid) => {
                let late = Some(Word { member: uid, seen: state.machines[&uid].clone() });
                Some(State { late, ..state.clone() })
            }
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = rules();
        properties.push(Property::always("no other rule is broken", |_, state: &State| {
            let named = |broken: &Broken| rules().iter().any(|rule| rule.name == broken.rule);
            state.broken.as_ref().is_none_or(named)
        }));
        properties
            .push(Property::always("whoever waits is served once machines obey", Lending::goes_well_from));
        properties.extend(self.scope.shows.iter().map(|witness| witness.property()));
        properties
    }
}

//! A pool with a clock one can turn and machines that do as they are told, so that tests read as
//! sentences. After every step the invariants hold, and a pool read back from what was stored is
//! the pool in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use ulid::Ulid;

use crate::machine::{
    AgentInfo, Fact, Failure, Machine, Power, RECYCLE_CAPABILITY, RecycleReport, RecycleStage, Running, Want,
};
use crate::object::{
    LeasePhase, MemberState, Span, Subject, Tick, Time, UsageRow, Workstation, WorkstationPool,
    WorkstationPoolLease,
};
use crate::pool::*;

pub const START: i64 = 1_790_000_000_000;

pub struct World {
    pub pool: Pool,
    pub now: Time,
    pub steady: Time,
    pub inputs: Inputs,
    /// The newest want each machine was given.
    pub wants: BTreeMap<Ulid, Want>,
    /// What was done, in order.
    pub acts: Vec<Act>,
    /// What happened, in order.
    pub happened: Vec<Happening>,
    /// What agents say they can do.
    pub capabilities: Vec<String>,
    /// Every row that was ever written, counted.
    pub writes: usize,
    stored: Stored,
    ticks: u128,
    boots: BTreeMap<Ulid, (Ulid, Time)>,
    reported: BTreeMap<Ulid, u64>,
}

/// What the store would hold.
#[derive(Clone)]
struct Stored {
    row: PoolRow,
    leases: BTreeMap<Ulid, Lease>,
    members: BTreeMap<Ulid, Member>,
    events: BTreeMap<Ulid, EventRow>,
    usage: BTreeMap<Ulid, Arc<UsageRow>>,
}

pub fn owner() -> Subject {
    Subject::user("owner")
}

pub fn holder() -> Subject {
    Subject::user("holder")
}

pub fn millis(span: &str) -> i64 {
    span.parse::<Span>().expect("a span").millis()
}

impl World {
    /// A pool `agents` with this spec (a template is filled in), and nothing done yet.
    pub fn new(spec: Value) -> Self {
        let mut spec = spec;
        let fields = spec.as_object_mut().expect("a spec");
        fields.entry("template").or_insert(json!({"spec": {}}));
        fields.entry("size").or_insert(json!({"max": 6}));
        let object = json!({
            "metadata": {"name": "agents", "namespace": "dev", "uid": Ulid(7), "generation": 1,
                "creationTimestamp": Time::from_millis(START)},
            "spec": spec,
        });
        let object: WorkstationPool = serde_json::from_value(object).expect("a pool");
        let row = Pool::create(object, &owner());
        Self {
            pool: Pool::load(row.clone(), [], [], []),
            now: Time::from_millis(START),
            steady: Time::from_millis(START),
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
                status_write: StatusWrite::Idle,
            },
            wants: BTreeMap::new(),
            acts: Vec::new(),
            happened: Vec::new(),
            capabilities: vec![RECYCLE_CAPABILITY.into()],
            writes: 0,
            stored: Stored {
                row,
                leases: BTreeMap::new(),
                members: BTreeMap::new(),
                events: BTreeMap::new(),
                usage: BTreeMap::new(),
            },
            ticks: 0,
            boots: BTreeMap::new(),
            reported: BTreeMap::new(),
        }
    }

    /// The same, with its floors filled.
    pub fn warm(spec: Value) -> Self {
        let mut world = Self::new(spec);
        world.settle();
        world
    }

    pub fn tick(&mut self) -> Tick {
        self.ticks += 1;
        Tick { wall: self.now, steady: self.steady, entropy: self.ticks }
    }

    /// One command: decided, stored, evolved.
    pub fn command(&mut self, command: Command) -> Result<Decision, Denied> {
        let tick = self.tick();
        let decision = self.pool.decide(command, &tick, &self.inputs)?;
        for change in &decision.changes {
            self.stored.apply(change);
        }
        self.writes += decision.changes.len();
        self.happened.extend(happenings(&self.pool, &decision));
        self.pool.evolve_all(&decision.changes);
        self.check_the_count();
        assert!(
            self.pool.has_ended() || self.reloaded() == self.pool,
            "a pool read back from its rows is another"
        );
        for want in &decision.wants {
            let last = self.wants.insert(want.member_uid, want.clone());
            assert!(last.is_none_or(|last| last.revision < want.revision), "a revision was used twice");
        }
        if decision.act != Act::Nothing {
            self.acts.push(decision.act);
        }
        Ok(decision)
    }

    /// What has happened adds up to what is there.
    fn check_the_count(&self) {
        let count = |of: fn(&Happening) -> bool| self.happened.iter().filter(|h| of(h)).count();
        let going =
            |l: &&Lease| !l.is_over() && !matches!(l.phase, LeasePhase::Releasing | LeasePhase::Failed);
        let created = count(|h| matches!(h, Happening::LeaseCreated));
        let ended = count(|h| matches!(h, Happening::LeaseEnded(_)));
        assert_eq!(created - ended, self.pool.leases().filter(going).count(), "leases");
        let bound = count(|h| matches!(h, Happening::LeaseBound { .. }));
        let waiting = count(|h| matches!(h, Happening::LeaseWaitsAgain));
        let unbound = count(|h| {
            let Happening::LeaseEnded(ending) = h else { return false };
            matches!(ending, Ending::Cancelled | Ending::ExpiredUnbound | Ending::PoolDeleted)
        });
        let held = self.pool.leases().filter(going).filter(|lease| lease.member.is_some()).count();
        assert_eq!(bound - waiting - (ended - unbound), held, "bound leases");
        let there: Vec<_> = self.pool.members().filter(|member| !member.is_over()).collect();
        let [ordered, built, removed, gone, failed] = [
            count(|h| matches!(h, Happening::BuildOrdered)),
            count(|h| matches!(h, Happening::MemberBuilt { .. })),
            count(|h| matches!(h, Happening::MemberRemoved(_))),
            count(|h| matches!(h, Happening::MemberGone)),
            count(|h| matches!(h, Happening::BuildFailed(_))),
        ];
        assert_eq!(ordered - gone, there.len(), "members");
        let deleting = there.iter().filter(|member| member.state == MemberState::Deleting).count();
        assert_eq!(removed - gone, deleting, "deletes");
        assert!(built + failed <= ordered, "builds");
    }

    /// Passes until nothing is due; returns how many acts that took.
    pub fn run(&mut self) -> usize {
        for acts in 0..10_000 {
            let decision = self.command(Command::Pass).expect("a pass is never refused");
            if decision.act == Act::Nothing {
                assert!(decision.changes.is_empty());
                self.check_the_deadline();
                return acts;
            }
        }
        panic!("the pool never comes to rest: {:?}", &self.acts[self.acts.len() - 20..]);
    }

    /// At rest, nothing falls due before the deadline; at the deadline something is done, or it is
    /// none any more. So a shell that sleeps until then neither misses anything nor spins.
    fn check_the_deadline(&self) {
        let after = |millis| Tick {
            wall: self.now.plus_millis(millis),
            steady: self.steady.plus_millis(millis),
            entropy: self.ticks,
        };
        let act = |tick: &Tick| {
            let decision = self.pool.decide(Command::Pass, tick, &self.inputs);
            decision.expect("a pass is never refused").act
        };
        let Some(deadline) = self.pool.next_deadline(&after(0)) else {
            return assert_eq!(act(&after(millis("7d"))), Act::Nothing, "this falls due unannounced");
        };
        let wait = deadline.millis_since(self.steady);
        assert!(wait > 0, "the deadline has passed already");
        assert_eq!(act(&after(wait - 1)), Act::Nothing, "this falls due before the deadline");
        let later = self.pool.next_deadline(&after(wait));
        assert!(
            act(&after(wait)) != Act::Nothing || later.is_none_or(|later| later > deadline),
            "the deadline stays due and nothing is done"
        );
    }

    /// Runs, and lets every machine do what is wanted of it, until all is quiet.
    pub fn settle(&mut self) {
        self.run();
        while let Some((uid, want)) =
            self.wants.iter().find(|(uid, want)| self.reported.get(uid) != Some(&want.revision))
        {
            let (uid, want) = (*uid, want.clone());
            let machine = self.obeying(&want);
            match want.recycle {
                Some(order) if !want.gone => self.report(uid, order.id, RecycleStage::Succeeded),
                Some(_) | None => self.fact(uid, machine),
            }
            self.reported.insert(uid, want.revision);
        }
    }

    /// The machine as a want wishes it.
    pub fn obeying(&mut self, want: &Want) -> Machine {
        match (want.gone, want.power) {
            (true, _) => Machine::Absent,
            (false, Power::Stopped) => {
                self.boots.remove(&want.member_uid);
                Machine::Stopped
            }
            (false, Power::Running) => self.up(want.member_uid),
        }
    }

    /// The machine comes up in another boot next time.
    pub fn forget_boot(&mut self, uid: Ulid) {
        self.boots.remove(&uid);
    }

    /// A machine that is up, configured, and has taken its keys.
    pub fn up(&mut self, uid: Ulid) -> Machine {
        let next = (Ulid(self.ticks + 1), self.now);
        let (boot_id, started_at) = *self.boots.entry(uid).or_insert(next);
        Machine::Running(Running {
            boot_id,
            started_at,
            configured: true,
            keys_confirmed: true,
            agent: AgentInfo {
                version: "1".into(),
                capabilities: self.capabilities.clone(),
                login_user: "dev".into(),
                host_keys: vec!["ssh-ed25519 HOST".into()],
                image: "host-1".into(),
            },
            remarks: Vec::new(),
            sessions: 0,
        })
    }

    /// A machine reports under its newest want, and the pool looks.
    pub fn fact(&mut self, uid: Ulid, machine: Machine) {
        let revision = self.wants.get(&uid).map_or(0, |want| want.revision);
        self.reported.remove(&uid);
        if matches!(machine, Machine::Stopped | Machine::Absent) {
            self.boots.remove(&uid);
        }
        self.fact_at(uid, revision, machine);
    }

    /// A machine reports under some want.
    pub fn fact_at(&mut self, uid: Ulid, observed_revision: u64, machine: Machine) {
        let fact = Fact { member_uid: uid, observed_revision, machine, recycle: None };
        self.command(Command::Fact(fact)).expect("a fact is never refused");
        self.run();
    }

    /// A machine that is up reports on a recycle, and the pool looks.
    pub fn report(&mut self, uid: Ulid, id: Ulid, stage: RecycleStage) {
        let machine = self.up(uid);
        let observed_revision = self.wants[&uid].revision;
        let recycle = Some(RecycleReport { id, stage });
        let fact = Fact { member_uid: uid, observed_revision, machine, recycle };
        self.command(Command::Fact(fact)).expect("a fact is never refused");
        self.run();
    }

    /// The recycle a member is wanted to carry out.
    pub fn order_of(&self, uid: Ulid) -> crate::machine::RecycleOrder {
        self.wants[&uid].recycle.expect("a recycle is wanted")
    }

    /// Somebody sets the wall clock; the steady one goes on.
    pub fn step_wall(&mut self, millis: i64) {
        self.now = self.now.plus_millis(millis);
        self.run();
    }

    pub fn fail(&mut self, uid: Ulid) {
        self.fact(uid, Machine::Failed(Failure { reason: "Broken".into(), message: "it broke".into() }));
    }

    /// Time passes, stopping wherever something falls due; machines do nothing.
    pub fn advance(&mut self, span: &str) {
        let end = self.steady.plus_millis(millis(span));
        loop {
            self.run();
            let tick = self.tick();
            match self.pool.next_deadline(&tick).filter(|deadline| *deadline <= end) {
                Some(deadline) => self.turn_clocks(deadline.millis_since(self.steady)),
                None => break,
            }
        }
        self.turn_clocks(end.millis_since(self.steady));
        self.run();
    }

    /// The same, with machines that do as they are told.
    pub fn live(&mut self, span: &str) {
        let end = self.steady.plus_millis(millis(span));
        loop {
            self.settle();
            let tick = self.tick();
            match self.pool.next_deadline(&tick).filter(|deadline| *deadline <= end) {
                Some(deadline) => self.turn_clocks(deadline.millis_since(self.steady)),
                None => break,
            }
        }
        self.turn_clocks(end.millis_since(self.steady));
        self.settle();
    }

    fn turn_clocks(&mut self, millis: i64) {
        self.now = self.now.plus_millis(millis);
        self.steady = self.steady.plus_millis(millis);
    }

    /// The daemon dies and comes back.
    pub fn restart(&mut self) {
        self.pool = self.reloaded();
        self.run();
        for want in self.pool.wants(&self.inputs) {
            assert_eq!(Some(&want), self.wants.get(&want.member_uid), "a restart wants something else");
        }
    }

    fn reloaded(&self) -> Pool {
        let Stored { row, leases, members, events, usage } = self.stored.clone();
        Pool::load(row, leases.into_values(), members.into_values(), events.into_values())
            .with_usage(usage.into_values())
    }

    // ---- what people do

    /// `holder` asks for a lease with a key of its name, and the pool looks.
    pub fn lease(&mut self, name: &str) -> Ulid {
        self.ask(name, json!({})).expect("the lease is taken")
    }

    pub fn ask(&mut self, name: &str, spec: Value) -> Result<Ulid, Denied> {
        let uid = Ulid::from_parts(u64::try_from(self.now.millis()).expect("now"), self.ticks + 1);
        let mut object: WorkstationPoolLease = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "dev", "uid": uid, "generation": 1,
                "creationTimestamp": self.now.whole_seconds()},
            "spec": {"workstationPoolRef": {"name": "agents"}, "authorizedKeys": [key(name)]},
        }))
        .expect("a lease");
        merge(&mut object.spec, spec);
        self.command(Command::CreateLease { object: Box::new(object), by: holder() })?;
        self.run();
        Ok(uid)
    }

    /// `by` writes the lease's spec with this patch merged in.
    pub fn write(&mut self, name: &str, patch: Value, by: &Subject) -> Result<(), Denied> {
        let lease = self.get(name);
        let mut object = lease.present();
        merge(&mut object.spec, patch);
        if object.spec != lease.spec {
            object.metadata.generation += 1;
        }
        self.update(name, object, by)
    }

    pub fn update(&mut self, name: &str, object: WorkstationPoolLease, by: &Subject) -> Result<(), Denied> {
        let uid = self.get(name).uid();
        let standing = standing(by);
        self.command(Command::UpdateLease { uid, object: Box::new(object), by: by.clone(), standing })?;
        self.run();
        Ok(())
    }

    pub fn done(&mut self, name: &str) {
        self.write(name, json!({"state": "Done"}), &holder()).expect("Done is taken");
    }

    pub fn recycle(&mut self, name: &str) {
        self.write(name, json!({"state": "Recycle"}), &holder()).expect("Recycle is taken");
    }

    pub fn delete_lease(&mut self, name: &str, by: &Subject) -> Result<(), Denied> {
        let uid = self.get(name).uid();
        self.command(Command::DeleteLease { uid, by: by.clone(), standing: standing(by) })?;
        self.run();
        Ok(())
    }

    /// The pool's spec with this patch merged in.
    pub fn change(&mut self, patch: Value) {
        let mut object = self.pool.row().present().expect("the pool is there");
        merge(&mut object.spec, patch);
        object.metadata.generation += 1;
        self.command(Command::UpdatePool { object: Box::new(object) }).expect("a change is taken");
        self.run();
    }

    pub fn delete_pool(&mut self) {
        self.command(Command::DeletePool).expect("a delete is taken");
        self.run();
    }

    pub fn cordon(&mut self, member: Ulid, cordoned: bool) -> Result<(), Denied> {
        let mut object: Workstation = self.pool.member(member).expect("the member is there").present();
        object.spec.cordoned = cordoned;
        object.metadata.generation += 1;
        let standing = Standing::OwnerOrAdmin;
        self.command(Command::UpdateMember { uid: member, object: Box::new(object), standing })?;
        self.run();
        Ok(())
    }

    pub fn delete_member(&mut self, member: Ulid) {
        self.command(Command::DeleteMember { uid: member, standing: Standing::OwnerOrAdmin })
            .expect("the owner may delete a member");
        self.run();
    }

    // ---- what can be seen

    pub fn find(&self, name: &str) -> Option<&Lease> {
        self.pool.leases().find(|lease| lease.metadata.name == name)
    }

    pub fn get(&self, name: &str) -> &Lease {
        self.find(name).unwrap_or_else(|| panic!("lease {name} is gone"))
    }

    pub fn phase(&self, name: &str) -> LeasePhase {
        self.get(name).phase
    }

    pub fn message(&self, name: &str) -> String {
        self.get(name).present().status.message
    }

    /// The member a lease is bound to.
    pub fn member_of(&self, name: &str) -> Ulid {
        self.get(name).member.as_ref().unwrap_or_else(|| panic!("lease {name} is unbound")).uid
    }

    pub fn member(&self, uid: Ulid) -> &Member {
        self.pool.member(uid).expect("the member is there")
    }

    pub fn state(&self, uid: Ulid) -> MemberState {
        self.member(uid).state
    }

    /// The members in a state, oldest first.
    pub fn in_state(&self, state: MemberState) -> Vec<Ulid> {
        self.pool.members().filter(|member| member.state == state).map(Member::uid).collect()
    }

    /// The only member in a state.
    pub fn only(&self, state: MemberState) -> Ulid {
        let members = self.in_state(state);
        assert_eq!(members.len(), 1, "members in {state:?}");
        members[0]
    }

    /// Building, starting, idle running, idle stopped, leased, stopping, deleting.
    pub fn counts(&self) -> [usize; 7] {
        [
            MemberState::Building,
            MemberState::Starting,
            MemberState::IdleRunning,
            MemberState::IdleStopped,
            MemberState::Leased,
            MemberState::Stopping,
            MemberState::Deleting,
        ]
        .map(|state| self.in_state(state).len())
    }

    pub fn status(&self) -> &crate::object::PoolStatus {
        &self.pool.row().status
    }

    /// Whether the newest want puts the lease's key on the machine.
    pub fn has_key(&self, member: Ulid, name: &str) -> bool {
        self.wants[&member].keys.contains(&key(name))
    }
}

impl Stored {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::PutPool(row) => self.row = row.clone(),
            Change::RemovePool(_) => {}
            Change::PutLease(lease) => _ = self.leases.insert(lease.uid(), lease.clone()),
            Change::RemoveLease(uid) => _ = self.leases.remove(uid).expect("a stored lease"),
            Change::PutMember(member) => _ = self.members.insert(member.uid(), member.clone()),
            Change::RemoveMember(uid) => _ = self.members.remove(uid).expect("a stored member"),
            Change::PutEvent(event) => _ = self.events.insert(event.uid, event.clone()),
            Change::RemoveEvent(uid) => _ = self.events.remove(uid).expect("a stored event"),
            Change::PutUsage(row) => _ = self.usage.insert(row.uid(), Arc::clone(row)),
            Change::RemoveUsage(uid) => _ = self.usage.remove(uid).expect("a stored hour"),
        }
    }
}

/// The key a lease of this name asks for.
pub fn key(name: &str) -> String {
    format!("ssh-ed25519 KEY-OF-{name}")
}

/// What a merge patch (RFC 7396) makes of a typed object.
pub fn merge<T: serde::Serialize + serde::de::DeserializeOwned>(object: &mut T, patch: Value) {
    fn into(target: &mut Value, patch: Value) {
        match patch {
            Value::Object(fields) => {
                if !target.is_object() {
                    *target = json!({});
                }
                for (field, value) in fields {
                    match value {
                        Value::Null => _ = target.as_object_mut().expect("an object").remove(&field),
                        value => into(&mut target[field.as_str()], value),
                    }
                }
            }
            value => *target = value,
        }
    }
    let mut value = serde_json::to_value(&*object).expect("plain data");
    into(&mut value, patch);
    *object = serde_json::from_value(value).expect("the patch fits");
}

fn standing(by: &Subject) -> Standing {
    if *by == owner() { Standing::OwnerOrAdmin } else { Standing::Other }
}

/// Every lease of these names, by phase.
pub fn phases<const N: usize>(world: &World, names: [&str; N]) -> [LeasePhase; N] {
    names.map(|name| world.phase(name))
}

impl World {
    /// A lease's object that nobody has posted yet.
    pub fn get_new(&self, name: &str) -> WorkstationPoolLease {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "dev", "uid": Ulid(99), "generation": 1,
                "creationTimestamp": self.now.whole_seconds()},
            "spec": {"workstationPoolRef": {"name": "agents"}, "authorizedKeys": [key(name)]},
        }))
        .expect("a lease")
    }

    /// Only what is to go does as it is told.
    pub fn settle_deletes(&mut self) {
        let of_one_to_go = |world: &Self| {
            let mut wants = world.wants.values();
            let pending = |want: &&Want| want.gone && world.pool.member(want.member_uid).is_some();
            wants.find(pending).map(|want| want.member_uid)
        };
        while let Some(uid) = of_one_to_go(self) {
            self.fact(uid, Machine::Absent);
        }
    }
}

//! What a decision costs, by the size of the pool: with ten, a thousand and ten thousand members and
//! as many leases.
//!
//! `cargo bench -p ringleader-proof --bench decide`. Only the pure core is timed, no disk. Deciding
//! reads ordered indexes and copies the rows it touches, so its cost should hardly grow; `load` and
//! `new_template` walk every row, and are here to show what is linear.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use divan::{Bencher, black_box};
use ringleader_proof::machine::{AgentInfo, Fact, Machine, RECYCLE_CAPABILITY, Running};
use ringleader_proof::object::{
    LeaseState, MemberState, Subject, Tick, Time, WorkstationPool, WorkstationPoolLease,
};
use ringleader_proof::pool::{
    Act, Change, Command, Decision, Inputs, OwnerKeys, Pool, ProviderState, Resetting, Room, Standing,
    StatusWrite, Stopping,
};
use serde_json::json;
use ulid::Ulid;

const SIZES: [u32; 3] = [10, 1_000, 10_000];
const NOW: Time = Time::from_millis(1_790_000_000_000);

fn main() {
    divan::main();
}

/// A pool of `size` members, all but one of them leased and Ready, and the idle one.
struct Full {
    pool: Pool,
    inputs: Inputs,
    entropy: u128,
    leases: Vec<Ulid>,
}

static FULL: LazyLock<BTreeMap<u32, Full>> =
    LazyLock::new(|| SIZES.into_iter().map(|size| (size, Full::new(size))).collect());

impl Full {
    fn new(size: u32) -> Self {
        let object = json!({
            "metadata": {"name": "agents", "namespace": "dev", "uid": Ulid(7), "generation": 1},
            "spec": {"template": {"spec": {}}, "size": {"max": size}, "warm": {"running": size},
                "lease": {"maxPending": 10_000}, "recycle": {}},
        });
        let object: WorkstationPool = serde_json::from_value(object).expect("a pool");
        let provider = ProviderState {
            name: "sandbox".into(),
            unavailable: None,
            stopping: Stopping::Possible,
            resetting: Resetting::Impossible,
        };
        let mut full = Self {
            pool: Pool::load(Pool::create(object, &Subject::user("owner")), [], [], []),
            inputs: Inputs {
                room: Room::Unlimited,
                providers: [provider].into(),
                owner_keys: OwnerKeys::new(vec!["ssh-ed25519 OWNER".into()]),
                builds_allowed: u32::MAX,
                status_write: StatusWrite::Idle,
            },
            entropy: 0,
            leases: Vec::new(),
        };
        full.settle();
        // The last of them stays idle.
        for number in 1..size {
            let uid = full.ask(number);
            full.leases.push(uid);
        }
        full.settle();
        full
    }

    fn tick(&self) -> Tick {
        Tick { wall: NOW, steady: NOW, entropy: self.entropy }
    }

    fn decide(&self, command: Command) -> Decision {
        self.pool.decide(command, &self.tick(), &self.inputs).expect("it may be")
    }

    fn take(&mut self, command: Command) -> Act {
        self.entropy += 1;
        let decision = self.decide(command);
        self.pool.evolve_all(&decision.changes);
        decision.act
    }

    /// Passes, and lets machines do what is wanted of them, until nothing is left to do.
    fn settle(&mut self) {
        loop {
            while self.take(Command::Pass) != Act::Nothing {}
            let waiting = |member: &&ringleader_proof::pool::Member| {
                member.state == MemberState::Building || !member.keys_confirmed()
            };
            let late: Vec<Ulid> =
                self.pool.members().filter(waiting).map(ringleader_proof::pool::Member::uid).collect();
            if late.is_empty() {
                return;
            }
            for uid in late {
                self.take(Command::Fact(self.up(uid)));
            }
        }
    }

    /// The machine is up and has taken its keys.
    fn up(&self, uid: Ulid) -> Fact {
        let member = self.pool.member(uid).expect("a member");
        let machine = Machine::Running(Running {
            boot_id: Ulid(9),
            started_at: NOW,
            configured: true,
            keys_confirmed: true,
            agent: AgentInfo {
                version: "1".into(),
                capabilities: vec![RECYCLE_CAPABILITY.into()],
                login_user: "dev".into(),
                host_keys: vec!["ssh-ed25519 HOST".into()],
                image: "host".into(),
            },
            remarks: Vec::new(),
            sessions: 0,
        });
        Fact { member_uid: uid, observed_revision: member.wanted.revision, machine, recycle: None }
    }

    fn new_lease(number: u32) -> Command {
        let uid = Ulid::from_parts(u64::from(number), 1);
        let object = json!({
            "metadata": {"name": format!("job-{number}"), "namespace": "dev", "uid": uid, "generation": 1,
                "creationTimestamp": NOW},
            "spec": {"workstationPoolRef": {"name": "agents"}, "authorizedKeys": ["ssh-ed25519 KEY"]},
        });
        let object: WorkstationPoolLease = serde_json::from_value(object).expect("a lease");
        Command::CreateLease { object: Box::new(object), by: Subject::user("holder") }
    }

    fn ask(&mut self, number: u32) -> Ulid {
        self.take(Self::new_lease(number));
        Ulid::from_parts(u64::from(number), 1)
    }

    /// The lease in the middle, released.
    fn release(&self) -> Command {
        let uid = self.leases[self.leases.len() / 2];
        let mut object = self.pool.lease(uid).expect("a lease").present();
        object.spec.state = LeaseState::Done;
        let by = Subject::user("holder");
        Command::UpdateLease { uid, object: Box::new(object), by, standing: Standing::Other }
    }

    /// The same pool after a command.
    fn after(&self, command: Command) -> Self {
        let mut pool = self.pool.clone();
        pool.evolve_all(&self.decide(command).changes);
        Self { pool, inputs: self.inputs.clone(), entropy: self.entropy + 1, leases: self.leases.clone() }
    }
}

fn bench(bencher: Bencher<'_, '_>, full: &Full, command: impl Fn() -> Command + Sync, act: Act) {
    assert_eq!(full.decide(command()).act, act);
    bencher.with_inputs(&command).bench_values(|command| full.decide(black_box(command)));
}

#[divan::bench(args = SIZES)]
fn create_lease(bencher: Bencher<'_, '_>, size: u32) {
    bench(bencher, &FULL[&size], || Full::new_lease(1_000_000), Act::Record);
}

#[divan::bench(args = SIZES)]
fn bind(bencher: Bencher<'_, '_>, size: u32) {
    bench(bencher, &FULL[&size].after(Full::new_lease(1_000_000)), || Command::Pass, Act::Bind);
}

#[divan::bench(args = SIZES)]
fn done(bencher: Bencher<'_, '_>, size: u32) {
    let full = &FULL[&size];
    bench(bencher, full, || full.release(), Act::Record);
}

#[divan::bench(args = SIZES)]
fn release(bencher: Bencher<'_, '_>, size: u32) {
    let full = &FULL[&size];
    bench(bencher, &full.after(full.release()), || Command::Pass, Act::Release);
}

#[divan::bench(args = SIZES)]
fn fact_that_says_nothing_new(bencher: Bencher<'_, '_>, size: u32) {
    let full = &FULL[&size];
    let member = full.pool.members().next().expect("a member").uid();
    bench(bencher, full, || Command::Fact(full.up(member)), Act::Nothing);
}

#[divan::bench(args = SIZES)]
fn pass_with_nothing_due(bencher: Bencher<'_, '_>, size: u32) {
    bench(bencher, &FULL[&size], || Command::Pass, Act::Nothing);
}

#[divan::bench(args = SIZES)]
fn next_deadline(bencher: Bencher<'_, '_>, size: u32) {
    let full = &FULL[&size];
    bencher.bench(|| full.pool.next_deadline(black_box(&full.tick())));
}

/// Memory moved by a bind.
#[divan::bench(args = SIZES)]
fn evolve_a_bind(bencher: Bencher<'_, '_>, size: u32) {
    let full = FULL[&size].after(Full::new_lease(1_000_000));
    let changes: Arc<[Change]> = full.decide(Command::Pass).changes.into();
    let mut pool = full.pool;
    bencher.bench_local(|| pool.evolve_all(black_box(&changes)));
}

/// Linear: every member is fresh or stale anew.
#[divan::bench(args = SIZES, sample_count = 10)]
fn new_template(bencher: Bencher<'_, '_>, size: u32) {
    let full = &FULL[&size];
    let rows: [_; 2] = ["a", "b"].map(|hash| {
        let mut row = full.pool.row().clone();
        row.template_hash = hash.into();
        Change::PutPool(row)
    });
    let (mut pool, mut turn) = (full.pool.clone(), 0);
    bencher.bench_local(|| {
        turn += 1;
        pool.evolve(&rows[turn % 2]);
    });
}

/// Linear: a start reads every row.
#[divan::bench(args = SIZES, sample_count = 10)]
fn load(bencher: Bencher<'_, '_>, size: u32) {
    let pool = &FULL[&size].pool;
    let rows = || {
        let leases: Vec<_> = pool.leases().cloned().collect();
        let members: Vec<_> = pool.members().cloned().collect();
        (pool.row().clone(), leases, members)
    };
    bencher.with_inputs(rows).bench_values(|(row, leases, members)| Pool::load(row, leases, members, []));
}

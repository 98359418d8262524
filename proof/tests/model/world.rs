//! What is outside the pool: the clocks, the daemon's inputs, the disk, the wants on their way, and
//! the machines.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ringleader_proof::machine::{
    AgentInfo, Fact, Failure, Machine, Power, RECYCLE_CAPABILITY, RecycleReport, RecycleStage, Running, Want,
};
use ringleader_proof::object::{Tick, Time, UsageRow};
use ringleader_proof::pool::{
    Change, Decision, EventRow, Inputs, Lease, Member, OwnerKeys, Pool, PoolRow, ProviderState, Resetting,
    Room, StatusWrite, Stopping,
};
use ulid::Ulid;

use crate::naive::{Naive, Now};

pub const START: i64 = 1_790_000_000_000;

/// The rows as a store holds them.
#[derive(Clone, Debug)]
pub struct Rows {
    pub pool: PoolRow,
    leases: BTreeMap<Ulid, Lease>,
    members: BTreeMap<Ulid, Member>,
    events: BTreeMap<Ulid, EventRow>,
    usage: BTreeMap<Ulid, Arc<UsageRow>>,
}

impl Rows {
    pub fn new(pool: PoolRow) -> Self {
        Self {
            pool,
            leases: BTreeMap::new(),
            members: BTreeMap::new(),
            events: BTreeMap::new(),
            usage: BTreeMap::new(),
        }
    }

    /// Writes them down. A kind of row that the model knows nothing of is only to be kept here.
    pub fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::PutPool(row) => self.pool = row.clone(),
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

    pub fn load(&self) -> Pool {
        let Self { pool, leases, members, events, usage } = self.clone();
        Pool::load(pool, leases.into_values(), members.into_values(), events.into_values())
            .with_usage(usage.into_values())
    }
}

/// A decision that is not durable yet, and the model as it was after it.
pub struct Pending {
    pub decision: Decision,
    pub model: Naive,
}

#[derive(Debug)]
pub struct Clocks {
    pub wall: Time,
    pub steady: Time,
    ticks: u128,
}

impl Clocks {
    pub fn new() -> Self {
        Self { wall: Time::from_millis(START), steady: Time::from_millis(START), ticks: 0 }
    }

    pub fn tick(&self) -> Tick {
        Tick { wall: self.wall, steady: self.steady, entropy: self.ticks }
    }

    /// The randomness of the last tick was used. One that was not is used again, so that what
    /// changes nothing can be left out of a history without changing the rest.
    pub fn use_entropy(&mut self) {
        self.ticks += 1;
    }

    pub fn advance(&mut self, millis: i64) {
        self.wall = self.wall.plus_millis(millis);
        self.steady = self.steady.plus_millis(millis);
    }

    /// The id of a boot that begins now: higher than that of any before it.
    fn boot_id(&mut self) -> Ulid {
        self.ticks += 1;
        Ulid::from_parts(u64::try_from(self.steady.millis()).expect("after 1970"), self.ticks)
    }

    /// An id that nothing has.
    pub fn id(&mut self) -> Ulid {
        self.ticks += 1;
        Ulid::from_parts(u64::try_from(self.wall.millis()).expect("after 1970"), self.ticks)
    }
}

/// The daemon's inputs, with the devices beside them as the model reads them.
#[derive(Clone, Debug)]
pub struct Around {
    pub inputs: Inputs,
    pub devices: Vec<String>,
    /// Whether agents can recycle.
    pub recycles: bool,
}

impl Around {
    pub fn new() -> Self {
        let mut around = Self {
            inputs: Inputs {
                room: Room::Unlimited,
                providers: [].into(),
                owner_keys: OwnerKeys::new(Vec::new()),
                builds_allowed: u32::MAX,
                status_write: StatusWrite::Idle,
            },
            devices: Vec::new(),
            recycles: true,
        };
        around.be_friendly();
        around.set_devices(1);
        around
    }

    /// Room, providers that can do everything, agents that can recycle.
    pub fn be_friendly(&mut self) {
        let provider = |name: &str| ProviderState {
            name: name.into(),
            unavailable: None,
            stopping: Stopping::Possible,
            resetting: Resetting::Possible,
        };
        self.inputs.providers = [provider("sandbox"), provider("other")].into();
        self.inputs.room = Room::Unlimited;
        self.inputs.builds_allowed = u32::MAX;
        self.recycles = true;
    }

    pub fn set_devices(&mut self, count: u8) {
        self.devices = (0..count).map(|n| format!("ssh-ed25519 DEVICE-{n}")).collect();
        self.inputs.owner_keys = OwnerKeys::new(self.devices.clone());
    }

    pub fn now<'a>(&'a self, tick: &Tick) -> Now<'a> {
        Now { wall: tick.wall, steady: tick.steady, inputs: &self.inputs, devices: &self.devices }
    }
}

/// A machine, and the member actor that speaks for it.
#[derive(Debug, Default)]
pub struct Station {
    /// The newest want that has arrived since the daemon started.
    pub want: Option<Want>,
    /// The last want it said it had fulfilled.
    pub fulfilled: Option<u64>,
    pub boot: Option<(Ulid, Time)>,
    pub last_boot: Option<(Ulid, Time)>,
    /// What it remembers of recycles, over restarts.
    pub recycled: Option<RecycleReport>,
    pub older_recycle: Option<Ulid>,
}

impl Station {
    pub fn revision(&self) -> u64 {
        self.want.as_ref().map_or(0, |want| want.revision)
    }

    /// It goes down: what comes next is another boot.
    pub fn halt(&mut self) {
        self.last_boot = self.boot.take().or(self.last_boot);
    }

    pub fn boot(&mut self, clocks: &mut Clocks) -> (Ulid, Time) {
        *self.boot.get_or_insert_with(|| (clocks.boot_id(), clocks.wall))
    }

    pub fn running(boot: (Ulid, Time), configured: bool, keys_confirmed: bool, recycles: bool) -> Machine {
        Machine::Running(Running {
            boot_id: boot.0,
            started_at: boot.1,
            configured,
            keys_confirmed,
            agent: AgentInfo {
                version: "1".into(),
                capabilities: recycles.then(|| RECYCLE_CAPABILITY.to_owned()).into_iter().collect(),
                login_user: "dev".into(),
                host_keys: vec!["ssh-ed25519 HOST".into()],
                image: "host-1".into(),
            },
            remarks: Vec::new(),
            sessions: 0,
        })
    }

    /// Does all that its newest want asks, and says so.
    pub fn obey(&mut self, clocks: &mut Clocks, recycles: bool) -> Option<Fact> {
        let want = self.want.clone()?;
        self.fulfilled = Some(want.revision);
        let machine = match (want.gone, want.power) {
            (true, _) => {
                self.halt();
                Machine::Absent
            }
            (false, Power::Stopped) => {
                self.halt();
                Machine::Stopped
            }
            (false, Power::Running) => {
                self.carry_out_recycle(&want);
                Self::running(self.boot(clocks), true, true, recycles)
            }
        };
        let recycle = self.recycled.clone();
        Some(Fact { member_uid: want.member_uid, observed_revision: want.revision, machine, recycle })
    }

    fn carry_out_recycle(&mut self, want: &Want) {
        let Some(order) = want.recycle else { return };
        if self.recycled.as_ref().is_some_and(|report| report.id == order.id) {
            return;
        }
        if order.reboot {
            self.halt();
        }
        self.older_recycle = self.recycled.take().map(|report| report.id);
        self.recycled = Some(RecycleReport { id: order.id, stage: RecycleStage::Succeeded });
    }
}

pub fn failure() -> Failure {
    Failure { reason: "Broken".into(), message: "it broke".into() }
}

pub type Stations = BTreeMap<Ulid, Station>;
pub type Queue = VecDeque<Pending>;

//! How each event happens to the rig.

use std::sync::Arc;

use ringleader_proof::machine::{Fact, Machine, RecycleReport, RecycleStage};
use ringleader_proof::object::{
    Recycle, Reset, Span, Subject, Workstation, WorkstationPool, WorkstationPoolLease,
};
use ringleader_proof::pool::{Command, Resetting, Room, Standing, Stopping};
use serde_json::json;
use ulid::Ulid;

use crate::rig::Rig;
use crate::transition::{
    Boot, Born, By, Event, Expires, Input, Lapse, LeaseWrite, MemberWrite, PoolWrite, Report, Revision, Said,
};
use crate::world::{Station, failure};

const MINUTE: i64 = 60_000;
const FOREIGN: &str = "example.dev/audit";

fn span(text: &str) -> Span {
    text.parse().expect("a span")
}

impl Rig {
    pub fn happen(&mut self, event: &Event) {
        match *event {
            Event::Nothing => {}
            Event::Ask { by, expires, born, keys, foreign } => self.ask(by, expires, born, keys, foreign),
            Event::WriteLease { lease, write, by } => self.write_lease(lease, write, by),
            Event::DeleteLease { lease, by } => {
                if let Some(uid) = self.nth_lease(lease) {
                    let (by, standing) = self.who(by, uid);
                    let _ = self.submit(Command::DeleteLease { uid, by, standing });
                }
            }
            Event::Cordon { member, cordoned, by } => {
                self.write_member(member, by, |object| object.spec.cordoned = cordoned);
            }
            Event::WriteMember { member, write } => {
                self.write_member(member, By::Owner, |object| match write {
                    MemberWrite::Finalizer(on) => set_foreign(&mut object.metadata.finalizers, on),
                    MemberWrite::Power => object.spec.stopped = !object.spec.stopped,
                    MemberWrite::Environment => {
                        object.spec.environment.insert("N".into(), "other".into());
                    }
                    MemberWrite::Nonce => object.spec.recycle_nonce = "other".into(),
                });
            }
            Event::DeleteMember { member, by } => {
                let uid = self.nth_member(member).unwrap_or(Ulid(1));
                let _ = self.submit(Command::DeleteMember { uid, standing: standing(by) });
            }
            Event::WritePool(write) => self.write_pool(write),
            Event::DeletePool => _ = self.submit(Command::DeletePool),
            Event::Obey(member) => {
                if let Some(uid) = self.nth_member(member) {
                    self.obey(uid);
                }
            }
            Event::Say { member, machine, revision, boot, report } => {
                self.say(member, machine, revision, boot, report);
            }
            Event::Repeat(at) => {
                let count = self.history.facts.len();
                if count > 0 {
                    let fact = self.history.facts[usize::from(at) % count].clone();
                    self.hear(fact);
                }
            }
            Event::Input(input) => self.input(input),
            Event::Pass(lapse) => self.pass_time(lapse),
            Event::SetClock(minutes) => {
                self.clocks.wall = self.clocks.wall.plus_millis(i64::from(minutes) * MINUTE);
            }
            Event::Deliver(at) => self.deliver(usize::from(at)),
            Event::Crash => self.crash(),
            Event::Settle => self.settle(),
        }
    }

    fn nth_lease(&self, n: u8) -> Option<Ulid> {
        let all: Vec<Ulid> = self.pool.leases().map(ringleader_proof::pool::Lease::uid).collect();
        (!all.is_empty()).then(|| all[usize::from(n) % all.len()])
    }

    fn nth_member(&self, n: u8) -> Option<Ulid> {
        let all: Vec<Ulid> = self.pool.members().map(ringleader_proof::pool::Member::uid).collect();
        (!all.is_empty()).then(|| all[usize::from(n) % all.len()])
    }

    fn who(&self, by: By, lease: Ulid) -> (Subject, Standing) {
        match by {
            By::Holder => {
                let holder = self.pool.lease(lease).expect("a lease").holder.clone();
                let owns = holder == owner();
                (holder, if owns { Standing::OwnerOrAdmin } else { Standing::Other })
            }
            By::Owner => (owner(), Standing::OwnerOrAdmin),
            By::Stranger => (Subject::user("stranger"), Standing::Other),
        }
    }

    // ---- people

    fn ask(&mut self, by: By, expires: Expires, born: Born, keys: u8, foreign: bool) {
        self.history.leases_asked += 1;
        let name = format!("lease-{}", self.history.leases_asked);
        let mut object: WorkstationPoolLease = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "dev", "uid": self.clocks.id(), "generation": 1,
                "creationTimestamp": self.clocks.wall.whole_seconds()},
            "spec": {"workstationPoolRef": {"name": "agents"}},
        }))
        .expect("a lease");
        object.spec.authorized_keys = keys_of(&name, keys);
        object.spec.state = match born {
            Born::Needed => ringleader_proof::object::LeaseState::Needed,
            Born::Done => ringleader_proof::object::LeaseState::Done,
        };
        if let Expires::In(minutes) = expires {
            object.spec.expires_at = Some(self.clocks.wall.plus_millis(i64::from(minutes) * MINUTE));
        }
        set_foreign(&mut object.metadata.finalizers, foreign);
        let by = match by {
            By::Holder => Subject::user("holder"),
            By::Owner => owner(),
            By::Stranger => Subject::user("stranger"),
        };
        let _ = self.submit(Command::CreateLease { object: Box::new(object), by });
    }

    fn write_lease(&mut self, lease: u8, write: LeaseWrite, by: By) {
        use ringleader_proof::object::LeaseState::{Done, Needed, Recycle};
        let Some(uid) = self.nth_lease(lease) else { return };
        let row = self.pool.lease(uid).expect("a lease").clone();
        let mut object = row.present();
        let first_read = self.history.leases.entry(uid).or_insert_with(|| object.clone()).clone();
        let name = &row.metadata.name;
        match write {
            LeaseWrite::Done => object.spec.state = Done,
            LeaseWrite::Recycle => object.spec.state = Recycle,
            LeaseWrite::Needed => object.spec.state = Needed,
            LeaseWrite::Renew => object.spec.expires_at = None,
            LeaseWrite::Expires(minutes) => {
                object.spec.expires_at = Some(self.clocks.wall.plus_millis(i64::from(minutes) * MINUTE));
            }
            LeaseWrite::Keys(keys) => object.spec.authorized_keys = keys_of(name, keys),
            LeaseWrite::KeysAndDone(keys) => {
                object.spec.authorized_keys = keys_of(name, keys);
                object.spec.state = Done;
            }
            LeaseWrite::OtherPool => object.spec.workstation_pool_ref.name = "others".into(),
            LeaseWrite::OtherHolder => object.status.holder = Some(Subject::user("other")),
            LeaseWrite::OtherUid => object.status.pool_uid = Some(Ulid(8)),
            LeaseWrite::Finalizer(on) => set_foreign(&mut object.metadata.finalizers, on),
            LeaseWrite::Stale => object = first_read,
        }
        // As admission counts it.
        object.metadata.generation = row.metadata.generation + i64::from(object.spec != row.spec);
        let (by, standing) = self.who(by, uid);
        let _ = self.submit(Command::UpdateLease { uid, object: Box::new(object), by, standing });
    }

    fn write_member(&mut self, n: u8, by: By, change: impl Fn(&mut Workstation)) {
        let Some(uid) = self.nth_member(n) else { return };
        let mut object = self.pool.member(uid).expect("a member").present();
        change(&mut object);
        object.metadata.generation += 1;
        let _ = self.submit(Command::UpdateMember { uid, object: Box::new(object), standing: standing(by) });
    }

    fn write_pool(&mut self, write: PoolWrite) {
        let row = self.pool.row();
        let present = row.present().or_else(|| self.history.pool.clone());
        let Some(mut object) = present else { return };
        change_pool(&mut object, write);
        let size = object.spec.size.max;
        let warm = &mut object.spec.warm;
        warm.running = warm.running.min(size);
        warm.stopped = warm.stopped.min(size - warm.running);
        object.metadata.generation = row.metadata.generation + i64::from(object.spec != row.spec);
        self.history.pool = Some(object.clone());
        let _ = self.submit(Command::UpdatePool { object: Box::new(object) });
    }

    // ---- machines

    fn say(&mut self, n: u8, machine: Said, revision: Revision, boot: Boot, report: Report) {
        let uid = self.nth_member(n).filter(|_| n < 11).unwrap_or(Ulid(1));
        let durable = self.ledger.newest.get(&uid).map_or(0, |want| want.revision);
        let order = self.model.get_member(uid).and_then(|member| member.recycle).map(|order| order.id);
        let recycles = self.around.recycles;
        let station = self.stations.entry(uid).or_default();
        // Whatever it says now, it is not its last word: it drives on, and speaks again when it is there.
        station.fulfilled = None;
        let observed_revision = match revision {
            Revision::Newest => station.revision(),
            Revision::Older(by) => station.revision().saturating_sub(by.into()),
            Revision::Undelivered => durable,
            Revision::Future => durable + 2,
        };
        let machine = match machine {
            Said::Running { configured, keys } => {
                if matches!(boot, Boot::New) {
                    station.halt();
                }
                let older = station.last_boot.filter(|_| matches!(boot, Boot::Older));
                let boot = older.unwrap_or_else(|| station.boot(&mut self.clocks));
                Station::running(boot, configured, keys, recycles)
            }
            Said::Booting => Machine::Booting,
            Said::Stopped => {
                station.halt();
                Machine::Stopped
            }
            Said::Stopping => Machine::Stopping,
            Said::Absent => {
                station.halt();
                Machine::Absent
            }
            Said::Failed => Machine::Failed(failure()),
            Said::Unknown => Machine::Unknown { why: "no answer".into() },
            Said::Unplaceable => Machine::Unplaceable { why: "no machine is free".into() },
        };
        let of_order = |stage| order.map(|id| RecycleReport { id, stage });
        let succeeded = |id| RecycleReport { id, stage: RecycleStage::Succeeded };
        let recycle = match report {
            Report::None => None,
            Report::UnderWay => of_order(RecycleStage::UnderWay),
            Report::Succeeded => of_order(RecycleStage::Succeeded),
            Report::Failed => of_order(RecycleStage::Failed(failure())),
            Report::OlderSucceeded => station.older_recycle.map(succeeded),
            Report::UnknownSucceeded => Some(succeeded(self.clocks.id())),
        };
        self.hear(Fact { member_uid: uid, observed_revision, machine, recycle });
    }

    // ---- the world

    fn input(&mut self, input: Input) {
        let inputs = &mut self.around.inputs;
        match input {
            Input::Room(3) => inputs.room = Room::Unlimited,
            Input::Room(more) => {
                inputs.room = Room::Limited { more: more.into(), why: "the namespace is full".into() };
            }
            Input::Builds(3) => inputs.builds_allowed = u32::MAX,
            Input::Builds(more) => inputs.builds_allowed = more.into(),
            Input::Provider { which, available, stops, resets } => {
                let mut providers = inputs.providers.to_vec();
                if let Some(provider) = providers.get_mut(usize::from(which)) {
                    provider.unavailable = (!available).then(|| "it is down".into());
                    provider.stopping = if stops { Stopping::Possible } else { Stopping::Impossible };
                    provider.resetting = if resets { Resetting::Possible } else { Resetting::Impossible };
                    inputs.providers = providers.into();
                } else {
                    self.around.be_friendly();
                }
            }
            Input::NoProvider => inputs.providers = Arc::from([]),
            Input::Devices(count) => self.around.set_devices(count),
            Input::Agents { recycle } => self.around.recycles = recycle,
        }
    }

    fn pass_time(&mut self, lapse: Lapse) {
        let millis = match lapse {
            Lapse::ToDeadline => {
                let tick = self.clocks.tick();
                let deadline = self.pool.next_deadline(&tick);
                deadline.map_or(MINUTE, |deadline| {
                    deadline.millis_since(tick.steady).clamp(0, 90 * 24 * 60 * MINUTE)
                })
            }
            Lapse::Seconds(seconds) => i64::from(seconds) * 1000,
            Lapse::Minutes(minutes) => i64::from(minutes) * MINUTE,
            Lapse::Hours(hours) => i64::from(hours) * 60 * MINUTE,
            Lapse::Days => 3 * 24 * 60 * MINUTE,
        };
        self.clocks.advance(millis);
    }
}

pub fn change_pool(object: &mut WorkstationPool, write: PoolWrite) {
    let spec = &mut object.spec;
    let some = |texts: [&str; 3], n: u8| span(texts[usize::from(n)]);
    match write {
        PoolWrite::Template(n) => {
            spec.template.spec.environment.insert("N".into(), n.to_string());
        }
        PoolWrite::Provider(n) => {
            let pinned = ["sandbox", "other", "missing"].get(usize::from(n));
            spec.template.spec.requirements =
                pinned.map(|name| format!("provider:{name}")).into_iter().collect();
        }
        PoolWrite::Size(max) => spec.size.max = max.into(),
        PoolWrite::Floors(running, stopped) => {
            spec.warm.running = running.into();
            spec.warm.stopped = stopped.into();
        }
        PoolWrite::StopAfter(n) => spec.warm.stop_after = some(["0s", "1m", "15m"], n),
        PoolWrite::DeleteAfter(n) => spec.warm.delete_after = some(["0s", "1m", "1h"], n),
        PoolWrite::MaxAge(n) => {
            spec.max_age = [None, Some("1h"), Some("4h")][usize::from(n)].map(span);
        }
        PoolWrite::MaxTerm(n) => spec.lease.max_term = some(["1m", "1h", "24h"], n),
        PoolWrite::MaxPending(max) => spec.lease.max_pending = max.into(),
        PoolWrite::Retention(n) => spec.lease.failed_retention = some(["0s", "10m", "24h"], n),
        PoolWrite::NoRecycle => spec.recycle = None,
        PoolWrite::Recycle { reuses, timeout, reboot, reset } => {
            spec.recycle = Some(Recycle {
                max_reuses: reuses.into(),
                timeout: some(["10s", "10m", "2h"], timeout),
                reboot,
                reset: if reset { Reset::Disk } else { Reset::None },
            });
        }
        PoolWrite::Paused(paused) => spec.paused = paused,
        PoolWrite::Owner(n) => spec.owner = Some(Subject::user(["owner", "heir"][usize::from(n)])),
        PoolWrite::Finalizer(on) => set_foreign(&mut object.metadata.finalizers, on),
    }
}

fn owner() -> Subject {
    Subject::user("owner")
}

fn standing(by: By) -> Standing {
    match by {
        By::Owner => Standing::OwnerOrAdmin,
        By::Holder | By::Stranger => Standing::Other,
    }
}

/// The first key is the lease's alone; others are shared with other leases, and one with the owner.
fn keys_of(name: &str, keys: u8) -> Vec<String> {
    let own = format!("ssh-ed25519 ONLY-{name}");
    let shared = match keys {
        0 => None,
        1 => Some("ssh-ed25519 DEVICE-0".to_owned()),
        other => Some(format!("ssh-ed25519 SHARED-{other}")),
    };
    std::iter::once(own).chain(shared).collect()
}

fn set_foreign(finalizers: &mut Vec<String>, on: bool) {
    finalizers.retain(|finalizer| finalizer != FOREIGN);
    if on {
        finalizers.push(FOREIGN.into());
    }
}

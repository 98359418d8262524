//! A machine and its member actor as a small automaton: it holds the newest want it was given and
//! goes towards it step by step, or fails. What it says of itself is a [`Fact`].

use ulid::Ulid;

use crate::START;
use ringleader_proof::machine::{
    AgentInfo, Fact, Failure, Machine, Power, RECYCLE_CAPABILITY, RecycleReport, RecycleStage, Running, Want,
};
use ringleader_proof::object::Time;

/// A machine as it truly is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Box_ {
    pub place: Place,
    /// Counts up with every boot; the last one stays on record when it ends.
    pub boot: u64,
    /// The setup and the keys of the order have landed in this boot.
    pub landed: bool,
    /// The leases' keys that are truly on its disk.
    pub keys: Vec<String>,
    /// A lease's keys were on it and it has not been recycled since.
    pub used: bool,
    pub order: Order,
    /// The last recycle it knows of, and whether that succeeded.
    pub recycled: Option<(Ulid, Outcome)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Not made yet.
    Never,
    /// There is no room for it.
    Unplaceable,
    Booting,
    Running,
    Stopped,
    /// It cannot be made or configured.
    Failed,
    /// Not there any more.
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Succeeded,
    Failed,
}

/// As much of the newest want as a machine acts on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    pub revision: u64,
    pub aim: Aim,
    /// The leases' keys in it.
    pub keys: Vec<String>,
    /// The recycle, and whether it reboots.
    pub recycle: Option<(Ulid, bool)>,
    /// It may be made anew.
    pub makes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Aim {
    Running,
    Stopped,
    Gone,
}

/// What may go wrong with a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It stops by itself.
    Stop,
    /// It starts anew by itself.
    Reboot,
    /// It is gone, disk and all.
    Vanish,
    /// It cannot be made or configured.
    Break,
    /// A script of its recycle fails.
    Spoil,
    /// There is no room to make it.
    Crowd,
}

impl Box_ {
    /// Before anything was done for its first want.
    pub fn new(want: &Want) -> Self {
        Self {
            place: Place::Never,
            boot: 0,
            landed: false,
            keys: Vec::new(),
            used: false,
            order: Order::of(want),
            recycled: None,
        }
    }

    /// One step towards its want; none when it is there, or can go no further.
    pub fn step(&self) -> Option<Self> {
        let mut next = self.clone();
        match (self.place, self.order.aim) {
            (Place::Gone, _) => return None,
            (_, Aim::Gone) => next.leave(Place::Gone),
            (Place::Never | Place::Unplaceable, Aim::Running) if self.order.makes => next.boot(),
            (Place::Never | Place::Unplaceable | Place::Failed, _) | (Place::Stopped, Aim::Stopped) => {
                return None;
            }
            (Place::Stopped, Aim::Running) => next.boot(),
            (Place::Booting, Aim::Running) => next.place = Place::Running,
            (Place::Booting | Place::Running, Aim::Stopped) => next.leave(Place::Stopped),
            (Place::Running, Aim::Running) if !self.confirms() => next.land(),
            (Place::Running, Aim::Running) => {
                let (id, reboots) = self.order.recycle.filter(|order| !self.knows(order.0))?;
                next.recycled = Some((id, Outcome::Succeeded));
                next.used = false;
                if reboots {
                    next.leave(Place::Stopped);
                    next.boot();
                }
            }
        }
        Some(next)
    }

    /// What it is after `fault`; none where that cannot happen to it.
    pub fn fail(&self, fault: Fault) -> Option<Self> {
        let mut next = self.clone();
        let up = matches!(self.place, Place::Booting | Place::Running);
        match fault {
            Fault::Stop if up => next.leave(Place::Stopped),
            Fault::Reboot if up => {
                next.leave(Place::Stopped);
                next.boot();
            }
            // One that is being built is made anew.
            Fault::Vanish if up && self.order.makes => {
                next.leave(Place::Never);
                next.keys.clear();
                next.used = false;
            }
            Fault::Vanish if up || self.place == Place::Stopped => next.leave(Place::Gone),
            Fault::Break if self.order.makes && (up || self.place == Place::Never) => {
                next.leave(Place::Failed);
            }
            Fault::Crowd if self.order.makes && self.place == Place::Never => next.place = Place::Unplaceable,
            Fault::Spoil => {
                let (id, _) = self.order.recycle.filter(|order| self.confirms() && !self.knows(order.0))?;
                next.recycled = Some((id, Outcome::Failed));
            }
            Fault::Stop | Fault::Reboot | Fault::Vanish | Fault::Break | Fault::Crowd => return None,
        }
        Some(next)
    }

    fn boot(&mut self) {
        self.place = Place::Booting;
        self.boot += 1;
    }

    fn leave(&mut self, place: Place) {
        self.place = place;
        self.landed = false;
    }

    fn land(&mut self) {
        self.landed = true;
        self.keys.clone_from(&self.order.keys);
        self.used |= !self.keys.is_empty();
    }

    /// The agent has confirmed the keys of the order in this boot.
    pub fn confirms(&self) -> bool {
        self.place == Place::Running && self.landed && self.keys == self.order.keys
    }

    fn knows(&self, recycle: Ulid) -> bool {
        self.recycled.is_some_and(|(id, _)| id == recycle)
    }

    /// What its member actor says of it.
    pub fn fact(&self, member_uid: Ulid) -> Fact {
        let failure = |what: &str| Failure { reason: "Broken".into(), message: what.into() };
        let machine = match self.place {
            Place::Never | Place::Gone => Machine::Absent,
            Place::Unplaceable => Machine::Unplaceable { why: "no room".into() },
            Place::Booting => Machine::Booting,
            Place::Stopped => Machine::Stopped,
            Place::Failed => Machine::Failed(failure("it broke")),
            Place::Running => Machine::Running(self.running()),
        };
        let recycle = self.recycled.map(|(id, outcome)| RecycleReport {
            id,
            stage: match outcome {
                Outcome::Succeeded => RecycleStage::Succeeded,
                Outcome::Failed => RecycleStage::Failed(failure("a script failed")),
            },
        });
        Fact { member_uid, observed_revision: self.order.revision, machine, recycle }
    }

    fn running(&self) -> Running {
        Running {
            boot_id: boot_id(self.boot),
            started_at: started_at(self.boot),
            configured: self.landed,
            keys_confirmed: self.confirms(),
            agent: AgentInfo {
                version: "1".into(),
                capabilities: vec![RECYCLE_CAPABILITY.into()],
                login_user: "dev".into(),
                host_keys: Vec::new(),
                image: "host-1".into(),
            },
            remarks: Vec::new(),
            sessions: 0,
        }
    }
}

/// The id of a machine's `number`-th boot.
pub fn boot_id(number: u64) -> Ulid {
    Ulid(u128::from(number))
}

/// And back.
pub fn boot_number(id: Ulid) -> u64 {
    u64::try_from(id.0).unwrap_or(0)
}

/// When that was: later ones later.
pub fn started_at(number: u64) -> Time {
    Time::from_millis(START - 1_000_000 + i64::try_from(number).unwrap_or(0))
}

impl Order {
    pub fn of(want: &Want) -> Self {
        let aim = match (want.gone, want.power) {
            (true, _) => Aim::Gone,
            (false, Power::Running) => Aim::Running,
            (false, Power::Stopped) => Aim::Stopped,
        };
        Self {
            revision: want.revision,
            aim,
            keys: want.keys.iter().filter(|key| crate::is_key(key)).cloned().collect(),
            recycle: want.recycle.map(|order| (order.id, order.reboot)),
            makes: want.build_by.is_some(),
        }
    }
}

//! The standalone workstations of a namespace behind the shell of an owner.

use std::collections::BTreeMap;

use super::catalog::device_keys;
use super::core::{Core, Decided, Hold, Reading, Sources};
use super::doors::{Refusal, Write};
use super::placement;
use super::reading::{Judged, Judgement, Present, invalid, judge, shown, typed};
use crate::fleet::{Change, Command, Denied, Fleet, Inputs, Turn};
use crate::machine::{Fact, Want};
use crate::object::{Tick, Time, Workstation};
use crate::store::{self, OwnerId, Record, RecordId, RecordKind};
use crate::view::Key;

impl Core for Fleet {
    type Command = Command;
    type Change = Change;
    type Inputs = Inputs;

    fn load(_: &OwnerId, records: Vec<Record>) -> Self {
        let mut fleet = Self::default();
        for record in records {
            if let Record::Station(station) = record {
                Self::evolve(&mut fleet, &Change::Put(station));
            }
        }
        fleet
    }

    fn read(&self, write: &Write, tick: &Tick, sources: &Sources) -> Result<Reading<Command>, Refusal> {
        let old = self.named(write.verb.name()).map(|station| Present {
            uid: station.uid,
            value: shown(Record::Station(Box::new(station.clone()))).1,
        });
        let Judgement { judged, warnings, expected_version } = judge(write, old.as_ref(), tick)?;
        let creates = matches!(judged, Judged::Create(_));
        let checked = |value| {
            let object: Workstation = typed(value)?;
            placement::check(&sources.providers, &object.spec, "spec")?;
            Ok::<_, Refusal>(object)
        };
        let uid = old.map(|old| old.uid).unwrap_or_default();
        let command = match judged {
            Judged::Create(value) => Command::Create { object: checked(value)?, by: write.by.clone() },
            Judged::Update(value) => Command::Update { uid, object: checked(value)? },
            Judged::Delete => Command::Delete { uid },
        };
        let name = match &command {
            Command::Create { object, .. } => object.metadata.name.clone(),
            Command::Pass | Command::Update { .. } | Command::Delete { .. } | Command::Fact(_) => {
                write.verb.name().to_owned()
            }
        };
        let key = Key::new(write.kind, write.namespace.as_deref(), &name);
        Ok(Reading { command, key, creates, expected_version, warnings })
    }

    fn heard(fact: Fact) -> Command {
        Command::Fact(fact)
    }

    fn pass() -> Command {
        Command::Pass
    }

    fn decide(&self, command: Command, tick: &Tick, inputs: &Inputs) -> Result<Decided<Change>, Refusal> {
        let decision = Self::decide(self, command, tick, inputs)?;
        let preview = decision.changes.iter().find_map(|change| match change {
            Change::Put(station) => Some(shown(Record::Station(station.clone()))),
            Change::Remove(_) => None,
        });
        Ok(Decided { changes: decision.changes, wants: decision.wants, preview, ..Decided::default() })
    }

    fn evolve(&mut self, changes: &[Change]) {
        for change in changes {
            Self::evolve(self, change);
        }
    }

    fn stored(change: &Change) -> store::Write {
        match change {
            Change::Put(station) => store::Write::Put(Record::Station(station.clone())),
            Change::Remove(uid) => store::Write::Remove(RecordId { kind: RecordKind::Station, uid: *uid }),
        }
    }

    fn next_deadline(&self, _: &Tick) -> Option<Time> {
        None
    }

    fn wants(&self, _: &Inputs) -> Vec<Want> {
        Self::wants(self)
    }

    fn inputs(&self, sources: &Sources) -> Inputs {
        let mut keys = BTreeMap::<String, Vec<String>>::new();
        for (owner, key) in device_keys(sources) {
            keys.entry(owner).or_default().push(key);
        }
        Inputs {
            default_provider: sources
                .providers
                .first()
                .map(|provider| provider.name().to_owned())
                .unwrap_or_default(),
            device_keys: keys,
            builds_held: placement::disk_holds_builds(sources),
            // Told before each act: see `note_turns`.
            turn: Turn::Taken,
        }
    }

    fn builds_in_flight(&self) -> u32 {
        Self::builds_in_flight(self)
    }

    fn hold(&self, _: &Tick, inputs: &Inputs) -> Hold {
        match (self.would_build(), &inputs.builds_held, inputs.turn) {
            (true, Some(_), _) => Hold::Outside,
            (true, None, Turn::Taken) => Hold::Turn,
            (true, None, Turn::Free) | (false, _, _) => Hold::Nothing,
        }
    }

    fn note_turns(inputs: &mut Inputs, builds_allowed: u32) {
        inputs.turn = if builds_allowed > 0 { Turn::Free } else { Turn::Taken };
    }

    fn note_status_in_flight(_: &mut Inputs, _: bool) {}

    /// Never: the next workstation of the namespace may be on its way to this very actor.
    fn is_over(&self) -> bool {
        false
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::NotFound => Self::NotFound,
            Denied::Invalid(error) => invalid(error),
        }
    }
}

//! The catalog behind the shell of an owner.

use super::core::{Core, Decided, Hold, Reading, Sources};
use super::doors::{Refusal, Write};
use super::reading::{Judged, Judgement, Present, invalid, judge, shown, typed};
use crate::catalog::{Catalog, Change, Command, Denied, Item, ItemKey, ItemKind};
use crate::machine::{Fact, Want};
use crate::object::{Kind, Tick, Time};
use crate::store::{self, OwnerId, Record, RecordId, RecordKind};
use crate::view::Key;

impl Core for Catalog {
    type Command = Command;
    type Change = Change;
    type Inputs = ();

    fn load(_: &OwnerId, records: Vec<Record>) -> Self {
        let mut catalog = Self::default();
        records.into_iter().filter_map(item).for_each(|item| Self::evolve(&mut catalog, &Change::Put(item)));
        catalog
    }

    fn read(&self, write: &Write, tick: &Tick, sources: &Sources) -> Result<Reading<Command>, Refusal> {
        let kind = item_kind(write.kind).ok_or(Refusal::NotFound)?;
        let item_key = ItemKey::new(kind, write.verb.name());
        let old = self.get(&item_key).map(|item| Present {
            uid: item.metadata().uid.unwrap_or_default(),
            value: shown(record(item)).1,
        });
        let Judgement { judged, warnings, expected_version } = judge(write, old.as_ref(), tick)?;
        let creates = matches!(judged, Judged::Create(_));
        let command = match judged {
            Judged::Create(value) => Command::Create { item: item_of(kind, value)?, by: write.by.clone() },
            Judged::Update(value) => Command::Update { item: item_of(kind, value)? },
            Judged::Delete => {
                let in_use =
                    (kind == ItemKind::Namespace).then(|| who_uses(&item_key.name, sources)).flatten();
                Command::Delete { key: item_key, in_use }
            }
        };
        let name = match &command {
            Command::Create { item, .. } | Command::Update { item } => item.metadata().name.clone(),
            Command::Delete { key, .. } => key.name.clone(),
            Command::Pass => String::new(),
        };
        let key = Key::new(write.kind, None, &name);
        Ok(Reading { command, key, creates, expected_version, warnings })
    }

    fn heard(_: Fact) -> Command {
        Command::Pass
    }

    fn pass() -> Command {
        Command::Pass
    }

    fn decide(&self, command: Command, tick: &Tick, (): &()) -> Result<Decided<Change>, Refusal> {
        let changes = Self::decide(self, command, tick)?;
        let preview = changes.iter().find_map(|change| match change {
            Change::Put(item) => Some(shown(record(item))),
            Change::Remove { .. } => None,
        });
        // Pools and fleets read what stands here.
        Ok(Decided { tells_owners: !changes.is_empty(), changes, preview, ..Decided::default() })
    }

    fn evolve(&mut self, changes: &[Change]) {
        for change in changes {
            Self::evolve(self, change);
        }
    }

    fn stored(change: &Change) -> store::Write {
        match change {
            Change::Put(item) => store::Write::Put(record(item)),
            Change::Remove { kind, uid, .. } => {
                store::Write::Remove(RecordId { kind: record_kind(*kind), uid: *uid })
            }
        }
    }

    fn next_deadline(&self, _: &Tick) -> Option<Time> {
        None
    }

    fn wants(&self, (): &()) -> Vec<Want> {
        Vec::new()
    }

    fn inputs(&self, _: &Sources) {}

    fn builds_in_flight(&self) -> u32 {
        0
    }

    fn hold(&self, _: &Tick, (): &()) -> Hold {
        Hold::Nothing
    }

    fn note_turns((): &mut (), _: u32) {}

    fn note_status_in_flight((): &mut (), _: bool) {}

    fn is_over(&self) -> bool {
        false
    }
}

/// The namespace is in use while something lives in it.
fn who_uses(namespace: &str, sources: &Sources) -> Option<String> {
    sources.registry.kinds().iter().filter(|kind| kind.namespaced).find_map(|kind| {
        let listing = sources.view.list(kind.group, kind.plural, Some(namespace));
        let first = listing.items.first()?;
        Some(format!("{}/{} lives in it; delete what it holds first", kind.singular, first.key.name))
    })
}

fn item_kind(kind: &Kind) -> Option<ItemKind> {
    match kind.kind {
        "Namespace" => Some(ItemKind::Namespace),
        "User" => Some(ItemKind::User),
        "Device" => Some(ItemKind::Device),
        _ => None,
    }
}

const fn record_kind(kind: ItemKind) -> RecordKind {
    match kind {
        ItemKind::Namespace => RecordKind::Namespace,
        ItemKind::User => RecordKind::User,
        ItemKind::Device => RecordKind::Device,
    }
}

fn record(item: &Item) -> Record {
    match item.clone() {
        Item::Namespace(namespace) => Record::Namespace(namespace),
        Item::User(user) => Record::User(user),
        Item::Device(device) => Record::Device(device),
    }
}

fn item(record: Record) -> Option<Item> {
    match record {
        Record::Namespace(namespace) => Some(Item::Namespace(namespace)),
        Record::User(user) => Some(Item::User(user)),
        Record::Device(device) => Some(Item::Device(device)),
        // Not the catalog's: the store gives each owner its own alone.
        Record::Pool(_)
        | Record::Lease(_)
        | Record::Member(_)
        | Record::Event(_)
        | Record::Station(_)
        | Record::Usage(_) => None,
    }
}

fn item_of(kind: ItemKind, value: serde_json::Value) -> Result<Item, Refusal> {
    Ok(match kind {
        ItemKind::Namespace => Item::Namespace(typed(value)?),
        ItemKind::User => Item::User(typed(value)?),
        ItemKind::Device => Item::Device(typed(value)?),
    })
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::NotFound => Self::NotFound,
            Denied::Invalid(error) => invalid(error),
            Denied::AlwaysExists(_) | Denied::InUse { .. } | Denied::Forbidden(_) => {
                Self::Forbidden(denied.to_string())
            }
        }
    }
}

/// The keys of every device, by the user they belong to.
#[must_use]
pub fn device_keys(sources: &Sources) -> Vec<(String, String)> {
    let devices = sources.view.list(crate::object::CORE_GROUP, "devices", None);
    let text = |value: &serde_json::Value, pointer| Some(value.pointer(pointer)?.as_str()?.to_owned());
    let owned = |device: &crate::view::Resource| {
        Some((text(&device.value, "/spec/owner")?, text(&device.value, "/spec/publicKey")?))
    };
    devices.items.iter().filter_map(|device| owned(device)).collect()
}

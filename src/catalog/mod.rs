//! Pure: what everybody shares (namespaces, people, devices), and what may become of it.
//!
//! The smallest owner: each object stands for itself, and no machine follows from any of it. What
//! pools need of it (an owner's device keys, a namespace's quota) they read from the view.

mod item;

pub use item::{Item, ItemKey, ItemKind};

use std::collections::BTreeMap;

use ulid::Ulid;

use crate::object::{
    Device, FieldError, FieldReason, Metadata, Namespace, NamespaceSpec, Subject, SubjectKind, Tick, User,
    UserSpec,
};

/// The namespace, and the user, that always exist.
pub const LOCAL: &str = "local";

/// Everything shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    items: BTreeMap<ItemKey, Item>,
}

/// What the catalog is asked.
#[derive(Clone, Debug)]
pub enum Command {
    /// What always exists and does not yet, one act at a time.
    Pass,
    Create {
        item: Item,
        by: Subject,
    },
    /// The whole object after a change that has been judged by Kubernetes' rules.
    Update {
        item: Item,
    },
    Delete {
        key: ItemKey,
        in_use: Option<String>,
    },
}

/// What is stored, and what moves memory.
#[expect(clippy::large_enum_variant, reason = "removals are rare, and changes short-lived")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Put(Item),
    Remove { kind: ItemKind, uid: Ulid, key: ItemKey },
}

/// Why the catalog says no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("not found")]
    NotFound,
    #[error("{} always exists and cannot be deleted", .0)]
    AlwaysExists(ItemKey),
    #[error("{what} is still in use: {by}")]
    InUse { what: ItemKey, by: String },
    #[error("{0}")]
    Invalid(FieldError),
    #[error("{0}")]
    Forbidden(String),
}

impl Catalog {
    /// The item at `key`.
    #[must_use]
    pub fn get(&self, key: &ItemKey) -> Option<&Item> {
        self.items.get(key)
    }

    /// What follows from `command`.
    ///
    /// # Errors
    /// When it may not be.
    pub fn decide(&self, command: Command, tick: &Tick) -> Result<Vec<Change>, Denied> {
        match command {
            Command::Pass => Ok(self.missing(tick).map(Change::Put).into_iter().collect()),
            Command::Create { item, by } => self.create(item, &by),
            Command::Update { item } => self.update(item),
            Command::Delete { key, in_use } => self.delete(key, in_use, tick),
        }
    }

    /// Moves memory.
    pub fn evolve(&mut self, change: &Change) {
        match change {
            Change::Put(item) => {
                self.items.insert(item.key(), item.clone());
            }
            Change::Remove { key, .. } => {
                self.items.remove(key);
            }
        }
    }

    fn missing(&self, tick: &Tick) -> Option<Item> {
        let metadata = || Metadata {
            name: LOCAL.into(),
            uid: Some(Ulid::from_parts(tick.wall.millis().try_into().unwrap_or(0), tick.entropy)),
            generation: 1,
            creation_timestamp: Some(tick.wall.whole_seconds()),
            ..Metadata::default()
        };
        let user = || Item::User(User { metadata: metadata(), spec: UserSpec::default() });
        let namespace =
            || Item::Namespace(Namespace { metadata: metadata(), spec: NamespaceSpec::default() });
        if !self.items.contains_key(&ItemKey::new(ItemKind::User, LOCAL)) {
            return Some(user());
        }
        (!self.items.contains_key(&ItemKey::new(ItemKind::Namespace, LOCAL))).then(namespace)
    }

    fn create(&self, mut item: Item, by: &Subject) -> Result<Vec<Change>, Denied> {
        if let Item::Device(device) = &mut item {
            if device.spec.owner.is_empty() && by.kind == SubjectKind::User {
                device.spec.owner.clone_from(&by.name);
            }
            self.check_device(device)?;
        }
        Ok(vec![Change::Put(item)])
    }

    fn update(&self, item: Item) -> Result<Vec<Change>, Denied> {
        let old = self.items.get(&item.key()).ok_or(Denied::NotFound)?;
        if let Item::Device(device) = &item {
            self.check_device(device)?;
        }
        if *old == item {
            return Ok(Vec::new());
        }
        let metadata = item.metadata();
        if metadata.deletion_timestamp.is_some() && metadata.finalizers.is_empty() {
            return Ok(vec![remove(&item)]);
        }
        Ok(vec![Change::Put(item)])
    }

    fn check_device(&self, device: &Device) -> Result<(), Denied> {
        let owner = ItemKey::new(ItemKind::User, &device.spec.owner);
        if self.items.contains_key(&owner) {
            return Ok(());
        }
        let message = format!("Not found: there is no user {:?}", device.spec.owner);
        Err(Denied::Invalid(FieldError::new("spec.owner", FieldReason::NotFound, message)))
    }

    fn delete(&self, key: ItemKey, in_use: Option<String>, tick: &Tick) -> Result<Vec<Change>, Denied> {
        let item = self.items.get(&key).ok_or(Denied::NotFound)?;
        if key.name == LOCAL && key.kind != ItemKind::Device {
            return Err(Denied::AlwaysExists(key));
        }
        if let Some(by) = in_use {
            return Err(Denied::InUse { what: key, by });
        }
        if item.metadata().finalizers.is_empty() {
            return Ok(vec![remove(item)]);
        }
        let mut waiting = item.clone();
        let metadata = waiting.metadata_mut();
        if metadata.deletion_timestamp.is_some() {
            return Ok(Vec::new());
        }
        metadata.deletion_timestamp = Some(tick.wall.whole_seconds());
        metadata.deletion_grace_period_seconds = Some(0);
        metadata.generation += 1;
        Ok(vec![Change::Put(waiting)])
    }
}

fn remove(item: &Item) -> Change {
    Change::Remove { kind: item.kind(), uid: item.metadata().uid.unwrap_or_default(), key: item.key() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{DeviceSpec, Time};

    const TICK: Tick = Tick {
        wall: Time::from_millis(1_700_000_000_000),
        steady: Time::from_millis(1_700_000_000_000),
        entropy: 7,
    };

    fn settled() -> Catalog {
        let mut catalog = Catalog::default();
        while let [change] = catalog.decide(Command::Pass, &TICK).expect("a pass is never denied").as_slice()
        {
            catalog.evolve(change);
        }
        catalog
    }

    fn device(name: &str, owner: &str) -> Item {
        let metadata =
            Metadata { name: name.into(), uid: Some(Ulid::from_bytes([9; 16])), ..Metadata::default() };
        Item::Device(Device { metadata, spec: DeviceSpec { owner: owner.into(), public_key: String::new() } })
    }

    #[test]
    fn the_local_user_and_namespace_always_exist() {
        let catalog = settled();
        for kind in [ItemKind::User, ItemKind::Namespace] {
            let key = ItemKey::new(kind, LOCAL);
            assert!(catalog.get(&key).is_some());
            let refused = catalog.decide(Command::Delete { key: key.clone(), in_use: None }, &TICK);
            assert_eq!(refused, Err(Denied::AlwaysExists(key)));
        }
    }

    #[test]
    fn a_device_belongs_to_who_registers_it() {
        let create = Command::Create { item: device("laptop", ""), by: Subject::user(LOCAL) };
        let changes = settled().decide(create, &TICK).expect("created");
        let [Change::Put(Item::Device(device))] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!(device.spec.owner, LOCAL);
    }

    #[test]
    fn a_device_of_nobody_is_refused_with_its_field() {
        let create = Command::Create { item: device("laptop", "nobody"), by: Subject::user(LOCAL) };
        let Err(Denied::Invalid(error)) = settled().decide(create, &TICK) else { panic!("not refused") };
        assert_eq!(error.path, "spec.owner");
    }

    #[test]
    fn what_a_finalizer_keeps_goes_when_it_is_removed() {
        let mut catalog = settled();
        let mut item = device("laptop", LOCAL);
        item.metadata_mut().finalizers = vec!["example.com/keep".into()];
        catalog.evolve(&Change::Put(item));
        let key = ItemKey::new(ItemKind::Device, "laptop");
        let changes =
            catalog.decide(Command::Delete { key: key.clone(), in_use: None }, &TICK).expect("deleted");
        let [Change::Put(waiting)] = changes.as_slice() else { panic!("{changes:?}") };
        assert!(waiting.metadata().deletion_timestamp.is_some());
        catalog.evolve(&changes[0]);
        let mut freed = catalog.get(&key).expect("kept").clone();
        freed.metadata_mut().finalizers.clear();
        let changes = catalog.decide(Command::Update { item: freed }, &TICK).expect("updated");
        assert!(matches!(changes.as_slice(), [Change::Remove { .. }]));
    }
}

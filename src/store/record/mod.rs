//! Frozen types of what is on disk, one file a kind, and their conversions.
//!
//! A record is a live type; what is written is its newest frozen type (`NamespaceV1`, …), which
//! never changes again: a new field is a new version with its own type, golden file and conversion.
//! postcard goes by position, so frozen types have no defaults, no skipped fields and no renamed
//! ones; ids are `u128`, times milliseconds, free-form JSON is text.
//!
//! To add a kind: its file, its line in the module list, and one line in each match below. The compiler names
//! them all.

#[macro_use]
mod common;
mod device;
mod event;
mod lease;
mod member;
mod namespace;
mod pool;
mod pool_change;
mod user;

#[cfg(test)]
mod golden;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use ulid::Ulid;

use crate::object::{Device, Metadata, Namespace, User, VERSION};
use crate::pool::{EventRow, Lease, Member, PoolRow};
use crate::view::{Key, Resource};

pub use pool::BuriedPool;
pub use pool_change::writes_of;

/// One stored object, as its owner holds it.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    Namespace(Namespace),
    User(User),
    Device(Device),
    Pool(Box<PoolRow>),
    /// A pool whose object is gone, kept for the Failed leases that outlive it.
    BuriedPool(Box<BuriedPool>),
    Lease(Box<Lease>),
    Member(Box<Member>),
    Event(Box<EventRow>),
}

/// What sort of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    Namespace,
    User,
    Device,
    Pool,
    BuriedPool,
    Lease,
    Member,
    Event,
}

/// One record of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId {
    pub kind: RecordKind,
    pub uid: Ulid,
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.kind, self.uid)
    }
}

/// Why a payload is no record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("it is of version {found} of its type and this daemon knows 1 to {newest}")]
    UnknownType { found: u8, newest: u8 },
    #[error("its content does not fit its type")]
    Malformed,
}

/// What each kind's file provides.
trait Stored: Sized {
    /// Where the API shows it.
    const SHOWN: Shown;
    /// The newest frozen type.
    const NEWEST_VERSION: u8;
    /// As the newest frozen type.
    fn encode(&self) -> Vec<u8>;
    /// From a frozen type of any version.
    fn decode(type_version: u8, payload: &[u8]) -> Result<Self, Unreadable>;
    fn uid(&self) -> Ulid;
    /// The object that the API shows.
    fn present(&self, version: u64) -> Resource;
}

/// Where the API shows a kind.
struct Shown {
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Namespace,
        Self::User,
        Self::Device,
        Self::Pool,
        Self::BuriedPool,
        Self::Lease,
        Self::Member,
        Self::Event,
    ];

    /// Its byte in keys. Never reused, never changed.
    pub(super) const fn tag(self) -> u8 {
        match self {
            Self::Namespace => 1,
            Self::User => 2,
            Self::Device => 3,
            Self::Pool => 4,
            Self::BuriedPool => 5,
            Self::Lease => 6,
            Self::Member => 7,
            Self::Event => 8,
        }
    }

    pub(super) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tag() == tag)
    }

    /// The version its records are written in.
    pub(super) const fn newest_version(self) -> u8 {
        match self {
            Self::Namespace => Namespace::NEWEST_VERSION,
            Self::User => User::NEWEST_VERSION,
            Self::Device => Device::NEWEST_VERSION,
            Self::Pool => PoolRow::NEWEST_VERSION,
            Self::BuriedPool => BuriedPool::NEWEST_VERSION,
            Self::Lease => Lease::NEWEST_VERSION,
            Self::Member => Member::NEWEST_VERSION,
            Self::Event => EventRow::NEWEST_VERSION,
        }
    }

    /// Reads a payload of any version.
    pub(super) fn decode(self, type_version: u8, payload: &[u8]) -> Result<Record, Unreadable> {
        Ok(match self {
            Self::Namespace => Record::Namespace(Namespace::decode(type_version, payload)?),
            Self::User => Record::User(User::decode(type_version, payload)?),
            Self::Device => Record::Device(Device::decode(type_version, payload)?),
            Self::Pool => Record::Pool(Box::new(PoolRow::decode(type_version, payload)?)),
            Self::BuriedPool => Record::BuriedPool(Box::new(BuriedPool::decode(type_version, payload)?)),
            Self::Lease => Record::Lease(Box::new(Lease::decode(type_version, payload)?)),
            Self::Member => Record::Member(Box::new(Member::decode(type_version, payload)?)),
            Self::Event => Record::Event(Box::new(EventRow::decode(type_version, payload)?)),
        })
    }
}

impl Record {
    /// Which record it is.
    #[must_use]
    pub fn id(&self) -> RecordId {
        RecordId { kind: self.kind(), uid: self.uid() }
    }

    /// What sort it is.
    #[must_use]
    pub const fn kind(&self) -> RecordKind {
        match self {
            Self::Namespace(_) => RecordKind::Namespace,
            Self::User(_) => RecordKind::User,
            Self::Device(_) => RecordKind::Device,
            Self::Pool(_) => RecordKind::Pool,
            Self::BuriedPool(_) => RecordKind::BuriedPool,
            Self::Lease(_) => RecordKind::Lease,
            Self::Member(_) => RecordKind::Member,
            Self::Event(_) => RecordKind::Event,
        }
    }

    /// The object that the API shows, as of `version`.
    #[must_use]
    pub fn present(&self, version: u64) -> Resource {
        match self {
            Self::Namespace(namespace) => namespace.present(version),
            Self::User(user) => user.present(version),
            Self::Device(device) => device.present(version),
            Self::Pool(pool) => Stored::present(&**pool, version),
            Self::BuriedPool(buried) => Stored::present(&**buried, version),
            Self::Lease(lease) => Stored::present(&**lease, version),
            Self::Member(member) => Stored::present(&**member, version),
            Self::Event(event) => Stored::present(&**event, version),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Namespace(namespace) => namespace.encode(),
            Self::User(user) => user.encode(),
            Self::Device(device) => device.encode(),
            Self::Pool(pool) => pool.encode(),
            Self::BuriedPool(buried) => buried.encode(),
            Self::Lease(lease) => lease.encode(),
            Self::Member(member) => member.encode(),
            Self::Event(event) => event.encode(),
        }
    }

    fn uid(&self) -> Ulid {
        match self {
            Self::Namespace(namespace) => namespace.uid(),
            Self::User(user) => user.uid(),
            Self::Device(device) => device.uid(),
            Self::Pool(pool) => Stored::uid(&**pool),
            Self::BuriedPool(buried) => Stored::uid(&**buried),
            Self::Lease(lease) => Stored::uid(&**lease),
            Self::Member(member) => Stored::uid(&**member),
            Self::Event(event) => Stored::uid(&**event),
        }
    }
}

/// The uid in an object's metadata.
fn uid_of(metadata: &Metadata) -> Ulid {
    metadata.uid.expect("admission gives every object its uid")
}

/// An object as the API shows it: with `apiVersion`, `kind` and `metadata.resourceVersion`.
fn shown(shown: &Shown, metadata: &Metadata, object: &impl Serialize, version: u64) -> Resource {
    let object = serde_json::to_value(object).expect("objects have text keys and finite numbers");
    let mut value = Map::new();
    value.insert("apiVersion".into(), format!("{}/{VERSION}", shown.group).into());
    value.insert("kind".into(), shown.kind.into());
    if let Value::Object(fields) = object {
        value.extend(fields);
    }
    let key = Key {
        group: shown.group,
        plural: shown.plural,
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone(),
    };
    Resource { key, uid: uid_of(metadata), version: 0, value: Value::Object(value) }.with_version(version)
}

/// postcard of a frozen type.
fn to_bytes(frozen: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(frozen).expect("frozen types have only what postcard can write")
}

/// A frozen type from postcard, every byte used.
fn from_bytes<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Unreadable> {
    match postcard::take_from_bytes(payload) {
        Ok((frozen, [])) => Ok(frozen),
        Ok(_) | Err(_) => Err(Unreadable::Malformed),
    }
}

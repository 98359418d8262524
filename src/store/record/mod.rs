//! Frozen types of what is on disk, one file a kind, and their conversions.
//!
//! A record is a live type; what is written is its newest frozen type (`NamespaceV1`, …), which
//! never changes again: a new field is a new version with its own type, golden file and conversion.
//! postcard goes by position, so frozen types have no defaults, no skipped fields and no renamed
//! ones; ids are `u128`, times milliseconds, free-form JSON is text.
//!
//! To add a kind: its file, its line in the module list, and one line in each match below. The compiler names
//! them all.

mod common;
mod declared;
mod device;
mod event;
#[cfg(test)]
mod golden;
mod lease;
mod member;
mod namespace;
mod pool;
#[cfg(test)]
mod samples;
mod station;
mod usage;
mod user;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use ulid::Ulid;

use crate::fleet::Station;
use crate::object::{Device, Metadata, Namespace, UsageRow, User, VERSION};
use crate::pool::{EventRow, Lease, Member, PoolRow};
use crate::view::{Key, Resource};

/// One stored object, as its owner holds it.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "records pass through, a few at a time")]
pub enum Record {
    Namespace(Namespace),
    User(User),
    Device(Device),
    Pool(PoolRow),
    Lease(Lease),
    Member(Member),
    Event(EventRow),
    /// A standalone workstation.
    Station(Box<Station>),
    /// An hour of what a pool counts; no object of the API.
    Usage(Arc<UsageRow>),
}

/// What sort of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    Namespace,
    User,
    Device,
    Pool,
    Lease,
    Member,
    Event,
    Station,
    Usage,
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
    /// The object that the API shows; none while there is nothing to show.
    fn present(&self, version: u64) -> Option<Resource>;
}

/// Where the API shows a kind.
struct Shown {
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Namespace,
        Self::User,
        Self::Device,
        Self::Pool,
        Self::Lease,
        Self::Member,
        Self::Event,
        Self::Station,
        Self::Usage,
    ];

    /// Its byte in keys. Never reused, never changed.
    pub(super) const fn tag(self) -> u8 {
        match self {
            Self::Namespace => 1,
            Self::User => 2,
            Self::Device => 3,
            Self::Pool => 4,
            Self::Lease => 5,
            Self::Member => 6,
            Self::Event => 7,
            Self::Station => 8,
            Self::Usage => 9,
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
            Self::Lease => Lease::NEWEST_VERSION,
            Self::Member => Member::NEWEST_VERSION,
            Self::Event => EventRow::NEWEST_VERSION,
            Self::Station => Station::NEWEST_VERSION,
            Self::Usage => usage::NEWEST_VERSION,
        }
    }

    /// Reads a payload of any version.
    pub(super) fn decode(self, type_version: u8, payload: &[u8]) -> Result<Record, Unreadable> {
        Ok(match self {
            Self::Namespace => Record::Namespace(Namespace::decode(type_version, payload)?),
            Self::User => Record::User(User::decode(type_version, payload)?),
            Self::Device => Record::Device(Device::decode(type_version, payload)?),
            Self::Pool => Record::Pool(PoolRow::decode(type_version, payload)?),
            Self::Lease => Record::Lease(Lease::decode(type_version, payload)?),
            Self::Member => Record::Member(Member::decode(type_version, payload)?),
            Self::Event => Record::Event(EventRow::decode(type_version, payload)?),
            Self::Station => Record::Station(Box::new(Station::decode(type_version, payload)?)),
            Self::Usage => Record::Usage(Arc::new(usage::decode(type_version, payload)?)),
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
            Self::Lease(_) => RecordKind::Lease,
            Self::Member(_) => RecordKind::Member,
            Self::Event(_) => RecordKind::Event,
            Self::Station(_) => RecordKind::Station,
            Self::Usage(_) => RecordKind::Usage,
        }
    }

    /// The object that the API shows, as of `version`. None for a pool that is gone but for the
    /// Failed leases that outlive it (rule D4): its name is free. None for usage: `Applied::Usage`.
    #[must_use]
    pub fn present(&self, version: u64) -> Option<Resource> {
        match self {
            Self::Namespace(namespace) => namespace.present(version),
            Self::User(user) => user.present(version),
            Self::Device(device) => device.present(version),
            Self::Pool(pool) => Stored::present(pool, version),
            Self::Lease(lease) => Stored::present(lease, version),
            Self::Member(member) => Stored::present(member, version),
            Self::Event(event) => Stored::present(event, version),
            Self::Station(station) => Stored::present(&**station, version),
            Self::Usage(_) => None,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Namespace(namespace) => namespace.encode(),
            Self::User(user) => user.encode(),
            Self::Device(device) => device.encode(),
            Self::Pool(pool) => Stored::encode(pool),
            Self::Lease(lease) => Stored::encode(lease),
            Self::Member(member) => Stored::encode(member),
            Self::Event(event) => Stored::encode(event),
            Self::Station(station) => Stored::encode(&**station),
            Self::Usage(row) => usage::encode(row),
        }
    }

    fn uid(&self) -> Ulid {
        match self {
            Self::Namespace(namespace) => namespace.uid(),
            Self::User(user) => user.uid(),
            Self::Device(device) => device.uid(),
            Self::Pool(pool) => Stored::uid(pool),
            Self::Lease(lease) => Stored::uid(lease),
            Self::Member(member) => Stored::uid(member),
            Self::Event(event) => Stored::uid(event),
            Self::Station(station) => Stored::uid(&**station),
            Self::Usage(row) => row.uid(),
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

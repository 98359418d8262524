//! What is stored about the whole: the format, whose machines are ours, and the head.
//!
//! The head is written in every batch. Beside the version counter it holds how many records there
//! are and the sum of their versions, so that a start notices records that sled lost or brought back.

use ulid::Ulid;

use super::envelope;
use crate::object::Time;

/// The layout of keys and envelopes. Types of records have versions of their own.
pub(super) const FORMAT: u32 = 1;

pub(super) const FORMAT_KEY: &[u8] = b"m/format";
pub(super) const INSTANCE_KEY: &[u8] = b"m/instance";
pub(super) const HEAD_KEY: &[u8] = b"m/head";
/// Where the steady clock stood at the newest batch. The first daemons did not write it.
pub(super) const STEADY_KEY: &[u8] = b"m/steady";

/// Of the payloads below.
const TYPE_VERSION: u8 = 1;

/// Where the store stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// The newest version ever given. Never repeated, even if its object is gone.
    pub version: u64,
    pub records: u64,
    /// Modulo 2^64.
    pub versions_sum: u64,
}

impl Head {
    /// A record of this version is there now.
    pub(super) const fn add(&mut self, version: u64) {
        self.records += 1;
        self.versions_sum = self.versions_sum.wrapping_add(version);
    }

    /// The record of this version is gone or replaced.
    pub(super) const fn subtract(&mut self, version: u64) {
        self.records -= 1;
        self.versions_sum = self.versions_sum.wrapping_sub(version);
    }
}

pub(super) fn seal_format(format: u32) -> Vec<u8> {
    envelope::seal(FORMAT_KEY, TYPE_VERSION, 0, &format.to_be_bytes())
}

pub(super) fn open_format(value: &[u8]) -> Result<u32, String> {
    let payload = payload(FORMAT_KEY, value)?;
    payload.try_into().map(u32::from_be_bytes).map_err(|_| "it has a wrong length".to_owned())
}

pub(super) fn seal_instance(instance: Ulid) -> Vec<u8> {
    envelope::seal(INSTANCE_KEY, TYPE_VERSION, 0, &instance.0.to_be_bytes())
}

pub(super) fn open_instance(value: &[u8]) -> Result<Ulid, String> {
    let payload = payload(INSTANCE_KEY, value)?;
    let bytes = payload.try_into().map_err(|_| "it has a wrong length".to_owned())?;
    Ok(Ulid(u128::from_be_bytes(bytes)))
}

pub(super) fn seal_head(head: &Head) -> Vec<u8> {
    let payload = [head.version, head.records, head.versions_sum].map(u64::to_be_bytes).concat();
    envelope::seal(HEAD_KEY, TYPE_VERSION, head.version, &payload)
}

pub(super) fn open_head(value: &[u8]) -> Result<Head, String> {
    let payload = payload(HEAD_KEY, value)?;
    let (words, rest) = payload.as_chunks::<8>();
    match (words, rest) {
        ([version, records, sum], []) => Ok(Head {
            version: u64::from_be_bytes(*version),
            records: u64::from_be_bytes(*records),
            versions_sum: u64::from_be_bytes(*sum),
        }),
        _ => Err("it has a wrong length".to_owned()),
    }
}

pub(super) fn seal_steady(steady: Time) -> Vec<u8> {
    envelope::seal(STEADY_KEY, TYPE_VERSION, 0, &steady.millis().to_be_bytes())
}

pub(super) fn open_steady(value: &[u8]) -> Result<Time, String> {
    let payload = payload(STEADY_KEY, value)?;
    let bytes = payload.try_into().map_err(|_| "it has a wrong length".to_owned())?;
    Ok(Time::from_millis(i64::from_be_bytes(bytes)))
}

fn payload<'a>(key: &[u8], value: &'a [u8]) -> Result<&'a [u8], String> {
    Ok(envelope::open(key, value).map_err(|damage| damage.to_string())?.payload)
}

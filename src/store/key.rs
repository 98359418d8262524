//! The layout of keys in the one tree. Numbers are big-endian, so that keys sort as they count.
//!
//! ```text
//! m <name>                      about the whole store
//! r <owner> <kind> <uid>        one record; an owner's records are the prefix  r <owner>
//!
//! <owner>   1                   the catalog
//!           2 <length> <name>   the fleet of a namespace
//!           3 <uid>             a pool
//! ```
//!
//! No owner's bytes begin another's: the first byte fixes the length, or the second does.

use ulid::Ulid;

use super::record::{RecordId, RecordKind};
use super::submission::OwnerId;

/// Before every record.
pub(super) const RECORDS: &[u8] = b"r";

const CATALOG: u8 = 1;
const FLEET: u8 = 2;
const POOL: u8 = 3;

/// What all keys of an owner begin with.
///
/// # Panics
/// When a namespace is longer than 255 bytes, which no valid name is.
pub(super) fn owner_prefix(owner: &OwnerId) -> Vec<u8> {
    let mut key = RECORDS.to_vec();
    match owner {
        OwnerId::Catalog => key.push(CATALOG),
        OwnerId::Fleet(namespace) => {
            key.push(FLEET);
            key.push(u8::try_from(namespace.len()).expect("a namespace has at most 253 characters"));
            key.extend_from_slice(namespace.as_bytes());
        }
        OwnerId::Pool(uid) => {
            key.push(POOL);
            key.extend_from_slice(&uid.0.to_be_bytes());
        }
    }
    key
}

/// The key of a record.
pub(super) fn record(owner: &OwnerId, id: RecordId) -> Vec<u8> {
    let mut key = owner_prefix(owner);
    key.push(id.kind.tag());
    key.extend_from_slice(&id.uid.0.to_be_bytes());
    key
}

/// Reads a record's key; `None` when it is none that this version writes.
pub(super) fn parse_record(key: &[u8]) -> Option<(OwnerId, RecordId)> {
    let (&tag, rest) = key.strip_prefix(RECORDS)?.split_first()?;
    let (owner, rest) = match tag {
        CATALOG => (OwnerId::Catalog, rest),
        FLEET => {
            let (&length, rest) = rest.split_first()?;
            let (name, rest) = rest.split_at_checked(usize::from(length))?;
            (OwnerId::Fleet(String::from_utf8(name.to_vec()).ok()?), rest)
        }
        POOL => {
            let (uid, rest) = rest.split_first_chunk::<16>()?;
            (OwnerId::Pool(Ulid(u128::from_be_bytes(*uid))), rest)
        }
        _ => return None,
    };
    let (&kind, rest) = rest.split_first()?;
    let uid: [u8; 16] = rest.try_into().ok()?;
    let id = RecordId { kind: RecordKind::from_tag(kind)?, uid: Ulid(u128::from_be_bytes(uid)) };
    Some((owner, id))
}

/// A key as a person may be told of it.
pub(super) fn describe(key: &[u8]) -> String {
    let bytes = key.escape_ascii();
    match parse_record(key) {
        Some((owner, id)) => format!("record {id} of the {owner} (key {bytes})"),
        None => format!("key {bytes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners() -> Vec<OwnerId> {
        vec![
            OwnerId::Catalog,
            OwnerId::Fleet("a".into()),
            OwnerId::Fleet("ab".into()),
            OwnerId::Fleet("b".repeat(253)),
            OwnerId::Pool(Ulid(0)),
            OwnerId::Pool(Ulid(u128::MAX)),
        ]
    }

    #[test]
    fn a_key_reads_back_as_the_owner_and_record_it_was_made_of() {
        for owner in owners() {
            for kind in RecordKind::ALL {
                let id = RecordId { kind, uid: Ulid(42) };
                assert_eq!(parse_record(&record(&owner, id)), Some((owner.clone(), id)));
            }
        }
    }

    #[test]
    fn no_owners_records_are_found_under_another_owners_prefix() {
        let id = RecordId { kind: RecordKind::User, uid: Ulid(7) };
        for one in owners() {
            for other in owners().into_iter().filter(|other| *other != one) {
                assert!(!record(&other, id).starts_with(&owner_prefix(&one)), "{other} lies under {one}");
            }
        }
    }

    #[test]
    fn a_key_that_is_cut_or_too_long_is_no_record() {
        let key = record(&OwnerId::Pool(Ulid(3)), RecordId { kind: RecordKind::Device, uid: Ulid(9) });
        for length in 0..key.len() {
            assert_eq!(parse_record(&key[..length]), None);
        }
        assert_eq!(parse_record(&[key.as_slice(), b"x"].concat()), None);
    }
}

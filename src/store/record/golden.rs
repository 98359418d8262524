//! The bytes of every version of every record, pinned by the files in `tests/golden/record/`.
//!
//! Each file has one sample a line, in hexadecimal (`samples.rs`). A file is never edited: its daemons are out there. When a type gets a new version, the test writes the
//! new version's file and fails once; look at it and commit it. What the samples of an older
//! version read as is then pinned in `read_as`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::samples::samples;
use super::{Record, RecordKind};

#[test]
fn records_are_written_in_the_bytes_that_are_pinned() {
    for kind in RecordKind::ALL {
        let lines: Vec<String> = samples(kind).iter().map(|record| hex(&record.encode())).collect();
        assert_eq!(pinned(kind, kind.newest_version(), &lines), lines, "{kind:?} is written in other bytes");
    }
}

#[test]
fn every_version_ever_written_is_still_read() {
    for kind in RecordKind::ALL {
        for version in 1..=kind.newest_version() {
            let lines = pinned(kind, version, &[]);
            let records: Vec<Record> = lines
                .iter()
                .map(|line| kind.decode(version, &bytes(line)).expect("a pinned record is read"))
                .collect();
            assert_eq!(records, read_as(kind, version), "{kind:?} version {version}");
        }
    }
}

#[test]
fn a_record_with_a_byte_too_few_or_too_many_is_not_read() {
    for kind in RecordKind::ALL {
        for record in samples(kind) {
            let payload = record.encode();
            let longer = [payload.as_slice(), b"\0"].concat();
            for wrong in [&payload[..payload.len() - 1], &longer] {
                assert!(kind.decode(kind.newest_version(), wrong).is_err(), "{kind:?}");
            }
        }
    }
}

#[test]
fn tags_of_kinds_are_all_different() {
    for one in RecordKind::ALL {
        let same: Vec<_> = RecordKind::ALL.into_iter().filter(|other| other.tag() == one.tag()).collect();
        assert_eq!(same, [one]);
        assert_eq!(RecordKind::from_tag(one.tag()), Some(one));
    }
}

/// What the pinned bytes of `version` read as today.
fn read_as(kind: RecordKind, version: u8) -> Vec<Record> {
    match (kind, version) {
        (RecordKind::Lease, 1) => samples(kind).into_iter().map(lease_of_version_1).collect(),
        (RecordKind::Member, 1) => samples(kind).into_iter().map(member_of_version_1).collect(),
        (kind, version) if version == kind.newest_version() => samples(kind),
        (kind, version) => panic!("say what version {version} of {kind:?} reads as"),
    }
}

/// Version 1 did not know how a lease came to its member, nor the steady clock.
fn lease_of_version_1(record: Record) -> Record {
    let Record::Lease(mut lease) = record else { panic!("a lease is a lease") };
    lease.start = None;
    lease.asked_at = lease.created();
    lease.waited_millis = lease.ready_at.map(|ready| ready.millis_since(lease.asked_at).max(0));
    lease.term_ends = lease.expires_at();
    Record::Lease(lease)
}

/// Version 1 did not know recycles.
fn member_of_version_1(record: Record) -> Record {
    let Record::Member(mut member) = record else { panic!("a member is a member") };
    member.born = member.created();
    member.recycling = None;
    member.recycle_nonce = None;
    Record::Member(member)
}

/// The lines of a version's file. Where there is none, the lines that are asked to be pinned are
/// written, and the test fails so that somebody looks.
fn pinned(kind: RecordKind, version: u8, new_lines: &[String]) -> Vec<String> {
    let name = format!("{kind:?}.v{version}.hex").to_lowercase();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/record").join(name);
    if !path.exists() && !new_lines.is_empty() {
        fs::write(&path, new_lines.join("\n") + "\n").expect("the file can be written");
        panic!("{} was not there and is written now: look at it and commit it", path.display());
    }
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes any text");
        text
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect()
}

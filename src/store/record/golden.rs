//! The bytes of every version of every record, pinned by the files in `tests/golden/record/`.
//!
//! Each file has one sample a line, in hexadecimal: one with every field set, one with as few as
//! can be. A file is never edited: its daemons are out there. When a type gets a new version, the test writes the
//! new version's file and fails once; look at it and commit it. What the samples of an older
//! version read as is then pinned in `read_as`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use ulid::Ulid;

use super::{Record, RecordKind};
use crate::object::{
    Device, DeviceSpec, Metadata, Namespace, NamespaceSpec, OwnerReference, Quota, Subject, SubjectKind,
    Time, User, UserSpec,
};

#[test]
fn records_are_written_in_the_bytes_that_are_pinned() {
    for kind in RecordKind::ALL.into_iter().filter(|kind| !samples(*kind).is_empty()) {
        let lines: Vec<String> = samples(kind).iter().map(|record| hex(&record.encode())).collect();
        assert_eq!(pinned(kind, kind.newest_version(), &lines), lines, "{kind:?} is written in other bytes");
    }
}

#[test]
fn every_version_ever_written_is_still_read() {
    for kind in RecordKind::ALL.into_iter().filter(|kind| !samples(*kind).is_empty()) {
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
        (RecordKind::Namespace | RecordKind::User | RecordKind::Device, 1) => samples(kind),
        (kind, version) => panic!("say what version {version} of {kind:?} reads as"),
    }
}

/// Every field set, and as few as can be.
fn samples(kind: RecordKind) -> Vec<Record> {
    match kind {
        RecordKind::Namespace => vec![
            Record::Namespace(Namespace {
                metadata: metadata(),
                spec: NamespaceSpec {
                    admins: vec![
                        Subject::user("ada"),
                        Subject {
                            kind: SubjectKind::ServiceAccount,
                            name: "ci".into(),
                            namespace: Some("local".into()),
                        },
                    ],
                    quota: Quota { workstations: Some(12) },
                },
            }),
            Record::Namespace(Namespace { metadata: bare(), spec: NamespaceSpec::default() }),
        ],
        RecordKind::User => vec![
            Record::User(User {
                metadata: metadata(),
                spec: UserSpec { display_name: "Ada".into(), disabled: true, local_user: Some("ada".into()) },
            }),
            Record::User(User { metadata: bare(), spec: UserSpec::default() }),
        ],
        RecordKind::Device => vec![
            Record::Device(Device {
                metadata: metadata(),
                spec: DeviceSpec { owner: "ada".into(), public_key: "ssh-ed25519 AAAA laptop".into() },
            }),
            Record::Device(Device { metadata: bare(), spec: DeviceSpec::default() }),
        ],
        RecordKind::Pool | RecordKind::Lease | RecordKind::Member | RecordKind::Event | RecordKind::Station => Vec::new(),
    }
}

fn metadata() -> Metadata {
    Metadata {
        name: "sample".into(),
        generate_name: Some("sam".into()),
        namespace: Some("local".into()),
        uid: Some(Ulid(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef)),
        resource_version: None,
        generation: 3,
        creation_timestamp: Some(Time::from_millis(1_790_000_000_000)),
        deletion_timestamp: Some(Time::from_millis(1_790_000_060_000)),
        deletion_grace_period_seconds: Some(0),
        labels: [("team".into(), "core".into())].into(),
        annotations: [("note".into(), "a text".into())].into(),
        finalizers: vec!["example.org/keep".into()],
        owner_references: vec![OwnerReference {
            api_version: "v1".into(),
            kind: "Thing".into(),
            name: "owner".into(),
            uid: "u".into(),
            controller: Some(true),
            block_owner_deletion: Some(false),
        }],
    }
}

fn bare() -> Metadata {
    Metadata { name: "bare".into(), uid: Some(Ulid(1)), ..Metadata::default() }
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

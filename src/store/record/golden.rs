//! What every version of a pool's records looks like on disk, pinned: a file per frozen type under
//! `tests/golden/record`, which must be read for as long as there are stores that hold it.
//!
//! A file is made once, by running these tests with `RL_WRITE_GOLDEN=1`, and never changed after.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use ulid::Ulid;

use super::{BuriedPool, Record};
use crate::machine::AgentInfo;
use crate::object::{
    EventType, FailedReason, LastFailure, LeasePhase, LeaseState, MemberState, Metadata, NotRecycled,
    ObjectReference, Outcome, RELEASE_FINALIZER, Release, SshAccess, Subject, Time,
};
use crate::pool::*;

fn check(name: &str, record: &Record) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/record").join(name);
    if std::env::var_os("RL_WRITE_GOLDEN").is_some() && !path.exists() {
        let mut hex = String::new();
        for byte in record.encode() {
            write!(hex, "{byte:02x}").expect("a String takes all text");
        }
        std::fs::write(&path, &hex).expect("the golden file is written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file is there");
    let bytes: Vec<u8> = (0..golden.trim().len() / 2)
        .map(|at| u8::from_str_radix(&golden[2 * at..2 * at + 2], 16).expect("hex"))
        .collect();
    let read = record.kind().decode(1, &bytes).expect("a record");
    assert_eq!(read, *record, "{name}: the frozen type has changed; a change is a new version");
    assert_eq!(
        record.kind().decode(1, &record.encode()).as_ref(),
        Ok(record),
        "what is written now reads back"
    );
    assert!(record.kind().decode(1, &bytes[..bytes.len() - 1]).is_err(), "a cut record is refused");
    assert!(record.kind().decode(2, &bytes).is_err(), "a newer version is refused");
}

fn metadata(name: &str) -> Metadata {
    Metadata {
        name: name.into(),
        namespace: Some("dev".into()),
        uid: Some(Ulid(7)),
        generation: 2,
        creation_timestamp: Some(Time::from_millis(1_790_000_000_000)),
        finalizers: vec![RELEASE_FINALIZER.into()],
        ..Metadata::default()
    }
}

fn time(number: i64) -> Time {
    Time::from_millis(1_790_000_000_000 + number)
}

fn pool() -> PoolRow {
    let object = json!({"metadata": metadata("agents"), "spec": {
        "template": {"spec": {"providerConfig": {"memory": 4}, "environment": {"A": "1"}}},
        "size": {"max": 6}, "warm": {"running": 1, "stopped": 1}, "maxAge": "7d", "recycle": {},
    }});
    let object = serde_json::from_value(object).expect("a pool");
    let mut row = Pool::create(object, &Subject::user("owner"));
    row.ever_ready = true;
    row.health = Health {
        consecutive_failures: 3,
        back_off: Some(BackOff { began: time(1), until: time(60_001) }),
        last_failure: Some(LastFailure {
            member: "agents-00000001".into(),
            reason: "Broken".into(),
            message: "it broke".into(),
            at: time(1),
        }),
    };
    row.status.capacity.max = 6;
    row
}

#[test]
fn a_pool_is_read_as_it_was_written() {
    check("pool.v1.hex", &Record::Pool(Box::new(pool())));
}

#[test]
fn a_buried_pool_is_read_as_it_was_written_and_shown_under_no_name_of_the_api() {
    let record = Record::BuriedPool(Box::new(BuriedPool(pool())));
    check("buried_pool.v1.hex", &record);
    let key = record.present(1).key;
    assert_eq!((key.group, key.plural, key.name), ("", "buriedpools", Ulid(7).to_string()));
}

fn lease() -> Lease {
    let spec = json!({"workstationPoolRef": {"name": "agents"}, "state": "Recycle",
        "expiresAt": time(9), "authorizedKeys": ["ssh-ed25519 KEY"]});
    Lease {
        metadata: metadata("my-build"),
        spec: serde_json::from_value(spec).expect("a spec"),
        pool_uid: Ulid(8),
        holder: Subject::user("holder"),
        phase: LeasePhase::Releasing,
        observed_generation: 2,
        member: Some(Bond { uid: Ulid(9), name: "agents-00000001".into() }),
        waits_for: Some(WaitsFor::BackOff { until: time(1), failures: 3 }),
        message: "a message".into(),
        bound_at: Some(time(2)),
        ready_at: Some(time(3)),
        ended_at: Some(time(4)),
        ssh: Some(SshAccess {
            user: "dev".into(),
            command: "rl shell agents-00000001".into(),
            proxy: "rl proxy agents-00000001".into(),
            host_keys: vec!["ssh-ed25519 HOST".into()],
        }),
        release: Some(Release {
            requested: Some(LeaseState::Recycle),
            outcome: Some(Outcome::Deleted),
            reason: Some(NotRecycled::RecycleDisabled),
            message: "why".into(),
            at: Some(time(4)),
        }),
        reason: Some(FailedReason::MemberLost),
        term_ends_monotonic_ms: 86_400_000,
        bound_changed: time(5),
        ready_changed: time(6),
    }
}

#[test]
fn a_lease_is_read_as_it_was_written() {
    check("lease.v1.hex", &Record::Lease(Box::new(lease())));
}

#[test]
fn whatever_a_lease_waits_for_is_read_as_it_was_written() {
    let why = || "why".to_owned();
    let all = [
        WaitsFor::Release,
        WaitsFor::Probe { failures: 3 },
        WaitsFor::Room { why: why() },
        WaitsFor::Provider { why: why() },
        WaitsFor::TemplateFix { why: why() },
        WaitsFor::Turn,
        WaitsFor::Paused,
    ];
    for waits_for in all {
        let record = Record::Lease(Box::new(Lease { waits_for: Some(waits_for), ..lease() }));
        assert_eq!(record.kind().decode(1, &record.encode()), Ok(record));
    }
}

#[test]
fn a_member_is_read_as_it_was_written() {
    let spec = json!({"environment": {"A": "1"}, "providerConfig": {"memory": 4.5}});
    let member = Member {
        metadata: metadata("agents-00000001"),
        pool_uid: Ulid(8),
        spec: Arc::new(serde_json::from_value(spec).expect("a spec")),
        template_hash: "53aa778a9b137a0c".into(),
        provider: "sandbox".into(),
        state: MemberState::Leased,
        since: time(1),
        lease: Some(Bond { uid: Ulid(7), name: "my-build".into() }),
        reuses: 2,
        cordoned: true,
        last_used: time(2),
        destination: Destination::Stopped,
        aged: true,
        build_by: Some(time(3)),
        unplaceable: Some("no room".into()),
        revoke_by: Some(time(4)),
        down_since: Some(time(5)),
        wanted: Wanted { revision: 4, digest: 1, keys_revision: 3, keys_digest: 2, owner_digest: u128::MAX },
        observed: Observed {
            revision: 4,
            sighting: Sighting::Running,
            boot_id: Some(Ulid(11)),
            started_at: Some(time(6)),
            configured: true,
            keys_revision: 3,
            agent: AgentInfo {
                version: "0.1.0".into(),
                capabilities: vec!["keys".into()],
                login_user: "dev".into(),
                host_keys: vec!["ssh-ed25519 HOST".into()],
                image: "host-1".into(),
            },
            remarks: vec!["sudo: the image has no sudo".into()],
            sessions: 1,
            message: "a message".into(),
        },
    };
    check("member.v1.hex", &Record::Member(Box::new(member)));
}

#[test]
fn an_event_is_read_as_it_was_written() {
    let event = EventRow {
        uid: Ulid(12),
        pool_uid: Ulid(8),
        name: "agents.event".into(),
        namespace: "dev".into(),
        regarding: ObjectReference {
            api_version: "workstations.ringleader.dev/v1".into(),
            kind: "WorkstationPool".into(),
            namespace: "dev".into(),
            name: "agents".into(),
            uid: Ulid(8).to_string(),
        },
        kind: EventType::Warning,
        reason: "TemplateFailed".into(),
        cause: "Broken: it broke".into(),
        message: "agents-00000001 failed: Broken: it broke".into(),
        count: 3,
        first: time(1),
        last: time(2),
    };
    check("event.v1.hex", &Record::Event(Box::new(event)));
}

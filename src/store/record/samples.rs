//! One record of every shape: every field set, as few as can be, and every variant of every enum,
//! since postcard writes variants by their place.

use std::sync::Arc;

use serde_json::json;
use ulid::Ulid;

use super::{Record, RecordKind};
use crate::fleet::{Asked, Station};
use crate::machine::{AgentInfo, MachineSpec, Power, RecycleOrder, Running, Setup};
use crate::object::{
    Device, DeviceSpec, EventType, FailedReason, Identity, Image, LastFailure, LeasePhase, LeaseSpec,
    LeaseState, MemberState, Metadata, Namespace, NamespaceSpec, NotRecycled, ObjectReference, Outcome,
    OwnerReference, PoolRef, PoolSpec, PoolStatus, Quota, Release, Reset, SshAccess, Subject, SubjectKind,
    Time, User, UserSpec, WorkstationPhase, WorkstationSpec,
};
use crate::pool::{
    BackOff, Bond, Destination, EventRow, Health, Lease, Member, Observed, PoolRow, Recycling, Sighting,
    Start, WaitsFor, Wanted,
};

const UID: Ulid = Ulid(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);

/// The samples of a kind.
pub(super) fn samples(kind: RecordKind) -> Vec<Record> {
    match kind {
        RecordKind::Namespace => namespaces().map(Record::Namespace).to_vec(),
        RecordKind::User => users().map(Record::User).to_vec(),
        RecordKind::Device => devices().map(Record::Device).to_vec(),
        RecordKind::Pool => pools().map(Record::Pool).to_vec(),
        RecordKind::Lease => leases().into_iter().map(Record::Lease).collect(),
        RecordKind::Member => members().into_iter().map(Record::Member).collect(),
        RecordKind::Event => events().map(Record::Event).to_vec(),
        RecordKind::Station => {
            stations().into_iter().map(|station| Record::Station(Box::new(station))).collect()
        }
    }
}

fn namespaces() -> [Namespace; 2] {
    let spec = NamespaceSpec {
        admins: vec![Subject::user("ada"), service_account()],
        quota: Quota { workstations: Some(12) },
    };
    [Namespace { metadata: metadata(), spec }, Namespace { metadata: bare(), spec: NamespaceSpec::default() }]
}

fn users() -> [User; 2] {
    let spec = UserSpec { display_name: "Ada".into(), disabled: true, local_user: Some("ada".into()) };
    [User { metadata: metadata(), spec }, User { metadata: bare(), spec: UserSpec::default() }]
}

fn devices() -> [Device; 2] {
    let spec = DeviceSpec { owner: "ada".into(), public_key: "ssh-ed25519 AAAA laptop".into() };
    [Device { metadata: metadata(), spec }, Device { metadata: bare(), spec: DeviceSpec::default() }]
}

fn pools() -> [PoolRow; 2] {
    let spec = |value| serde_json::from_value::<PoolSpec>(value).expect("a valid spec");
    let health = Health {
        consecutive_failures: 3,
        back_off: Some(BackOff { began: at(1), until: at(2) }),
        last_failure: Some(LastFailure {
            member: "pool-e5f6a7b8".into(),
            reason: "ScriptFailed".into(),
            message: "the script setup failed".into(),
            at: at(3),
        }),
    };
    let full = json!({
        "owner": {"kind": "User", "name": "ada"},
        "template": {"spec": {"environment": {"A": "b"}, "providerConfig": {"memory": 4.5}}},
        "size": {"max": 6}, "warm": {"running": 1, "stopped": 1, "stopAfter": "90m", "deleteAfter": "1h"},
        "maxAge": "7d", "recycle": {"maxReuses": 3}, "paused": true,
    });
    let status = PoolStatus { template_hash: "abc".into(), message: "waits".into(), ..PoolStatus::default() };
    let bare_spec = spec(json!({"template": {"spec": {}}, "size": {"max": 1}}));
    [
        PoolRow {
            metadata: metadata(),
            spec: spec(full),
            owner: Subject::user("ada"),
            template_hash: "abc".into(),
            ever_ready: true,
            health,
            status,
        },
        PoolRow {
            metadata: bare(),
            spec: bare_spec,
            owner: service_account(),
            template_hash: String::new(),
            ever_ready: false,
            health: Health::default(),
            status: PoolStatus::default(),
        },
    ]
}

fn leases() -> Vec<Lease> {
    let why = || "a reason".to_owned();
    let waits = [
        WaitsFor::Release,
        WaitsFor::BackOff { until: at(1), failures: 3 },
        WaitsFor::Probe { failures: 4 },
        WaitsFor::Room { why: why() },
        WaitsFor::Provider { why: why() },
        WaitsFor::TemplateFix { why: why() },
        WaitsFor::Turn,
        WaitsFor::Paused,
    ];
    let full = waits.into_iter().enumerate().map(|(number, waits_for)| full_lease(number, waits_for));
    full.chain([bare_lease()]).collect()
}

/// Every field set, the enums at their `number`th variant.
fn full_lease(number: usize, waits_for: WaitsFor) -> Lease {
    let phases = [
        LeasePhase::Pending,
        LeasePhase::Starting,
        LeasePhase::Ready,
        LeasePhase::Recycling,
        LeasePhase::Releasing,
        LeasePhase::Failed,
    ];
    let reasons = [
        FailedReason::Expired,
        FailedReason::PoolDeleted,
        FailedReason::MemberLost,
        FailedReason::RecycleFailed,
        FailedReason::RecycleTimedOut,
    ];
    let not_recycled = [
        NotRecycled::PoolDeleted,
        NotRecycled::RecycleDisabled,
        NotRecycled::MaxReusesReached,
        NotRecycled::MaxAgeReached,
        NotRecycled::TemplateChanged,
        NotRecycled::Cordoned,
        NotRecycled::RecycleUnsupported,
    ];
    let states = [LeaseState::Needed, LeaseState::Recycle, LeaseState::Done];
    Lease {
        metadata: metadata(),
        spec: LeaseSpec {
            workstation_pool_ref: PoolRef { name: "pool".into() },
            state: pick(&states, number),
            expires_at: Some(at(1)),
            authorized_keys: vec!["ssh-ed25519 AAAA laptop".into()],
        },
        pool_uid: UID,
        holder: Subject::user("ada"),
        phase: pick(&phases, number),
        observed_generation: 3,
        member: Some(bond()),
        waits_for: Some(waits_for),
        message: "a message".into(),
        start: Some(pick(&[Start::Warm, Start::Resumed, Start::Cold], number)),
        asked_at: at(8),
        waited_millis: Some(9),
        bound_at: Some(at(2)),
        ready_at: Some(at(3)),
        ended_at: Some(at(4)),
        ssh: Some(SshAccess {
            user: "dev".into(),
            command: "ssh it".into(),
            proxy: "rl proxy it".into(),
            host_keys: vec!["ssh-ed25519 BBBB".into()],
        }),
        release: Some(Release {
            requested: Some(pick(&states, number + 1)),
            outcome: Some(pick(&[Outcome::Deleted, Outcome::Recycled], number)),
            reason: Some(pick(&not_recycled, number)),
            message: "why".into(),
            at: Some(at(5)),
        }),
        reason: Some(pick(&reasons, number)),
        term_ends: at(10),
        bound_changed: at(6),
        ready_changed: at(7),
    }
}

fn bare_lease() -> Lease {
    Lease {
        metadata: bare(),
        spec: LeaseSpec {
            workstation_pool_ref: PoolRef { name: "pool".into() },
            state: LeaseState::Needed,
            expires_at: None,
            authorized_keys: vec![],
        },
        pool_uid: Ulid(2),
        holder: service_account(),
        phase: LeasePhase::Pending,
        observed_generation: 0,
        member: None,
        waits_for: None,
        message: String::new(),
        start: None,
        asked_at: at(0),
        waited_millis: None,
        bound_at: None,
        ready_at: None,
        ended_at: None,
        ssh: None,
        release: None,
        reason: None,
        term_ends: at(0),
        bound_changed: at(0),
        ready_changed: at(0),
    }
}

fn members() -> Vec<Member> {
    let states = [
        MemberState::Building,
        MemberState::Starting,
        MemberState::IdleRunning,
        MemberState::IdleStopped,
        MemberState::Leased,
        MemberState::Recycling,
        MemberState::Stopping,
        MemberState::Deleting,
    ];
    let full = states.into_iter().enumerate().map(|(number, state)| full_member(number, state));
    full.chain([bare_member()]).collect()
}

/// Every field set, the enums at their `number`th variant.
fn full_member(number: usize, state: MemberState) -> Member {
    let sightings = [
        Sighting::Never,
        Sighting::Booting,
        Sighting::Running,
        Sighting::Stopping,
        Sighting::Stopped,
        Sighting::Absent,
        Sighting::Failed,
    ];
    Member {
        metadata: metadata(),
        pool_uid: UID,
        spec: Arc::new(workstation_spec()),
        template_hash: "abc".into(),
        provider: "sandbox".into(),
        state,
        since: at(1),
        born: at(7),
        lease: Some(bond()),
        reuses: 2,
        cordoned: true,
        last_used: at(2),
        destination: pick(&[Destination::Running, Destination::Stopped], number),
        aged: true,
        build_by: Some(at(3)),
        unplaceable: Some("no room".into()),
        revoke_by: Some(at(4)),
        down_since: Some(at(5)),
        recycling: Some(Recycling {
            order: RecycleOrder {
                id: Ulid(10),
                by: at(8),
                reboot: number.is_multiple_of(2),
                reset: pick(&[Reset::None, Reset::Disk], number),
            },
            boot: Some(Ulid(9)),
        }),
        recycle_nonce: Some(Ulid(10)),
        wanted: Wanted { revision: 5, digest: 6, keys_revision: 4, keys_digest: 7, owner_digest: 8 },
        observed: Observed {
            revision: 5,
            sighting: pick(&sightings, number),
            boot_id: Some(Ulid(9)),
            started_at: Some(at(6)),
            configured: true,
            keys_revision: 4,
            agent: agent(),
            remarks: vec!["the image has no sudo".into()],
            sessions: 2,
            message: "a message".into(),
        },
    }
}

fn bare_member() -> Member {
    Member {
        metadata: bare(),
        pool_uid: Ulid(2),
        spec: Arc::new(WorkstationSpec::default()),
        template_hash: String::new(),
        provider: String::new(),
        state: MemberState::Building,
        since: at(0),
        born: at(0),
        lease: None,
        reuses: 0,
        cordoned: false,
        last_used: at(0),
        destination: Destination::Running,
        aged: false,
        build_by: None,
        unplaceable: None,
        revoke_by: None,
        down_since: None,
        recycling: None,
        recycle_nonce: None,
        wanted: Wanted::default(),
        observed: Observed::default(),
    }
}

fn events() -> [EventRow; 2] {
    let row = |kind, cause: &str| EventRow {
        uid: UID,
        pool_uid: Ulid(2),
        name: "pool.1".into(),
        namespace: "local".into(),
        regarding: ObjectReference {
            api_version: "workstations.ringleader.dev/v1".into(),
            kind: "WorkstationPool".into(),
            namespace: "local".into(),
            name: "pool".into(),
            uid: Ulid(2).to_string(),
        },
        kind,
        reason: "TemplateFailed".into(),
        cause: cause.into(),
        message: "the script setup failed".into(),
        count: 2,
        first: at(1),
        last: at(2),
    };
    [row(EventType::Warning, "setup"), row(EventType::Normal, "")]
}

fn stations() -> Vec<Station> {
    let phases = [
        WorkstationPhase::Pending,
        WorkstationPhase::Provisioning,
        WorkstationPhase::Configuring,
        WorkstationPhase::Ready,
        WorkstationPhase::Stopping,
        WorkstationPhase::Stopped,
        WorkstationPhase::Starting,
        WorkstationPhase::Recycling,
        WorkstationPhase::Deleting,
        WorkstationPhase::Failed,
    ];
    phases.into_iter().map(full_station).chain([bare_station()]).collect()
}

fn full_station(phase: WorkstationPhase) -> Station {
    let provider_config = workstation_spec().provider_config;
    Station {
        uid: UID,
        metadata: metadata(),
        spec: workstation_spec(),
        owner: Subject::user("ada"),
        machine: MachineSpec {
            provider: "sandbox".into(),
            name: "mine".into(),
            namespace: "local".into(),
            provider_config,
            image: Some(image()),
            sudo: true,
        },
        build_by: at(1),
        built: true,
        revision: 4,
        asked: Asked {
            power: Power::Stopped,
            keys: vec!["ssh-ed25519 AAAA laptop".into()],
            setup: Setup { identity: identity(), environment: [("A".into(), "b".into())].into() },
            gone: true,
        },
        phase,
        running: Some(Running {
            boot_id: Ulid(9),
            started_at: at(2),
            configured: true,
            keys_confirmed: true,
            agent: agent(),
            remarks: vec!["the image has no sudo".into()],
            sessions: 2,
        }),
        changed_at: at(3),
        message: "a message".into(),
    }
}

fn bare_station() -> Station {
    Station {
        uid: Ulid(1),
        metadata: bare(),
        spec: WorkstationSpec::default(),
        owner: service_account(),
        machine: MachineSpec::default(),
        build_by: at(0),
        built: false,
        revision: 0,
        asked: Asked::default(),
        phase: WorkstationPhase::Pending,
        running: None,
        changed_at: at(0),
        message: String::new(),
    }
}

fn workstation_spec() -> WorkstationSpec {
    WorkstationSpec {
        requirements: vec!["provider:sandbox".into()],
        provider_config: [("memory".to_owned(), json!(4.5)), ("cpus".to_owned(), json!(2))]
            .into_iter()
            .collect(),
        image: Some(image()),
        identity: Some(identity()),
        environment: [("A".into(), "b".into())].into(),
        ..WorkstationSpec::default()
    }
}

fn image() -> Image {
    Image { distribution: "debian".into(), version: "12".into(), os: String::new() }
}

fn identity() -> Identity {
    Identity { user: Some("dev".into()), sudo: Some(false), ..Identity::default() }
}

fn agent() -> AgentInfo {
    AgentInfo {
        version: "0.1.0".into(),
        capabilities: vec!["ssh".into()],
        login_user: "dev".into(),
        host_keys: vec!["ssh-ed25519 BBBB".into()],
        image: "host-1".into(),
    }
}

fn service_account() -> Subject {
    Subject { kind: SubjectKind::ServiceAccount, name: "ci".into(), namespace: Some("local".into()) }
}

fn bond() -> Bond {
    Bond { uid: Ulid(3), name: "other".into() }
}

fn metadata() -> Metadata {
    Metadata {
        name: "sample".into(),
        generate_name: Some("sam".into()),
        namespace: Some("local".into()),
        uid: Some(UID),
        resource_version: None,
        generation: 3,
        creation_timestamp: Some(at(0)),
        deletion_timestamp: Some(at(60)),
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

/// So many seconds after some moment.
fn at(seconds: i64) -> Time {
    Time::from_millis(1_790_000_000_000 + seconds * 1000)
}

fn pick<T: Copy>(variants: &[T], number: usize) -> T {
    variants[number % variants.len()]
}

//! The meters, one for each room that is counted in: what is counted, and what it is called.
//!
//! Names follow Prometheus' conventions: base units, `_total` on counters, which the format adds.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::histogram::{Buckets, Histograms};
use super::label::{CodeClass, Verb};
use super::table::Counters;
use crate::pool::{BuildFailure, Ending, Happening, Removal, Start};

/// From a millisecond to half an hour: a warm lease takes milliseconds, a cold one as long as a
/// machine takes to build, and one in a queue as long as somebody works.
const WAITS: Buckets = Buckets::millis(&[
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
    600_000, 1_800_000,
]);
/// From 100 µs to 5 s: a fast disk, and one that is in trouble.
const MOMENTS: Buckets = Buckets::micros(&[
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000,
]);
/// Up to the most that one commit gathers.
const GATHERED: Buckets = Buckets::plain(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]);

/// The life of leases and members, over all pools.
#[derive(Clone, Debug)]
pub struct PoolMeter {
    leases_created: Counter,
    lease_bindings: Counters<Start>,
    lease_requeues: Counter,
    lease_waits: Histograms<Start>,
    lease_endings: Counters<Ending>,
    builds_ordered: Counter,
    builds: Histograms<()>,
    build_failures: Counters<BuildFailure>,
    member_removals: Counters<Removal>,
    members_gone: Counter,
}

impl PoolMeter {
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let meter = Self {
            leases_created: Counter::default(),
            lease_bindings: Counters::default(),
            lease_requeues: Counter::default(),
            lease_waits: Histograms::new(WAITS),
            lease_endings: Counters::default(),
            builds_ordered: Counter::default(),
            builds: Histograms::new(WAITS),
            build_failures: Counters::default(),
            member_removals: Counters::default(),
            members_gone: Counter::default(),
        };
        registry.register("leases_created", "Leases that were asked for", meter.leases_created.clone());
        registry.register(
            "lease_bindings",
            "Leases that got a member, by how the member was then; again where it was lost",
            meter.lease_bindings.clone(),
        );
        registry.register(
            "lease_requeues",
            "Leases that lost their member before it was usable and waited again",
            meter.lease_requeues.clone(),
        );
        registry.register_with_unit(
            "lease_wait",
            "From the creation of a lease to its first Ready, by how its member was when it was bound",
            Unit::Seconds,
            meter.lease_waits.clone(),
        );
        registry.register(
            "lease_endings",
            "Leases that ended, each counted once, by how",
            meter.lease_endings.clone(),
        );
        registry.register("builds_ordered", "Members that were ordered", meter.builds_ordered.clone());
        registry.register_with_unit(
            "member_build",
            "From the order of a member to its first Configured",
            Unit::Seconds,
            meter.builds.clone(),
        );
        registry.register("build_failures", "Builds that failed, by why", meter.build_failures.clone());
        registry.register(
            "member_removals",
            "Members whose delete began, by why",
            meter.member_removals.clone(),
        );
        registry.register("members_gone", "Members whose machine is gone", meter.members_gone.clone());
        meter
    }

    /// Counts what has happened. To be called once it is durable.
    pub fn count(&self, happened: &[Happening]) {
        for happening in happened {
            match *happening {
                Happening::LeaseCreated => _ = self.leases_created.inc(),
                Happening::LeaseBound { start } => self.lease_bindings.count(start),
                Happening::LeaseWaitsAgain => _ = self.lease_requeues.inc(),
                Happening::LeaseReady { start, wait_millis } => self.lease_waits.observe(start, wait_millis),
                Happening::LeaseEnded(ending) => self.lease_endings.count(ending),
                Happening::BuildOrdered => _ = self.builds_ordered.inc(),
                Happening::MemberBuilt { build_millis } => self.builds.observe((), build_millis),
                Happening::BuildFailed(failure) => self.build_failures.count(failure),
                Happening::MemberRemoved(removal) => self.member_removals.count(removal),
                Happening::MemberGone => _ = self.members_gone.inc(),
            }
        }
    }
}

/// The committer's work.
#[derive(Clone, Debug)]
pub struct CommitMeter {
    took: Histograms<()>,
    gathered: Histograms<()>,
    queued: Gauge<u64, AtomicU64>,
}

/// One that nobody scrapes.
impl Default for CommitMeter {
    fn default() -> Self {
        Self { took: Histograms::new(MOMENTS), gathered: Histograms::new(GATHERED), queued: Gauge::default() }
    }
}

impl CommitMeter {
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let meter = Self::default();
        registry.register_with_unit(
            "store_commit",
            "How long one commit took to be durable: batch, flush and fsync",
            Unit::Seconds,
            meter.took.clone(),
        );
        registry.register(
            "store_commit_submissions",
            "How many submissions one commit gathered",
            meter.gathered.clone(),
        );
        registry.register(
            "store_submissions_queued",
            "Submissions that are queued or being committed",
            meter.queued.clone(),
        );
        meter
    }

    /// A submission is queued.
    pub fn queue(&self) {
        self.queued.inc();
    }

    /// A submission is durable.
    pub fn carry_out(&self) {
        self.queued.dec();
    }

    /// One commit made so many submissions durable.
    pub fn commit(&self, submissions: u64, took_us: u64) {
        self.took.observe((), took_us);
        self.gathered.observe((), submissions);
    }
}

/// The supervisor's work.
#[derive(Clone, Debug, Default)]
pub struct OwnerMeter {
    restarts: Counter,
    given_up: Gauge<u64, AtomicU64>,
}

impl OwnerMeter {
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let meter = Self::default();
        registry.register(
            "owner_restarts",
            "Owners that panicked and were rebuilt from disk",
            meter.restarts.clone(),
        );
        registry.register(
            "owners_given_up",
            "Owners that panicked too often and are not rebuilt until the daemon restarts",
            meter.given_up.clone(),
        );
        meter
    }

    /// An owner is rebuilt.
    pub fn restart(&self) {
        self.restarts.inc();
    }

    /// An owner is given up.
    pub fn give_up(&self) {
        self.given_up.inc();
    }
}

/// The front end's work.
#[derive(Clone, Debug)]
pub struct HttpMeter {
    requests: Counters<(Verb, CodeClass)>,
    took: Histograms<Verb>,
    watches: Gauge<u64, AtomicU64>,
    sessions: Gauge<u64, AtomicU64>,
}

impl HttpMeter {
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let meter = Self {
            requests: Counters::default(),
            took: Histograms::new(MOMENTS),
            watches: Gauge::default(),
            sessions: Gauge::default(),
        };
        registry.register(
            "http_requests",
            "Requests that were answered, by method and class of status",
            meter.requests.clone(),
        );
        registry.register_with_unit(
            "http_request",
            "From the head of a request to the head of its answer, by method",
            Unit::Seconds,
            meter.took.clone(),
        );
        registry.register("http_watches", "Watches that are open", meter.watches.clone());
        registry.register("http_ssh_sessions", "SSH sessions that are open", meter.sessions.clone());
        meter
    }

    /// A request was answered.
    pub fn answer(&self, verb: Verb, class: CodeClass, took_us: u64) {
        self.requests.count((verb, class));
        self.took.observe(verb, took_us);
    }

    /// So many are open just now.
    pub fn open(&self, watches: u64, sessions: u64) {
        self.watches.set(watches);
        self.sessions.set(sessions);
    }
}

//! What a pool counts: a week of hourly rows, what people read of them, and how time is counted
//! into them.
//!
//! Counts are added as they happen. Seconds are not: a row notes what there is (`Level`) and since
//! when (`Mark`), and the time since is added at the next change of the counts, or when somebody
//! reads. So an idle pool counts its seconds without waking.
//!
//! Time is measured on the steady clock, so that a wall clock that is set adds and takes away
//! nothing; which hour it belongs to says the wall clock. An hour that the wall clock shows twice
//! holds what happened in both.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

use super::{Tick, Time};

/// How far back usage goes, the present hour included.
pub const USAGE_HOURS: usize = 168;
/// The upper bounds of the histogram of waits; one bucket more has what is longer.
pub const WAIT_BUCKETS_MILLIS: [u64; WAIT_BUCKETS - 1] =
    [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 1_800_000];
/// How many buckets there are.
pub const WAIT_BUCKETS: usize = 16;

const HOUR_MILLIS: i64 = 3_600_000;
const WEEK_MILLIS: i64 = 7 * 24 * HOUR_MILLIS;

/// One hour of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageHour {
    /// When it began, in UTC.
    pub start: Time,
    pub demand: Demand,
    pub endings: Endings,
    pub supply: Supply,
}

/// What was asked of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Demand {
    /// Leases created.
    pub created: u32,
    /// Waiting leases that got a member; once more for one that lost it before it was usable.
    pub bound: u32,
    /// Most leases at once that had a member, from their binding to their release.
    pub held_max: u32,
    /// Most leases at once for which the pool had no member.
    pub waiting_max: u32,
    /// From the creation of a lease to its first Ready, counted in the hour it became Ready.
    pub wait: Waits,
    /// Leases whose time was up before they had a member. They are not among the endings.
    pub expired_unbound: u32,
}

/// How long leases waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waits {
    pub count: u32,
    pub sum_millis: u64,
    pub max_millis: u64,
    /// By `WAIT_BUCKETS_MILLIS`: how many took at most so long, and longer than the bound before.
    pub histogram: [u32; WAIT_BUCKETS],
}

/// How leases that had a member ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endings {
    /// The member was deleted, whether its holder wrote Done or a Recycle that could not be had.
    pub done: u32,
    /// The member was recycled.
    pub recycled: u32,
    /// Failed or took too long.
    pub recycle_failed: u32,
    pub expired: u32,
    pub member_lost: u32,
}

/// What the pool had to lend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Supply {
    /// Members that reported Configured for the first time.
    pub built: u32,
    /// Members whose machine is gone.
    pub deleted: u32,
    /// Running, or being started, for no lease.
    pub idle_running_seconds: Spent,
    /// Stopped, or on the way to it.
    pub idle_stopped_seconds: Spent,
    /// Bound to a lease once built.
    pub leased_seconds: Spent,
    /// Being built, bound or not.
    pub building_seconds: Spent,
    pub recycling_seconds: Spent,
}

/// Time that members spent, added up. Kept to the millisecond, written as seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spent {
    pub millis: u64,
}

/// What `…/workstationpools/<name>/usage` answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkstationPoolUsage {
    pub api_version: String,
    pub kind: String,
    pub metadata: UsageMetadata,
    /// The bounds that the histograms are told by.
    pub wait_buckets_millis: Vec<u64>,
    /// Oldest first, the present hour last and counted up to now. Hours before the pool first
    /// counted anything are not there.
    pub hours: Vec<UsageHour>,
}

/// Whose usage it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageMetadata {
    pub name: String,
    pub namespace: String,
    /// Of the pool: another one of the same name starts afresh.
    pub uid: String,
}

/// An hour as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    pub pool_uid: Ulid,
    pub hour: UsageHour,
    /// In the row that was counted into last, and in no other.
    pub mark: Option<Mark>,
}

/// Up to where seconds are counted, and what there has been since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub wall: Time,
    pub steady: Time,
    pub level: Level,
}

/// What there is at one time, of what adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    pub idle_running: u32,
    pub idle_stopped: u32,
    pub leased: u32,
    pub building: u32,
    pub recycling: u32,
    /// Leases that have a member.
    pub held: u32,
    /// Leases for which there was none.
    pub waiting: u32,
}

impl UsageRow {
    /// The row of the hour that `time` lies in, with nothing counted.
    #[must_use]
    pub fn at(pool_uid: Ulid, time: Time) -> Self {
        let hour = UsageHour { start: hour_of(time), ..UsageHour::default() };
        Self { pool_uid, hour, mark: None }
    }

    /// The row's uid follows from its pool and its hour, so that there can be no second one. Those
    /// of a pool sort by hour.
    #[must_use]
    pub fn uid(&self) -> Ulid {
        Self::uid_at(self.pool_uid, self.hour.start)
    }

    /// The uid of the row of the hour that `time` lies in.
    #[must_use]
    pub fn uid_at(pool_uid: Ulid, time: Time) -> Ulid {
        let millis = u64::try_from(hour_of(time).millis()).unwrap_or(0);
        Ulid::from_parts(millis, pool_uid.random())
    }
}

impl UsageHour {
    /// Whether the hour is one of those that people read at `now`.
    #[must_use]
    pub fn is_shown(&self, now: Time) -> bool {
        self.start <= now && !self.is_past(now)
    }

    /// Whether it has been shown for a week.
    #[must_use]
    pub fn is_past(&self, now: Time) -> bool {
        hour_of(now).millis_since(self.start) >= WEEK_MILLIS
    }

    /// For so long there was so much.
    pub fn spend(&mut self, level: &Level, millis: u64) {
        self.raise(level);
        let supply = &mut self.supply;
        supply.idle_running_seconds.add(level.idle_running, millis);
        supply.idle_stopped_seconds.add(level.idle_stopped, millis);
        supply.leased_seconds.add(level.leased, millis);
        supply.building_seconds.add(level.building, millis);
        supply.recycling_seconds.add(level.recycling, millis);
    }

    /// All of `other` too, as when hours are told as days.
    pub fn join(&mut self, other: &Self) {
        let (demand, more) = (&mut self.demand, &other.demand);
        demand.created += more.created;
        demand.bound += more.bound;
        demand.held_max = demand.held_max.max(more.held_max);
        demand.waiting_max = demand.waiting_max.max(more.waiting_max);
        demand.wait.join(&more.wait);
        demand.expired_unbound += more.expired_unbound;
        let (endings, more) = (&mut self.endings, &other.endings);
        endings.done += more.done;
        endings.recycled += more.recycled;
        endings.recycle_failed += more.recycle_failed;
        endings.expired += more.expired;
        endings.member_lost += more.member_lost;
        let (supply, more) = (&mut self.supply, &other.supply);
        supply.built += more.built;
        supply.deleted += more.deleted;
        supply.idle_running_seconds.millis += more.idle_running_seconds.millis;
        supply.idle_stopped_seconds.millis += more.idle_stopped_seconds.millis;
        supply.leased_seconds.millis += more.leased_seconds.millis;
        supply.building_seconds.millis += more.building_seconds.millis;
        supply.recycling_seconds.millis += more.recycling_seconds.millis;
    }

    /// There was so much, if only for a moment.
    pub fn raise(&mut self, level: &Level) {
        self.demand.held_max = self.demand.held_max.max(level.held);
        self.demand.waiting_max = self.demand.waiting_max.max(level.waiting);
    }
}

impl Waits {
    /// One more, that took so long.
    pub fn add(&mut self, millis: u64) {
        self.count += 1;
        self.sum_millis = self.sum_millis.saturating_add(millis);
        self.max_millis = self.max_millis.max(millis);
        self.histogram[WAIT_BUCKETS_MILLIS.partition_point(|bound| *bound < millis)] += 1;
    }

    /// All of `other` too.
    pub fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_millis = self.sum_millis.saturating_add(other.sum_millis);
        self.max_millis = self.max_millis.max(other.max_millis);
        for (bucket, more) in self.histogram.iter_mut().zip(other.histogram) {
            *bucket += more;
        }
    }
}

impl Spent {
    fn add(&mut self, members: u32, millis: u64) {
        self.millis = self.millis.saturating_add(u64::from(members).saturating_mul(millis));
    }
}

impl Mark {
    /// The time from the mark to now, hour by hour: what `enter` is told for each. Of a time longer
    /// than a week the last week. It begins at the hour of the mark; where the wall clock was set
    /// meanwhile, it is counted as if that had happened just now.
    pub fn spread(&self, tick: &Tick, mut enter: impl FnMut(Time, u64)) {
        let elapsed = tick.steady.millis_since(self.steady).max(0);
        let end = self.wall.plus_millis(elapsed);
        let mut from = self.wall.plus_millis((elapsed - WEEK_MILLIS).max(0));
        while from < end {
            let to = end.min(hour_of(from).plus_millis(HOUR_MILLIS));
            enter(hour_of(from), u64::try_from(to.millis_since(from)).unwrap_or(0));
            if to <= from {
                return;
            }
            from = to;
        }
    }
}

/// The week as people read it now, from the rows of one pool.
#[must_use]
pub fn usage_at<'a>(rows: impl IntoIterator<Item = &'a UsageRow>, tick: &Tick) -> Vec<UsageHour> {
    let mut hours = BTreeMap::new();
    let mut mark = None;
    for row in rows {
        mark = mark.or(row.mark);
        hours.insert(row.hour.start, row.hour.clone());
    }
    if let Some(mark) = mark {
        let fresh = |start| UsageHour { start, ..UsageHour::default() };
        mark.spread(tick, |start, millis| {
            hours.entry(start).or_insert_with(|| fresh(start)).spend(&mark.level, millis);
        });
        let present = hour_of(tick.wall);
        hours.entry(present).or_insert_with(|| fresh(present)).raise(&mark.level);
    }
    hours.into_values().filter(|hour| hour.is_shown(tick.wall)).collect()
}

/// When the hour began that `time` lies in.
const fn hour_of(time: Time) -> Time {
    Time::from_millis(time.millis() - time.millis().rem_euclid(HOUR_MILLIS))
}

impl Serialize for Spent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_precision_loss, reason = "exact for longer than there are hours")]
        match self.millis % 1000 {
            0 => serializer.serialize_u64(self.millis / 1000),
            _ => serializer.serialize_f64(self.millis as f64 / 1000.0),
        }
    }
}

impl<'de> Deserialize<'de> for Spent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as it was written")]
        let millis = (seconds.max(0.0) * 1000.0).round() as u64;
        Ok(Self { millis })
    }
}

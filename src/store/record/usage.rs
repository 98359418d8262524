//! An hour of a pool's usage on disk. It is no object of the API, so that it is not `Stored`.

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::{Unreadable, from_bytes, to_bytes};
use crate::object::{
    Demand, Endings, Level, Mark, Spent, Supply, Time, UsageHour, UsageRow, WAIT_BUCKETS, Waits,
};

/// As `Stored` has it.
pub(super) const NEWEST_VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
struct UsageV1 {
    pool_uid: u128,
    start_ms: i64,
    created: u32,
    bound: u32,
    held_max: u32,
    waiting_max: u32,
    wait_count: u32,
    wait_sum_ms: u64,
    wait_max_ms: u64,
    /// By the bounds of 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000
    /// and 1800000 ms.
    wait_histogram: [u32; 16],
    expired_unbound: u32,
    done: u32,
    recycled: u32,
    recycle_failed: u32,
    expired: u32,
    member_lost: u32,
    built: u32,
    deleted: u32,
    idle_running_ms: u64,
    idle_stopped_ms: u64,
    leased_ms: u64,
    building_ms: u64,
    recycling_ms: u64,
    mark: Option<MarkV1>,
}

#[derive(Serialize, Deserialize)]
struct MarkV1 {
    wall_ms: i64,
    steady_ms: i64,
    idle_running: u32,
    idle_stopped: u32,
    leased: u32,
    building: u32,
    recycling: u32,
    held: u32,
    waiting: u32,
}

/// As the newest frozen type.
pub(super) fn encode(row: &UsageRow) -> Vec<u8> {
    to_bytes(&UsageV1::from(row))
}

/// From a frozen type of any version.
pub(super) fn decode(type_version: u8, payload: &[u8]) -> Result<UsageRow, Unreadable> {
    match type_version {
        1 => Ok(from_bytes::<UsageV1>(payload)?.into()),
        found => Err(Unreadable::UnknownType { found, newest: NEWEST_VERSION }),
    }
}

impl From<&UsageRow> for UsageV1 {
    fn from(live: &UsageRow) -> Self {
        let UsageRow { pool_uid, hour, mark } = live;
        let UsageHour { start, demand, endings, supply } = hour;
        Self {
            pool_uid: pool_uid.0,
            start_ms: start.millis(),
            created: demand.created,
            bound: demand.bound,
            held_max: demand.held_max,
            waiting_max: demand.waiting_max,
            wait_count: demand.wait.count,
            wait_sum_ms: demand.wait.sum_millis,
            wait_max_ms: demand.wait.max_millis,
            wait_histogram: demand.wait.histogram,
            expired_unbound: demand.expired_unbound,
            done: endings.done,
            recycled: endings.recycled,
            recycle_failed: endings.recycle_failed,
            expired: endings.expired,
            member_lost: endings.member_lost,
            built: supply.built,
            deleted: supply.deleted,
            idle_running_ms: supply.idle_running_seconds.millis,
            idle_stopped_ms: supply.idle_stopped_seconds.millis,
            leased_ms: supply.leased_seconds.millis,
            building_ms: supply.building_seconds.millis,
            recycling_ms: supply.recycling_seconds.millis,
            mark: mark.as_ref().map(MarkV1::from),
        }
    }
}

impl From<UsageV1> for UsageRow {
    fn from(stored: UsageV1) -> Self {
        const { assert!(WAIT_BUCKETS == 16, "other buckets are another version") }
        let spent = |millis| Spent { millis };
        let wait = Waits {
            count: stored.wait_count,
            sum_millis: stored.wait_sum_ms,
            max_millis: stored.wait_max_ms,
            histogram: stored.wait_histogram,
        };
        let demand = Demand {
            created: stored.created,
            bound: stored.bound,
            held_max: stored.held_max,
            waiting_max: stored.waiting_max,
            wait,
            expired_unbound: stored.expired_unbound,
        };
        let endings = Endings {
            done: stored.done,
            recycled: stored.recycled,
            recycle_failed: stored.recycle_failed,
            expired: stored.expired,
            member_lost: stored.member_lost,
        };
        let supply = Supply {
            built: stored.built,
            deleted: stored.deleted,
            idle_running_seconds: spent(stored.idle_running_ms),
            idle_stopped_seconds: spent(stored.idle_stopped_ms),
            leased_seconds: spent(stored.leased_ms),
            building_seconds: spent(stored.building_ms),
            recycling_seconds: spent(stored.recycling_ms),
        };
        Self {
            pool_uid: Ulid(stored.pool_uid),
            hour: UsageHour { start: Time::from_millis(stored.start_ms), demand, endings, supply },
            mark: stored.mark.map(Mark::from),
        }
    }
}

impl From<&Mark> for MarkV1 {
    fn from(live: &Mark) -> Self {
        let Mark { wall, steady, level } = live;
        Self {
            wall_ms: wall.millis(),
            steady_ms: steady.millis(),
            idle_running: level.idle_running,
            idle_stopped: level.idle_stopped,
            leased: level.leased,
            building: level.building,
            recycling: level.recycling,
            held: level.held,
            waiting: level.waiting,
        }
    }
}

impl From<MarkV1> for Mark {
    fn from(stored: MarkV1) -> Self {
        Self {
            wall: Time::from_millis(stored.wall_ms),
            steady: Time::from_millis(stored.steady_ms),
            level: Level {
                idle_running: stored.idle_running,
                idle_stopped: stored.idle_stopped,
                leased: stored.leased,
                building: stored.building,
                recycling: stored.recycling,
                held: stored.held,
                waiting: stored.waiting,
            },
        }
    }
}

//! What pools have counted, by the hour. Not an object: it has no name, no watch and no ring, since
//! its rows change with nearly every write.

use std::collections::BTreeMap;
use std::sync::Arc;

use ulid::Ulid;

use crate::object::UsageRow;

/// The rows of every pool: those of one stand together, in order of their hours, since the uid of a
/// row is made of both.
#[derive(Debug, Default)]
pub(super) struct Histories(BTreeMap<(u128, u64), Arc<UsageRow>>);

impl Histories {
    pub(super) fn put(&mut self, row: Arc<UsageRow>) {
        self.0.insert(place(row.uid()), row);
    }

    pub(super) fn remove(&mut self, uid: Ulid) {
        self.0.remove(&place(uid));
    }

    /// Every row of the pool, oldest first.
    pub(super) fn of(&self, pool: Ulid) -> Vec<Arc<UsageRow>> {
        let rows = self.0.range((pool.random(), 0)..=(pool.random(), u64::MAX)).map(|(_, row)| row);
        rows.filter(|row| row.pool_uid == pool).cloned().collect()
    }
}

const fn place(row: Ulid) -> (u128, u64) {
    (row.random(), row.timestamp_ms())
}

#[cfg(test)]
mod tests {
    use ulid::Ulid;

    use super::super::{Applied, new};
    use crate::object::{Time, UsageRow};

    #[test]
    fn each_pool_has_its_own_hours_oldest_first_until_they_are_removed() {
        let (view, mut writer) = new(10);
        let (one, other) = (Ulid::from_parts(1, 7), Ulid::from_parts(2, 8));
        let row = |pool, hour: i64| UsageRow::at(pool, Time::from_millis(hour * 3_600_000));
        let written = [row(one, 9), row(other, 9), row(one, 10), row(one, 8)];
        writer.apply(written.map(|row| Applied::Usage(row.into())).to_vec());
        let hours = |pool| -> Vec<i64> {
            view.usage(pool).iter().map(|row| row.hour.start.millis() / 3_600_000).collect()
        };
        assert_eq!((hours(one), hours(other)), (vec![8, 9, 10], vec![9]));
        writer.apply(vec![Applied::UsageRemoved(row(one, 9).uid())]);
        assert_eq!((hours(one), hours(other)), (vec![8, 10], vec![9]));
        assert_eq!(hours(Ulid::from_parts(3, 9)), Vec::<i64>::new());
    }
}

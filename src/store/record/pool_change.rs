//! What a pool's change writes.

use super::{BuriedPool, Record, RecordId, RecordKind};
use crate::pool::Change;
use crate::store::Write;

/// The writes of one change of a pool, in order.
#[must_use]
pub fn writes_of(change: Change) -> Vec<Write> {
    let remove = |kind, uid| Write::Remove(RecordId { kind, uid });
    match change {
        Change::PutPool(row) => vec![Write::Put(Record::Pool(row))],
        Change::BuryPool(row) => vec![
            remove(RecordKind::Pool, row.uid()),
            Write::Put(Record::BuriedPool(Box::new(BuriedPool(*row)))),
        ],
        Change::RemovePool(uid) => vec![remove(RecordKind::BuriedPool, uid)],
        Change::PutLease(lease) => vec![Write::Put(Record::Lease(lease))],
        Change::RemoveLease(uid) => vec![remove(RecordKind::Lease, uid)],
        Change::PutMember(member) => vec![Write::Put(Record::Member(member))],
        Change::RemoveMember(uid) => vec![remove(RecordKind::Member, uid)],
        Change::PutEvent(event) => vec![Write::Put(Record::Event(event))],
        Change::RemoveEvent(uid) => vec![remove(RecordKind::Event, uid)],
    }
}

//! Members that are to be replaced: of an older template (T2), or past maxAge (W7).

use ulid::Ulid;

use super::{build, floors, keep_warm};
use crate::pool::Act;
use crate::pool::draft::Draft;
use crate::pool::index::{Idle, Stale};

/// A build of an older template that nobody is bound to is dropped; that is no failure.
pub fn drop_stale_build(draft: &mut Draft<'_>) -> Option<Act> {
    let (stale, _, uid) = *draft.pool.members_by.droppable.last()?;
    if stale == Stale::No {
        return None;
    }
    draft.delete_member(uid);
    Some(Act::LetGo)
}

/// Lets one idle member go that is beyond the floors or whose replacement is there. At size.max,
/// where no replacement can come first, one at a time makes way for its own.
pub fn let_go(draft: &mut Draft<'_>) -> Option<Act> {
    let members = &draft.pool.members_by;
    let floors = floors(draft.pool, draft.inputs);
    let (running, stopped) = (members.running.len(), members.stopped.len());
    let uid = if running + stopped > floors.total() {
        let above = if running > floors.running { worn_out(&members.running) } else { None };
        above.or_else(|| worn_out(&members.stopped))?
    } else if may_make_way(draft) {
        worn_out(&members.stopped).or_else(|| worn_out(&members.running))?
    } else {
        return None;
    };
    draft.delete_member(uid);
    Some(Act::LetGo)
}

/// The idle member with the least life left, if it is to be replaced.
fn worn_out(idle: &Idle) -> Option<Ulid> {
    idle.ranked.least().filter(|life| !life.fresh).map(|life| life.uid)
}

/// At size.max: the last replacement is idle, no other member is going, the template has no
/// uncleared failure, and size is all that keeps a replacement from being built.
fn may_make_way(draft: &Draft<'_>) -> bool {
    let members = &draft.pool.members_by;
    keep_warm::is_lacking(draft)
        && members.live >= draft.row().spec.size.max
        && members.on_the_way_fresh == 0
        && members.counts.deleting == 0
        && draft.row().health.consecutive_failures == 0
        && build::is_allowed_but_for_size(draft)
}

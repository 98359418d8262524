//! The floors: idle members ready for whoever comes next (rules W1, W3, W6).
//!
//! Members on their way count, and so does what is idle above the other floor, so that nothing is
//! built twice and nothing is built that a timer would take again.

use super::{build, floors};
use crate::object::MemberState;
use crate::pool::draft::Draft;
use crate::pool::index::Idle;
use crate::pool::{Act, Destination};

/// Stops a member that was built for the stopped floor and is ready now.
pub fn stop_built_for_it(draft: &mut Draft<'_>) -> Option<Act> {
    let members = &draft.pool.members_by;
    let floors = floors(draft.pool, draft.inputs);
    if members.running.len() <= floors.running || members.stopped.len() >= floors.stopped {
        return None;
    }
    let uid = *members.to_stop.first()?;
    let steady = draft.steady();
    let member = draft.member_mut(uid)?;
    member.enter(MemberState::Stopping, steady);
    member.destination = Destination::Running;
    Some(Act::Stop)
}

/// Starts a stopped member above its floor for the running floor. Fresh ones are counted apart, so
/// that a stale running one is replaced by them too.
pub fn start(draft: &mut Draft<'_>) -> Option<Act> {
    let members = &draft.pool.members_by;
    let floors = floors(draft.pool, draft.inputs);
    if members.stopped.len() <= floors.stopped || draft.row().is_deleting() || !members.unplaceable.is_empty()
    {
        return None;
    }
    let lacking = members.running.len() + members.on_the_way < floors.running;
    let lacking_fresh = members.running.fresh + members.on_the_way_fresh < floors.running;
    let helps = lacking || (lacking_fresh && members.stopped.fresh > 0);
    if !helps {
        return None;
    }
    let (_, _, uid) = *members.stopped.serving.first()?;
    let steady = draft.steady();
    draft.member_mut(uid)?.enter(MemberState::Starting, steady);
    Some(Act::Start)
}

/// Builds one member that a floor lacks. Only fresh members count, so that stale and aged ones get
/// their replacement before they go (rules T2, W7).
pub fn build(draft: &mut Draft<'_>) -> Option<Act> {
    if !is_lacking(draft) {
        return None;
    }
    let provider = build::allowed(draft).ok()?;
    let members = &draft.pool.members_by;
    let floors = floors(draft.pool, draft.inputs);
    let destination = if members.running.fresh + members.on_the_way_fresh < floors.running {
        Destination::Running
    } else {
        Destination::Stopped
    };
    build::order(draft, provider, destination);
    Some(Act::Build)
}

/// Whether the fresh members, those on their way included, are fewer than the floors ask for.
pub fn is_lacking(draft: &Draft<'_>) -> bool {
    let members = &draft.pool.members_by;
    let fresh = |idle: &Idle| idle.fresh;
    let supply = fresh(&members.running) + fresh(&members.stopped) + members.on_the_way_fresh;
    supply < floors(draft.pool, draft.inputs).total() && !draft.row().is_deleting()
}

//! The pool's status: derived from the counts, of constant size, and written only when it differs
//! from the last one written and that one is durable.

use super::draft::Draft;
use super::pass::{build_hold, floors, is_lacking};
use super::{Act, Room, StatusWrite, WaitsFor};
use crate::object::{Capacity, Condition, PoolPhase, PoolStatus, TemplateHealth, Truth};

/// Writes the status if there is something new to say.
pub fn write(draft: &mut Draft<'_>) -> Option<Act> {
    if draft.inputs.status_write == StatusWrite::InFlight || draft.row().is_gone() {
        return None;
    }
    let status = derived(draft);
    if status == draft.row().status {
        return None;
    }
    draft.row_mut().status = status;
    Some(Act::WriteStatus)
}

/// The status as it is now.
pub fn derived(draft: &Draft<'_>) -> PoolStatus {
    let (pool, row) = (draft.pool, draft.row());
    let members = &pool.members_by;
    let room_by_size = row.spec.size.max.saturating_sub(members.live);
    let room = match &draft.inputs.room {
        Room::Unlimited => room_by_size,
        Room::Limited { more, .. } => room_by_size.min(*more),
    };
    let health = &row.health;
    PoolStatus {
        phase: phase(draft),
        observed_generation: row.metadata.generation,
        template_hash: row.template_hash.clone(),
        owner: Some(row.owner.clone()),
        capacity: Capacity { max: row.spec.size.max, members: members.live, room },
        members: members.counts,
        leases: pool.leases_by.counts,
        config_changes: row.spec.lease.config_changes,
        template: TemplateHealth {
            consecutive_failures: health.consecutive_failures,
            retry_at: health.back_off.map(|back_off| back_off.until),
            last_failure: health.last_failure.clone(),
        },
        conditions: conditions(draft),
        message: message(draft),
    }
}

fn phase(draft: &Draft<'_>) -> PoolPhase {
    let row = draft.row();
    if row.is_deleting() {
        PoolPhase::Terminating
    } else if !row.health.is_healthy() {
        PoolPhase::Degraded
    } else if row.ever_ready {
        PoolPhase::Ready
    } else {
        PoolPhase::Pending
    }
}

/// What the pool would build for but may not.
pub fn held(draft: &Draft<'_>) -> Option<WaitsFor> {
    let pool = draft.pool;
    // What cannot be placed is on its way to a floor, and yet nothing but a wish.
    let wants_to_build =
        !pool.leases_by.waiting.is_empty() || is_lacking(draft) || !pool.members_by.unplaceable.is_empty();
    if wants_to_build { build_hold(draft) } else { None }
}

fn message(draft: &Draft<'_>) -> String {
    let row = draft.row();
    if row.is_deleting() {
        return terminating_message(draft);
    }
    if row.spec.paused {
        return "is paused: no new builds and no new binds, leases may end".into();
    }
    held(draft).map(|waits_for| waits_for.to_string()).unwrap_or_default()
}

/// What a deleted pool waits for (rule D2).
fn terminating_message(draft: &Draft<'_>) -> String {
    let leases = &draft.pool.leases_by;
    let several = |count: u32, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    match (leases.counts.bound, leases.expiry.last()) {
        (0, _) => match draft.pool.members_by.live {
            0 => String::new(),
            live => format!("waits for the machines of {} to go", several(live, "member")),
        },
        (bound, None) => format!("waits for {} to end", several(bound, "lease")),
        (1, Some((last, _))) => format!("waits for 1 lease to end, which expires at {last}"),
        (bound, Some((last, _))) => {
            format!("waits for {} to end, the last of which expires at {last}", several(bound, "lease"))
        }
    }
}

fn conditions(draft: &Draft<'_>) -> Vec<Condition> {
    let row = draft.row();
    let held = held(draft);
    let no_room = matches!(&held, Some(WaitsFor::Room { .. } | WaitsFor::Provider { .. }));
    let why = held.map(|waits_for| waits_for.to_string()).unwrap_or_default();
    let floors = floors(draft.pool, draft.inputs);
    let (running, stopped) = (draft.pool.members_by.running.len(), draft.pool.members_by.stopped.len());
    // What runs above its floor is on its way to the stopped one (rule W6).
    let filled = running >= floors.running && running + stopped >= floors.total();
    let healthy = row.health.is_healthy();
    let failures = format!("the template failed {} times in a row", row.health.consecutive_failures);
    let idle = format!("{running} running and {stopped} stopped members are idle");
    let facts = [
        ("Ready", phase(draft) == PoolPhase::Ready, ["MembersServe", "NotReady"], String::new()),
        ("TemplateHealthy", healthy, ["Builds", "BuildsFail"], failures),
        ("RoomAvailable", !no_room, ["RoomAvailable", "CannotBePlaced"], why),
        ("WarmFloorsFilled", filled, ["Filled", "Filling"], idle),
    ];
    let condition = |(r#type, holds, [yes, no], message): (&str, bool, [&str; 2], String)| {
        let status = if holds { Truth::True } else { Truth::False };
        let last = row.status.conditions.iter().find(|last| last.r#type == r#type);
        Condition {
            r#type: r#type.into(),
            status,
            observed_generation: row.metadata.generation,
            last_transition_time: last
                .filter(|last| last.status == status)
                .map_or(draft.now().whole_seconds(), |last| last.last_transition_time),
            reason: if holds { yes.into() } else { no.into() },
            message: if holds { String::new() } else { message },
        }
    };
    facts.into_iter().map(condition).collect()
}

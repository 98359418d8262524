//! Field by field: whether a row of the core is what the model says.

use ringleader_proof::machine::Want;
use ringleader_proof::object::RELEASE_FINALIZER;
use ringleader_proof::pool;

use crate::naive::{Lease, Member, Naive, Release, template_of};

/// Everything in which the core and the model differ.
pub fn differences(core: &pool::Pool, model: &Naive) -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |whose: String, fields: Vec<&str>| {
        found.extend(fields.into_iter().map(|field| format!("{whose}: {field}")));
    };
    note("the pool".into(), of_pool(core, model));
    for row in core.leases() {
        match model.get_lease(row.uid()) {
            Some(lease) => note(format!("lease {}", row.metadata.name), of_lease(row, lease)),
            None => note(format!("lease {}", row.metadata.name), vec!["is there"]),
        }
    }
    for row in core.members() {
        match model.get_member(row.uid()) {
            Some(member) => note(format!("member {}", row.metadata.name), of_member(row, member)),
            None => note(format!("member {}", row.metadata.name), vec!["is there"]),
        }
    }
    if core.leases().count() < model.leases.len() || core.members().count() < model.members.len() {
        found.push("rows are missing".into());
    }
    found
}

fn differing<'a>(fields: &[(&'a str, bool)]) -> Vec<&'a str> {
    fields.iter().filter(|(_, same)| !same).map(|(field, _)| *field).collect()
}

fn of_pool(core: &pool::Pool, model: &Naive) -> Vec<&'static str> {
    let row = core.row();
    let back_off = row.health.back_off.map(|wait| (wait.began, wait.until));
    differing(&[
        ("ended", core.has_ended() == model.ended),
        ("deleting", row.is_deleting() == model.deleting),
        ("over", row.is_over() == model.over),
        ("gone", row.is_gone() == model.is_gone()),
        ("spec", row.spec == model.spec),
        ("owner", row.owner == model.owner),
        ("failures", row.health.consecutive_failures == model.failures),
        ("back-off", back_off == model.back_off),
        ("ever ready", row.ever_ready == model.ever_ready),
        ("builds in flight", {
            let building = ringleader_proof::object::MemberState::Building;
            core.builds_in_flight() as usize
                == model.live().filter(|one| one.state == building && one.unplaceable.is_none()).count()
        }),
    ])
}

fn of_lease(row: &pool::Lease, lease: &Lease) -> Vec<&'static str> {
    let release = row.release.as_ref().map(|said| Release {
        requested: said.requested,
        outcome: said.outcome,
        reason: said.reason,
    });
    differing(&[
        ("holder", row.holder == lease.holder),
        ("created", row.created() == lease.created),
        ("state", row.spec.state == lease.written),
        ("deleted", row.metadata.deletion_timestamp.is_some() == lease.deleted),
        ("over", row.is_over() == lease.over),
        ("finalizers", has_foreign(&row.metadata.finalizers) == lease.foreign),
        ("keys", row.spec.authorized_keys == lease.keys),
        ("expires_at", row.expires_at() == lease.expires_at),
        ("term_ends", row.term_ends == lease.term_ends),
        ("phase", row.phase == lease.phase),
        ("member", row.member.as_ref().map(|bond| bond.uid) == lease.member),
        ("waits_for", row.waits_for == lease.told),
        ("start", row.start == lease.start),
        ("asked_at", row.asked_at == lease.asked_at),
        ("waited_millis", row.waited_millis == lease.waited_millis),
        ("bound_at", row.bound_at == lease.bound_at),
        ("ready_at", row.ready_at == lease.ready_at),
        ("ended_at", row.ended_at == lease.ended_at),
        ("release", release == lease.release),
        ("reason", row.reason == lease.reason),
        ("generation", row.metadata.generation == lease.generation),
        ("observed_generation", row.observed_generation == lease.landed_generation),
    ])
}

fn of_member(row: &pool::Member, member: &Member) -> Vec<&'static str> {
    let seen = &row.observed;
    differing(&[
        ("template", template_of(&row.spec) == member.template),
        ("provider", row.provider == member.provider),
        ("state", row.state == member.state),
        ("since", row.since == member.since),
        ("born", row.born == member.born),
        ("last_used", row.last_used == member.last_used),
        ("lease", row.lease.as_ref().map(|bond| bond.uid) == member.lease),
        ("reuses", row.reuses == member.reuses),
        ("cordoned", row.cordoned == member.cordoned),
        ("destination", (row.destination == pool::Destination::Stopped) == member.for_stopped),
        ("aged", row.aged == member.aged),
        ("build_by", row.build_by == member.build_by),
        ("unplaceable", row.unplaceable == member.unplaceable),
        ("revoke_by", row.revoke_by == member.revoke_by),
        ("down_since", row.down_since == member.down_since),
        ("recycle", row.recycling.map(|recycling| recycling.order) == member.recycle),
        ("recycle's boot", row.recycling.and_then(|recycling| recycling.boot) == member.recycle_boot),
        ("recycle_nonce", row.recycle_nonce == member.nonce),
        ("over", row.is_over() == member.over),
        ("finalizers", has_foreign(&row.metadata.finalizers) == member.foreign),
        ("observed.revision", seen.revision == member.seen.revision),
        ("observed.sighting", seen.sighting == member.seen.sighting),
        ("observed.boot", seen.boot_id == member.seen.boot),
        ("observed.configured", seen.configured == member.seen.configured),
        ("observed.keys", seen.keys_revision == member.seen.keys),
        ("observed.sessions", seen.sessions == member.seen.sessions),
        ("observed.message", seen.message == member.seen.message),
        ("wanted.revision", row.wanted.revision == member.wish.revision),
        ("wanted.keys_revision", row.wanted.keys_revision == member.wish.keys_since),
    ])
}

/// In what a want is another than the model's wish.
pub fn differences_of_want(want: &Want, member: &Member, name: &str) -> Vec<&'static str> {
    let content = member.wish.content.as_ref().expect("a wanted member has a wish");
    differing(&[
        ("revision", want.revision == member.wish.revision),
        ("power", want.power == content.power),
        ("keys", want.keys == content.keys),
        ("recycle", want.recycle == content.recycle),
        ("build_by", want.build_by == content.build_by),
        ("gone", want.gone == content.gone),
        ("provider", want.machine.provider == member.provider),
        ("name", want.machine.name == name),
    ])
}

fn has_foreign(finalizers: &[String]) -> bool {
    finalizers.iter().any(|finalizer| finalizer != RELEASE_FINALIZER)
}

//! Ordering a new member: whether it may be, and how it begins.

use std::sync::Arc;

use ulid::Ulid;

use crate::object::{MemberState, Metadata, POOL_LABEL, RELEASE_FINALIZER, Time};
use crate::pool::draft::Draft;
use crate::pool::health::{self, BUILD_WITHIN_MILLIS};
use crate::pool::{
    Destination, Inputs, Member, Observed, Pool, ProviderState, Room, Stopping, WaitsFor, Wanted,
};

/// A requirement that pins the provider.
const PROVIDER_PREFIX: &str = "provider:";

/// The provider to build at, or what a build waits for.
pub fn allowed(draft: &Draft<'_>) -> Result<String, WaitsFor> {
    let (pool, spec) = (draft.pool, &draft.row().spec);
    if spec.paused {
        return Err(WaitsFor::Paused);
    }
    // Before the size: a member that waits for room serves the next lease once it has it.
    check_placed(pool)?;
    if pool.members_by.live >= spec.size.max || draft.row().is_deleting() {
        return Err(WaitsFor::Release);
    }
    allowed_but_for_size(draft)
}

/// Whether only size.max stands between the pool and a new member.
pub fn is_allowed_but_for_size(draft: &Draft<'_>) -> bool {
    !draft.row().spec.paused && allowed_but_for_size(draft).is_ok()
}

fn allowed_but_for_size(draft: &Draft<'_>) -> Result<String, WaitsFor> {
    let pool = draft.pool;
    check_placed(pool)?;
    let provider = provider(pool, draft.inputs)?;
    if let Some(why) = &provider.unavailable {
        return Err(WaitsFor::Provider { why: format!("{}: {why}", provider.name) });
    }
    if let Room::Limited { more: 0, why } = &draft.inputs.room {
        return Err(WaitsFor::Room { why: why.clone() });
    }
    check_health(draft)?;
    if draft.inputs.builds_allowed == 0 {
        return Err(WaitsFor::Turn);
    }
    Ok(provider.name.clone())
}

/// No build while another one cannot be placed: it would not fare better (rule F1).
fn check_placed(pool: &Pool) -> Result<(), WaitsFor> {
    let stuck = pool.members_by.unplaceable.first().and_then(|uid| pool.members.get(uid));
    match stuck.and_then(|member| member.unplaceable.clone()) {
        Some(why) => Err(WaitsFor::Room { why }),
        None => Ok(()),
    }
}

/// What a build waits for, if anything.
pub fn hold(draft: &Draft<'_>) -> Option<WaitsFor> {
    allowed(draft).err()
}

/// No build before the back-off is over, and then one at a time until it succeeds (rule F2).
fn check_health(draft: &Draft<'_>) -> Result<(), WaitsFor> {
    let health = &draft.row().health;
    let failures = health.consecutive_failures;
    match health.back_off {
        Some(back_off) if draft.steady() < back_off.until => {
            Err(WaitsFor::BackOff { until: back_off.until, failures })
        }
        Some(back_off) if health::is_probing(draft, back_off.until) => Err(WaitsFor::Probe { failures }),
        Some(_) | None => Ok(()),
    }
}

/// The end of the back-off, where somebody waits for it.
pub fn deadline(pool: &Pool, steady: Time) -> Option<Time> {
    pool.row.health.back_off.map(|back_off| back_off.until).filter(|until| *until > steady)
}

/// The pinned provider, or the first available one, or the first.
fn provider<'a>(pool: &Pool, inputs: &'a Inputs) -> Result<&'a ProviderState, WaitsFor> {
    let requirements = &pool.row.spec.template.spec.requirements;
    let pinned = requirements.iter().find_map(|requirement| requirement.strip_prefix(PROVIDER_PREFIX));
    match pinned {
        Some(name) => inputs
            .providers
            .iter()
            .find(|provider| provider.name == name)
            .ok_or_else(|| WaitsFor::TemplateFix { why: format!("this daemon has no provider {name}") }),
        None => inputs
            .providers
            .iter()
            .find(|provider| provider.unavailable.is_none())
            .or_else(|| inputs.providers.first())
            .ok_or_else(|| WaitsFor::Provider { why: "this daemon has no provider at all".into() }),
    }
}

/// Whether the members built now could be stopped.
pub fn can_stop(pool: &Pool, inputs: &Inputs) -> bool {
    provider(pool, inputs).map_or(true, |provider| provider.stopping == Stopping::Possible)
}

/// A new member, unbound. Its order is durable before its machine is asked for.
pub fn order(draft: &mut Draft<'_>, provider: String, destination: Destination) -> Ulid {
    let (now, steady) = (draft.now(), draft.steady());
    let uid = draft.new_uid();
    let name = new_name(draft);
    let row = draft.row();
    let template = &row.spec.template;
    let mut labels = template.metadata.labels.clone();
    labels.insert(POOL_LABEL.into(), row.metadata.name.clone());
    let member = Member {
        metadata: Metadata {
            name,
            namespace: row.metadata.namespace.clone(),
            uid: Some(uid),
            generation: 1,
            creation_timestamp: Some(now.whole_seconds()),
            labels,
            annotations: template.metadata.annotations.clone(),
            finalizers: vec![RELEASE_FINALIZER.into()],
            ..Metadata::default()
        },
        pool_uid: row.uid(),
        spec: Arc::new(template.spec.clone()),
        template_hash: row.template_hash.clone(),
        provider,
        state: MemberState::Building,
        since: steady,
        born: steady,
        lease: None,
        reuses: 0,
        cordoned: false,
        last_used: steady,
        destination,
        aged: false,
        build_by: Some(steady.plus_millis(BUILD_WITHIN_MILLIS)),
        unplaceable: None,
        revoke_by: None,
        down_since: None,
        recycling: None,
        recycle_nonce: None,
        wanted: Wanted::default(),
        observed: Observed::default(),
    };
    draft.put_member(member);
    uid
}

/// The pool's name, `-`, and eight hex digits that no other member has (rule S5).
fn new_name(draft: &mut Draft<'_>) -> String {
    loop {
        let [digits @ .., _, _, _, _, _, _, _, _, _, _, _, _] = draft.entropy().to_be_bytes();
        let name = format!("{}-{:08x}", draft.row().metadata.name, u32::from_be_bytes(digits));
        if !draft.pool.members_by.names.contains_key(&name) {
            return name;
        }
    }
}

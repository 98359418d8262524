//! What the pool wishes of one member: derived from the member, its lease, and the owner's
//! devices. The revision rises when, and only when, the wish changes.

use super::{Inputs, Lease, Member, PoolRow, Wanted, digest};
use crate::machine::{MachineSpec, Power, Setup, Want};
use crate::object::{LeasePhase, LeaseState, MemberState, Time};

/// The member's want at its present revision.
pub fn of(member: &Member, lease: Option<&Lease>, inputs: &Inputs, row: &PoolRow) -> Want {
    let spec = &member.spec;
    let identity = spec.identity.clone().unwrap_or_default();
    Want {
        member_uid: member.uid(),
        revision: member.wanted.revision,
        machine: MachineSpec {
            provider: member.provider.clone(),
            name: member.metadata.name.clone(),
            namespace: row.metadata.namespace.clone().unwrap_or_default(),
            provider_config: spec.provider_config.clone(),
            image: spec.image.clone(),
            sudo: identity.sudo.unwrap_or(true),
        },
        power: power(member),
        keys: keys_of(member, lease, inputs),
        setup: Setup { identity, environment: spec.environment.clone() },
        recycle: member.recycling.map(|recycling| recycling.order),
        build_by: build_by(member),
        gone: member.is_gone_ordered(),
    }
}

/// Only with this is a machine made (`machine/contract.rs`). A build that cannot be placed has no
/// deadline of its own, and is to be tried again for as long as that takes.
fn build_by(member: &Member) -> Option<Time> {
    (member.state == MemberState::Building).then(|| member.build_by.unwrap_or(Time::from_millis(i64::MAX)))
}

/// What to store of a want: a new revision where it differs from the last one.
pub fn ordered(member: &Member, lease: Option<&Lease>, inputs: &Inputs) -> Wanted {
    let last = member.wanted;
    let keys_digest = digest::of_lines(&keys_of(member, lease, inputs));
    let mut whole =
        format!("{keys_digest:x} {:?} {:?} {}", power(member), build_by(member), member.is_gone_ordered());
    if let Some(recycling) = &member.recycling {
        // Apart, so that members at rest have the digest that earlier daemons stored.
        whole.push_str(&format!(" {}", recycling.order.id));
    }
    let digest = digest::of_bytes(whole.as_bytes());
    let revision = if digest == last.digest { last.revision } else { last.revision + 1 };
    Wanted {
        revision,
        digest,
        keys_revision: if keys_digest == last.keys_digest && last.keys_revision > 0 {
            last.keys_revision
        } else {
            revision
        },
        keys_digest,
        owner_digest: inputs.owner_keys.digest(),
    }
}

/// The whole block of authorized keys: the owner's devices, then the lease's own while it may use
/// the member. A member that is still being built or started carries no lease's keys yet, so that
/// such a lease can be moved or cancelled without a trace (rules L7, L10).
pub fn keys_of(member: &Member, lease: Option<&Lease>, inputs: &Inputs) -> Vec<String> {
    if member.is_gone_ordered() {
        return Vec::new();
    }
    let mut keys = inputs.owner_keys.lines().to_vec();
    let entitled = |lease: &&Lease| {
        member.state == MemberState::Leased
            && lease.asked() == LeaseState::Needed
            && matches!(lease.phase, LeasePhase::Starting | LeasePhase::Ready)
    };
    for key in lease.filter(entitled).map(|lease| lease.spec.authorized_keys.as_slice()).unwrap_or_default() {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

const fn power(member: &Member) -> Power {
    match member.state {
        MemberState::Building
        | MemberState::Starting
        | MemberState::IdleRunning
        | MemberState::Leased
        | MemberState::Recycling => Power::Running,
        MemberState::IdleStopped | MemberState::Stopping => Power::Stopped,
        MemberState::Deleting => {
            if member.revoke_by.is_some() {
                Power::Running
            } else {
                Power::Stopped
            }
        }
    }
}

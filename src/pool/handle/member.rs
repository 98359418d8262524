//! What a person may do to a member: cordon it, or delete it.

use std::collections::BTreeMap;

use ulid::Ulid;

use super::lease::merged;
use crate::object::{SERVER_PREFIX, Workstation};
use crate::pool::draft::Draft;
use crate::pool::{Denied, Standing};

/// `spec.cordoned` and the labels, annotations and finalizers may change; the pool writes the rest
/// (rules A3, A6, C1, C2).
pub fn update(
    draft: &mut Draft<'_>,
    uid: Ulid,
    object: Workstation,
    standing: Standing,
) -> Result<(), Denied> {
    let steady = draft.steady();
    let member = draft.member(uid).ok_or(Denied::MemberUnknown)?;
    if standing != Standing::OwnerOrAdmin {
        return Err(Denied::NotYourMember);
    }
    let mut spec = member.present().spec;
    spec.cordoned = object.spec.cordoned;
    if spec != object.spec {
        return Err(Denied::OnlyCordonMayChange);
    }
    let member = draft.member_mut(uid).ok_or(Denied::MemberUnknown)?;
    member.metadata = merged(&member.metadata, object.metadata);
    // The server's annotations are shown from the row, never kept in it.
    drop_server_keys(&mut member.metadata.annotations);
    if member.cordoned && !object.spec.cordoned && member.is_idle() {
        // The idle timers begin anew (rule W4). The age of a build or a start stays what it is.
        member.since = steady;
    }
    member.cordoned = object.spec.cordoned;
    if member.is_over() && member.metadata.finalizers.is_empty() {
        draft.remove_member(uid);
    }
    Ok(())
}

fn drop_server_keys(annotations: &mut BTreeMap<String, String>) {
    annotations.retain(|key, _| !key.starts_with(SERVER_PREFIX));
}

/// The member goes, and a lease that used it with it (rule L17). No failure of the template (rule F1).
pub fn delete(draft: &mut Draft<'_>, uid: Ulid, standing: Standing) -> Result<(), Denied> {
    draft.member(uid).ok_or(Denied::MemberUnknown)?;
    if standing != Standing::OwnerOrAdmin {
        return Err(Denied::NotYourMember);
    }
    draft.lose_member(uid, "its Workstation was deleted by hand");
    Ok(())
}

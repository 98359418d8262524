//! A pool created, changed, or to be deleted.

use crate::object::{PoolStatus, RELEASE_FINALIZER, Subject, WorkstationPool};
use crate::pool::draft::Draft;
use crate::pool::{Denied, Health, PoolRow, template};

/// The row of a new pool.
pub fn create(object: WorkstationPool, by: &Subject) -> PoolRow {
    let mut metadata = object.metadata;
    metadata.resource_version = None;
    metadata.finalizers.retain(|finalizer| finalizer != RELEASE_FINALIZER);
    metadata.finalizers.insert(0, RELEASE_FINALIZER.into());
    let mut spec = object.spec;
    let owner = spec.owner.get_or_insert_with(|| by.clone()).clone();
    PoolRow {
        template_hash: template::hash(&spec.template),
        metadata,
        spec,
        owner,
        ever_ready: false,
        health: Health::default(),
        status: PoolStatus::default(),
    }
}

/// Takes over metadata and spec. Another template starts with a clean record (rule F3).
pub fn update(draft: &mut Draft<'_>, object: WorkstationPool) -> Result<(), Denied> {
    check_present(draft)?;
    let row = draft.row_mut();
    row.metadata = super::lease::merged(&row.metadata, object.metadata);
    row.spec = object.spec;
    row.owner = row.spec.owner.get_or_insert_with(|| row.owner.clone()).clone();
    let hash = template::hash(&row.spec.template);
    if hash != row.template_hash {
        row.template_hash = hash;
        row.health = Health::default();
    }
    Ok(())
}

/// From now on no new leases and no new members (rule D1).
pub fn delete(draft: &mut Draft<'_>) -> Result<(), Denied> {
    check_present(draft)?;
    if !draft.row().is_deleting() {
        let now = draft.now().whole_seconds();
        draft.row_mut().metadata.deletion_timestamp = Some(now);
    }
    Ok(())
}

/// The row of a pool that is gone is nobody's to write.
fn check_present(draft: &Draft<'_>) -> Result<(), Denied> {
    if draft.row().is_gone() {
        return Err(Denied::PoolGone { pool: draft.row().metadata.name.clone() });
    }
    Ok(())
}

//! Machines that no record knows: left by a daemon that was killed at the wrong moment.
//!
//! A create is durable before it is asked for, and a record goes only when its machine has gone;
//! so a machine of this store without a record is a leak. It is removed after it was seen twice,
//! some time apart: one look could have met a restore, a clock or a provider in the middle.

use std::collections::BTreeSet;
use std::time::Duration;

use ulid::Ulid;

use crate::provider::{Provider, Providers};
use crate::view::View;

/// Between the two looks.
const SECOND_LOOK_AFTER: Duration = Duration::from_secs(20);

/// Looks twice, removes what was unknown both times, and ends.
pub async fn sweep(providers: Providers, view: View) {
    let mut first = Vec::new();
    for provider in providers.iter() {
        first.push(unknown(provider.as_ref(), &view).await);
    }
    if first.iter().all(BTreeSet::is_empty) {
        return;
    }
    tokio::time::sleep(SECOND_LOOK_AFTER).await;
    for (provider, before) in providers.iter().zip(first) {
        let now = unknown(provider.as_ref(), &view).await;
        for uid in before.intersection(&now) {
            match provider.delete(*uid).await {
                Ok(()) => {
                    tracing::warn!(provider = provider.name(), machine = %uid, "removed a machine no record knows");
                }
                Err(error) => {
                    tracing::error!(provider = provider.name(), machine = %uid, %error, "a machine no record knows stays");
                }
            }
        }
    }
}

/// Machines are listed before the records are read: a record is older than its machine.
async fn unknown(provider: &dyn Provider, view: &View) -> BTreeSet<Ulid> {
    match provider.list().await {
        Ok(machines) => machines.into_iter().filter(|uid| view.by_uid(*uid).is_none()).collect(),
        Err(error) => {
            tracing::warn!(provider = provider.name(), %error, "machines cannot be listed");
            BTreeSet::new()
        }
    }
}

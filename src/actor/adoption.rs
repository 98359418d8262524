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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, PoisonError};

    use tokio::net::UnixStream;

    use super::*;
    use crate::machine::MachineSpec;
    use crate::object::{FieldError, WorkstationSpec};
    use crate::provider::{Availability, Call, CarriedImage, Door, Inspection};
    use crate::view;

    /// A provider of which only the list of machines matters.
    #[derive(Default)]
    struct Listed {
        /// What each look finds; the last one stays.
        looks: Mutex<Vec<Vec<Ulid>>>,
        removed: Mutex<Vec<Ulid>>,
    }

    fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done<'a, T: Send + 'a>(value: T) -> Call<'a, T> {
        Box::pin(async move { Ok(value) })
    }

    impl Provider for Listed {
        fn name(&self) -> &'static str {
            "listed"
        }

        fn availability(&self) -> Availability {
            Availability::Available
        }

        fn images(&self) -> Vec<CarriedImage> {
            Vec::new()
        }

        fn check(&self, _: &WorkstationSpec, _: &str) -> Vec<FieldError> {
            Vec::new()
        }

        fn create<'a>(&'a self, _: Ulid, _: &'a MachineSpec) -> Call<'a, ()> {
            done(())
        }

        fn start(&self, _: Ulid) -> Call<'_, ()> {
            done(())
        }

        fn stop(&self, _: Ulid) -> Call<'_, ()> {
            done(())
        }

        fn delete(&self, id: Ulid) -> Call<'_, ()> {
            locked(&self.removed).push(id);
            done(())
        }

        fn inspect(&self, _: Ulid) -> Call<'_, Inspection> {
            done(Inspection::Absent)
        }

        fn ended(&self, _: Ulid) -> Call<'_, ()> {
            done(())
        }

        fn list(&self) -> Call<'_, Vec<Ulid>> {
            let mut looks = locked(&self.looks);
            let look = if looks.len() > 1 { looks.remove(0) } else { looks[0].clone() };
            drop(looks);
            done(look)
        }

        fn link(&self, _: Ulid, _: Door) -> Call<'_, UnixStream> {
            Box::pin(async { Err(crate::provider::ProviderError::Failed("no machine".into())) })
        }
    }

    /// What a sweep removes when its looks find these machines and no record knows any.
    async fn removed(looks: Vec<Vec<Ulid>>) -> Vec<Ulid> {
        let provider = Arc::new(Listed { looks: Mutex::new(looks), removed: Mutex::default() });
        let (view, _writer) = view::new(10);
        sweep(Arc::from(vec![Arc::clone(&provider) as Arc<dyn Provider>]), view).await;
        locked(&provider.removed).clone()
    }

    // rule F5
    #[tokio::test(start_paused = true)]
    async fn a_machine_that_no_record_knows_is_removed_after_it_was_seen_twice() {
        let (stays, goes) = (Ulid(1), Ulid(2));
        assert_eq!(removed(vec![vec![goes], vec![goes]]).await, [goes]);
        assert_eq!(removed(vec![vec![stays], vec![]]).await, [], "it went by itself");
        assert_eq!(removed(vec![vec![], vec![stays]]).await, [], "seen once only");
    }
}

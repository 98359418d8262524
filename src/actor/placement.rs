//! What owners ask of the providers and the disk before anything is built.

use super::core::Sources;
use super::doors::Refusal;
use crate::object::{WorkstationSpec, name_carried_images};
use crate::provider::Providers;
use crate::store::Space;

/// Lets the provider that would serve `spec` check what is its own: sizing and image. A provider
/// that is not set up here is no fault of the manifest: the workstation waits and says so.
///
/// # Errors
/// Every field that is wrong, with paths below `base`.
pub fn check(providers: &Providers, spec: &WorkstationSpec, base: &str) -> Result<(), Refusal> {
    let pinned = spec.requirements.iter().find_map(|token| token.strip_prefix("provider:"));
    let provider = match pinned {
        Some(name) => providers.iter().find(|provider| provider.name() == name),
        None => providers.first(),
    };
    let errors = provider.map(|provider| provider.check(spec, base)).unwrap_or_default();
    if errors.is_empty() { Ok(()) } else { Err(Refusal::Invalid(errors)) }
}

/// Adds to what is wrong with an `image` which ones there are: only the providers know.
#[must_use]
pub fn name_images(refusal: Refusal, providers: &Providers) -> Refusal {
    let Refusal::Invalid(mut errors) = refusal else { return refusal };
    let carried: Vec<String> =
        providers.iter().flat_map(|provider| provider.images()).map(|image| image.words()).collect();
    name_carried_images(&mut errors, &carried);
    Refusal::Invalid(errors)
}

/// Why the disk allows no builds now, if so.
#[must_use]
pub fn disk_holds_builds(sources: &Sources) -> Option<String> {
    match (sources.space)() {
        Space::Ample => None,
        Space::NoBuilds | Space::ReleasesOnly => {
            Some("the disk of the data directory is nearly full: free some space".into())
        }
    }
}

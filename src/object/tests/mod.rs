//! The room's behaviour as a whole: manifests in, stored objects or exact refusals out.

mod properties;
mod schemas;
mod writes;
mod wrong_manifests;

use serde_json::Value;

use super::{Admitted, FieldValidation, Kind, Rejected, Tick, Time, admit_create, registry};

/// The kind a person means by `word`.
fn kind(word: &str) -> &'static Kind {
    registry().by_word(word).expect("a kind of this version")
}

/// A manifest as its author wrote it.
fn yaml(manifest: &str) -> Value {
    serde_saphyr::from_str(manifest).expect("the test writes YAML")
}

fn tick() -> Tick {
    let wall = Time::parse("2026-11-30T12:00:00.500Z").expect("a time");
    Tick { wall, steady: wall, entropy: 0x0123_4567_89ab_cdef }
}

/// What becomes of a manifest that `rl apply` posts.
fn create(word: &str, manifest: &Value) -> Result<Admitted, Rejected> {
    let kind = kind(word);
    let namespace = kind.namespaced.then_some("local");
    admit_create(kind, manifest.clone(), namespace, &tick(), FieldValidation::Strict)
}

/// The object that a good manifest makes.
fn created(word: &str, manifest: &Value) -> Value {
    create(word, manifest).expect("a good manifest").value
}

/// Every complaint about a bad one.
fn complaints(rejected: Rejected) -> Vec<String> {
    match rejected {
        Rejected::Invalid(errors) => errors.iter().map(ToString::to_string).collect(),
        Rejected::BadRequest(why) => vec![format!("bad request: {why}")],
        Rejected::Conflict(why) => vec![format!("conflict: {why}")],
    }
}

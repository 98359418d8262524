//! `rl apply`: what manifests declare becomes so.
//!
//! An object that is there is changed by a merge patch made of three texts, as kubectl makes it:
//! what was applied last, what is applied now, and what is live. A field taken out of the manifest
//! goes; a field that another wrote stays. What was applied last is kept in kubectl's own
//! annotation, so that both may be used on one object.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::{Map, Value, json};

use super::failure::Exit;
use super::kinds;
use super::manifest::{self, Document};
use super::output::text_at;
use super::session::Session;
use crate::client::{ClientError, Commit, Target};

/// Where kubectl keeps what was applied last.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What the server writes: left out of what is applied, so that `rl get -o yaml` can be applied.
const SERVER_WRITTEN: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What to apply.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// A manifest, a directory of them, or - for stdin
    #[arg(short, long = "filename", required = true, value_name = "FILE|DIR|-")]
    filename: Vec<String>,
    /// Judge everything, write nothing
    #[arg(long)]
    dry_run: bool,
}

/// What applying a document does.
enum Act {
    Create(Value),
    Patch { patch: Value, live: Value },
}

/// Validates all documents, then writes them.
pub async fn run(session: &Session, args: ApplyArgs) -> anyhow::Result<Exit> {
    let mut documents = manifest::read(session, &args.filename)?;
    let missing = missing_namespaces(session, &documents).await?;
    documents.splice(0..0, missing);

    let mut plan = Vec::new();
    let mut refused = Vec::new();
    for document in &documents {
        let act = act_for(session, document).await?;
        match judge(session, document, &act, &documents).await {
            Ok(()) => plan.push((document, act)),
            Err(error) => refused.push(format!("{}: {error}", document.source)),
        }
    }
    if !refused.is_empty() {
        anyhow::bail!("{}\nnothing was written", refused.join("\n"));
    }
    for (document, act) in plan {
        let word = if args.dry_run { would_be(&act) } else { carry_out(session, document, act).await? };
        let target = &document.target;
        let why = if document.value == implied_namespace(&target.name) { " (it was missing)" } else { "" };
        let tried = if args.dry_run { " (dry run)" } else { "" };
        session.console.print(format_args!("{target} {word}{why}{tried}"))?;
    }
    Ok(Exit::DONE)
}

/// A document for each namespace that is named, not declared and not there (rule S6).
async fn missing_namespaces(session: &Session, documents: &[Document]) -> anyhow::Result<Vec<Document>> {
    let kind = kinds::known(&session.registry, "namespace");
    let declared: BTreeSet<&str> = documents
        .iter()
        .filter(|d| std::ptr::eq(d.target.kind, kind))
        .map(|d| d.target.name.as_str())
        .collect();
    let named: BTreeSet<&str> = documents.iter().filter_map(|d| d.target.namespace.as_deref()).collect();
    let mut missing = Vec::new();
    for name in named.difference(&declared) {
        let target = session.target(kind, name);
        if session.client.find(&target).await?.is_none() {
            let value = implied_namespace(name);
            missing.push(Document { source: format!("namespace {name}"), target, value });
        }
    }
    Ok(missing)
}

fn implied_namespace(name: &str) -> Value {
    json!({"apiVersion": "core.ringleader.dev/v1", "kind": "Namespace", "metadata": {"name": name}})
}

async fn act_for(session: &Session, document: &Document) -> anyhow::Result<Act> {
    let declared = declared(&document.value, document.target.namespace.as_deref());
    Ok(match session.client.find(&document.target).await? {
        None => Act::Create(with_last_applied(declared)),
        Some(live) => Act::Patch { patch: patch(&declared, &live), live },
    })
}

/// Asks the server what it would say. What the other documents are about to bring is not missing.
async fn judge(
    session: &Session,
    document: &Document,
    act: &Act,
    all: &[Document],
) -> Result<(), ClientError> {
    match write(session, &document.target, act, Commit::DryRun).await {
        Ok(_) => Ok(()),
        Err(ClientError::Refused { target, mut status }) => {
            let brought = |name: &str| {
                all.iter().any(|other| {
                    other.target.name == name
                        && (other.target.namespace == document.target.namespace
                            || Some(name) == document.target.namespace.as_deref())
                })
            };
            if status.code == 404 && status.details.kind == "namespaces" && brought(&status.details.name) {
                return Ok(());
            }
            let causes = status.details.causes.len();
            status.details.causes.retain(|cause| {
                let pointer = format!("/{}", cause.field.replace('.', "/"));
                !(cause.reason == "FieldValueNotFound" && brought(text_at(&document.value, &pointer)))
            });
            if causes > 0 && status.details.causes.is_empty() {
                return Ok(());
            }
            Err(ClientError::Refused { target, status })
        }
        Err(error) => Err(error),
    }
}

async fn carry_out(session: &Session, document: &Document, act: Act) -> Result<&'static str, ClientError> {
    let written = write(session, &document.target, &act, Commit::Write).await?;
    let version = |object: &Value| text_at(object, "/metadata/resourceVersion").to_owned();
    Ok(match &act {
        Act::Create(_) => "created",
        Act::Patch { live, .. } if version(live) == version(&written) => "unchanged",
        Act::Patch { .. } => "configured",
    })
}

fn would_be(act: &Act) -> &'static str {
    match act {
        Act::Create(_) => "created",
        Act::Patch { patch, .. } if *patch == json!({}) => "unchanged",
        Act::Patch { .. } => "configured",
    }
}

async fn write(session: &Session, target: &Target, act: &Act, commit: Commit) -> Result<Value, ClientError> {
    match act {
        Act::Create(object) => session.client.create(target, object, commit).await,
        Act::Patch { patch, live } if *patch == json!({}) => Ok(live.clone()),
        Act::Patch { patch, .. } => session.client.merge_patch(target, patch, commit).await,
    }
}

/// The document as a person declares it: in its namespace, without what the server writes.
fn declared(document: &Value, namespace: Option<&str>) -> Value {
    let mut value = document.clone();
    if let Value::Object(fields) = &mut value {
        fields.remove("status");
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.retain(|field, _| !SERVER_WRITTEN.contains(&field.as_str()));
            if let Some(namespace) = namespace {
                metadata.insert("namespace".into(), namespace.into());
            }
            if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
                annotations.remove(LAST_APPLIED);
            }
        }
    }
    value
}

fn with_last_applied(mut declared: Value) -> Value {
    let text = declared.to_string();
    let annotations = &mut declared["metadata"]["annotations"];
    if !annotations.is_object() {
        *annotations = json!({});
    }
    annotations[LAST_APPLIED] = text.into();
    declared
}

/// The merge patch that makes `live` what is declared, as far as manifests ever declared it.
fn patch(declared: &Value, live: &Value) -> Value {
    let last: Value = live
        .pointer("/metadata/annotations")
        .and_then(|annotations| serde_json::from_str(annotations.get(LAST_APPLIED)?.as_str()?).ok())
        .unwrap_or(Value::Null);
    let desired = with_last_applied(declared.clone());
    difference(Some(&last), &desired, live).unwrap_or_else(|| json!({}))
}

/// What of `live` must change, or nothing.
fn difference(last: Option<&Value>, desired: &Value, live: &Value) -> Option<Value> {
    let (Value::Object(desired_fields), Value::Object(live_fields)) = (desired, live) else {
        return (desired != live).then(|| desired.clone());
    };
    let last_fields = last.and_then(Value::as_object);
    let mut patch = Map::new();
    for (field, wanted) in desired_fields {
        let before = last_fields.and_then(|fields| fields.get(field));
        let change = match live_fields.get(field) {
            Some(present) => difference(before, wanted, present),
            None if wanted.is_null() => None,
            None => Some(wanted.clone()),
        };
        patch.extend(change.map(|change| (field.clone(), change)));
    }
    for field in last_fields.into_iter().flat_map(Map::keys) {
        if !desired_fields.contains_key(field) && live_fields.contains_key(field) {
            patch.insert(field.clone(), Value::Null);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(declared: &Value) -> Value {
        with_last_applied(declared.clone())
    }

    #[test]
    fn what_left_the_manifest_leaves_the_object_and_what_others_wrote_stays() {
        let before = json!({"metadata": {"name": "p"}, "spec": {"size": {"max": 6}, "recycle": {}}});
        let mut live = applied(&before);
        live["spec"]["paused"] = true.into();
        live["spec"]["recycle"]["maxReuses"] = 20.into();
        let now = json!({"metadata": {"name": "p"}, "spec": {"size": {"max": 8}}});
        let mut patch = patch(&now, &live);
        let annotation = patch["metadata"]["annotations"][LAST_APPLIED].take();
        assert_eq!(annotation, now.to_string());
        assert_eq!(patch["spec"], json!({"size": {"max": 8}, "recycle": null}));
    }

    #[test]
    fn what_is_applied_already_needs_no_patch() {
        let declared = json!({"metadata": {"name": "p"}, "spec": {"size": {"max": 6}}});
        let mut live = applied(&declared);
        live["spec"]["warm"] = json!({"running": 0});
        live["status"] = json!({"phase": "Ready"});
        assert_eq!(patch(&declared, &live), json!({}));
    }

    #[test]
    fn an_object_as_it_was_read_can_be_applied_again() {
        let read = json!({
            "metadata": {"name": "p", "uid": "1", "resourceVersion": "7", "generation": 2},
            "spec": {"size": {"max": 6}}, "status": {"phase": "Ready"},
        });
        assert_eq!(
            declared(&read, Some("local")),
            json!({"metadata": {"name": "p", "namespace": "local"}, "spec": {"size": {"max": 6}}})
        );
    }
}

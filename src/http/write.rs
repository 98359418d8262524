//! Writes: a request becomes one `doors::Write` for the object's owner, and what the owner answers
//! becomes the reply. Nothing is judged here but the form of the request.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use serde_json::Value;
use ulid::Ulid;

use crate::actor::doors::{Refusal, Verb, Write, Written};
use crate::object::{FieldError, FieldReason, FieldValidation, Kind, Mutation, Part, Subject, other_uid};
use crate::view::{Key, Resource};

use super::body::{self, Decoded};
use super::negotiate::{Encoding, content_type};
use super::query::{self, Query, WriteOptions, unsupported};
use super::read::{self, Selection};
use super::reply::{self, Reply};
use super::route::Place;
use super::serve::Server;
use super::status::{self, Asked, Status, Target};

/// A request that wants to change something, its body not yet read.
#[derive(Debug)]
pub struct Change<'a> {
    pub server: &'a Arc<Server>,
    pub by: &'a Subject,
    pub headers: &'a HeaderMap,
    pub query: &'a Query,
    pub encoding: Encoding,
    pub body: Incoming,
}

const MERGE_PATCH: &str = "application/merge-patch+json";

/// What a body says, and what to tell the client about it.
struct Document {
    value: Value,
    warnings: Vec<String>,
}

/// POST to a collection.
pub async fn create(
    change: Change<'_>,
    kind: &'static Kind,
    namespace: Option<String>,
) -> Result<Reply, Status> {
    let options = WriteOptions::read(change.query, "CreateOptions")?;
    let mut place = Place { kind, namespace, name: String::new() };
    let Change { server, by, encoding, .. } = change;
    let Document { value, warnings } = change.document(&place, options).await?;
    place.name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let written = submit(server, by, &place, Verb::Create { body: value }, options).await?;
    Ok(answer(server, StatusCode::CREATED, &written, warnings, encoding))
}

/// PUT.
pub async fn replace(change: Change<'_>, place: Place, part: Part) -> Result<Reply, Status> {
    let options = WriteOptions::read(change.query, "UpdateOptions")?;
    let Change { server, by, encoding, .. } = change;
    let Document { value, warnings } = change.document(&place, options).await?;
    let verb = Verb::Update { name: place.name.clone(), mutation: Mutation::Replace(value), part };
    let written = submit(server, by, &place, verb, options).await?;
    Ok(answer(server, StatusCode::OK, &written, warnings, encoding))
}

/// PATCH, of the one sort there is so far.
pub async fn patch(change: Change<'_>, place: Place, part: Part) -> Result<Reply, Status> {
    if content_type(change.headers).is_none_or(|media_type| media_type.name() != MERGE_PATCH) {
        return Err(Status::unsupported_media_type(MERGE_PATCH));
    }
    let options = WriteOptions::read(change.query, "PatchOptions")?;
    if change.query.switch("force").is_some() {
        return Err(Status::invalid_option("PatchOptions", &not_for_merge_patch()));
    }
    let Change { server, by, encoding, .. } = change;
    let body = change.read_body().await?;
    let decoded = Decoded::from(Encoding::Json, &body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    if !decoded.value.is_object() {
        return Err(Status::bad_request("error decoding patch: a merge patch is a JSON object"));
    }
    let Document { value, warnings } = judged(decoded, place.target(Asked::Update), options)?;
    let verb = Verb::Update { name: place.name.clone(), mutation: Mutation::MergePatch(value), part };
    let written = submit(server, by, &place, verb, options).await?;
    Ok(answer(server, StatusCode::OK, &written, warnings, encoding))
}

/// DELETE of one object: a `Status` once it is gone, the object while finalizers hold it.
pub async fn delete(change: Change<'_>, place: Place) -> Result<Reply, Status> {
    let Change { server, by, encoding, .. } = change;
    let wish = DeleteWish::read(change).await?;
    let target = place.target(Asked::Delete);
    let uid = wish.uid.as_deref().map(|uid| known_uid(server, &place, uid)).transpose()?;
    let verb = Verb::Delete { name: place.name.clone(), uid, resource_version: wish.resource_version };
    let written = submit(server, by, &place, verb, wish.options()).await?;
    if !written.gone {
        return Ok(answer(server, StatusCode::OK, &written, Vec::new(), encoding));
    }
    let gone = status::deleted(target, written.resource.uid.to_string());
    let mut reply = encoding.reply(StatusCode::OK, &gone);
    reply::warn(&mut reply, &written.warnings);
    Ok(reply)
}

/// DELETE of a collection: one delete after the other, of what a list shows now and as the object
/// it is now. Answers that list.
pub async fn delete_all(change: Change<'_>, selection: Selection) -> Result<Reply, Status> {
    let Change { server, by, encoding, .. } = change;
    let wish = DeleteWish::read(change).await?;
    let listing = selection.list(server.view());
    for resource in &listing.items {
        let Key { namespace, name, .. } = &resource.key;
        let namespace = selection.kind.namespaced.then(|| namespace.clone());
        let place = Place { kind: selection.kind, namespace, name: name.clone() };
        let verb = Verb::Delete { name: name.clone(), uid: Some(resource.uid), resource_version: None };
        match submit_raw(server, by, &place, verb, wish.options()).await {
            // Gone already, or another one by now: either way this one is no more.
            Ok(_) | Err(Refusal::NotFound | Refusal::Conflict(_)) => {}
            Err(refusal) => return Err(place.target(Asked::Delete).refused(refusal)),
        }
    }
    Ok(read::list_of(&listing, selection.kind, encoding))
}

impl Change<'_> {
    /// Reads a body that is an object.
    async fn document(self, place: &Place, options: WriteOptions) -> Result<Document, Status> {
        let encoding = Encoding::of_body(self.headers)?;
        let body = self.read_body().await?;
        let kind = place.kind.kind;
        let unrecognized = |why: &str| {
            Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind}): {why}"
            ))
        };
        let decoded = Decoded::from(encoding, &body).map_err(|error| unrecognized(&error))?;
        if !decoded.value.is_object() {
            return Err(unrecognized("it is no object"));
        }
        judged(decoded, place.target(Asked::Update), options)
    }

    async fn read_body(self) -> Result<hyper::body::Bytes, Status> {
        let options = self.server.options();
        body::read(self.body, options.body_max_bytes, options.body_within).await
    }
}

/// Keys that stand twice are refused, warned of or let pass, as unknown fields are.
fn judged(decoded: Decoded, target: Target<'_>, options: WriteOptions) -> Result<Document, Status> {
    let complaints = decoded.duplicates.iter().map(|path| format!("duplicate field {path:?}"));
    let warnings = match options.field_validation {
        FieldValidation::Strict if !decoded.duplicates.is_empty() => return Err(target.strict(complaints)),
        FieldValidation::Strict | FieldValidation::Ignore => Vec::new(),
        FieldValidation::Warn => complaints.collect(),
    };
    Ok(Document { value: decoded.value, warnings })
}

async fn submit(
    server: &Server,
    by: &Subject,
    place: &Place,
    verb: Verb,
    options: WriteOptions,
) -> Result<Written, Status> {
    let asked = match verb {
        Verb::Create { .. } => Asked::Create,
        Verb::Update { .. } => Asked::Update,
        Verb::Delete { .. } => Asked::Delete,
    };
    submit_raw(server, by, place, verb, options).await.map_err(|refusal| place.target(asked).refused(refusal))
}

/// Hands the write over and waits for the owner, but not for ever.
async fn submit_raw(
    server: &Server,
    by: &Subject,
    place: &Place,
    verb: Verb,
    options: WriteOptions,
) -> Result<Written, Refusal> {
    let write = Write {
        kind: place.kind,
        namespace: place.namespace.clone(),
        by: by.clone(),
        verb,
        dry_run: options.dry_run,
        field_validation: options.field_validation,
    };
    let answer = tokio::time::timeout(server.options().answer_within, server.backend().write(write));
    answer.await.unwrap_or(Err(Refusal::Timeout))
}

fn answer(
    server: &Server,
    code: StatusCode,
    written: &Written,
    mut warnings: Vec<String>,
    encoding: Encoding,
) -> Reply {
    let mut reply = read::object(code, server.view(), &written.resource, encoding);
    warnings.extend_from_slice(&written.warnings);
    reply::warn(&mut reply, &warnings);
    reply
}

/// What `DeleteOptions` say, in the body or else in the query.
#[derive(Debug)]
struct DeleteWish {
    uid: Option<String>,
    resource_version: Option<u64>,
    dry_run: bool,
}

impl DeleteWish {
    /// Reads them. Grace periods are tolerated, and so are all three propagation policies: what
    /// belongs to an object goes with it, and its owner sees to that.
    async fn read(change: Change<'_>) -> Result<Self, Status> {
        const OPTIONS: &str = "DeleteOptions";
        let (query, encoding) = (change.query, Encoding::of_body(change.headers));
        let body = change.read_body().await?;
        let decoded = if body.is_empty() { Value::Null } else { delete_options(encoding?, &body)? };
        let text = |pointer: &str| decoded.pointer(pointer).and_then(Value::as_str);

        let policy = text("/propagationPolicy").or_else(|| query.get("propagationPolicy"));
        if let Some(policy) = policy.filter(|policy| !["Foreground", "Background", "Orphan"].contains(policy))
        {
            let message = format!(
                "Unsupported value: {policy:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            );
            return Err(unsupported(OPTIONS, "propagationPolicy", message));
        }
        let stages = decoded["dryRun"].as_array().into_iter().flatten();
        let stages: Vec<&str> = stages.map(|stage| stage.as_str().unwrap_or_default()).collect();
        let version = text("/preconditions/resourceVersion").filter(|version| !version.is_empty());
        Ok(Self {
            uid: text("/preconditions/uid").filter(|uid| !uid.is_empty()).map(str::to_owned),
            resource_version: version.map(precondition_version).transpose()?,
            dry_run: query::dry_run(&stages, OPTIONS)? || WriteOptions::read(query, OPTIONS)?.dry_run,
        })
    }

    fn options(&self) -> WriteOptions {
        WriteOptions { dry_run: self.dry_run, field_validation: FieldValidation::Ignore }
    }
}

fn delete_options(encoding: Encoding, body: &[u8]) -> Result<Value, Status> {
    Decoded::from(encoding, body)
        .map(|decoded| decoded.value)
        .map_err(|error| Status::bad_request(format!("the body is no DeleteOptions: {error}")))
}

fn precondition_version(version: &str) -> Result<u64, Status> {
    version.parse().map_err(|_| {
        Status::bad_request(format!(
            "preconditions.resourceVersion: {version:?} is no version of this server"
        ))
    })
}

/// The uid of a precondition. One that is no uid of ours names no object there ever was, which is
/// said as for any other uid that does not match.
fn known_uid(server: &Server, place: &Place, uid: &str) -> Result<Ulid, Status> {
    uid.parse().map_err(|_| {
        let target = place.target(Asked::Delete);
        let resource = server.view().get(&place.key());
        let other = |resource: Arc<Resource>| target.conflict(&other_uid(uid, resource.uid));
        resource.map_or_else(|| target.not_found(), other)
    })
}

fn not_for_merge_patch() -> FieldError {
    let message = "Forbidden: may not be specified for non-apply patch";
    FieldError::new("force", FieldReason::Forbidden, message)
}

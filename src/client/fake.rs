//! A small server for tests: the API's shapes over a unix socket, any kind, in memory. It knows no
//! rules; what a pool would do, a test makes happen by `put` and `remove`, or by a reaction.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What a write by a client makes happen, beside being stored.
pub type Reaction = fn(&mut Store, &Value);

/// A server, for as long as it is kept.
pub struct Fake {
    dir: tempfile::TempDir,
    store: Arc<Mutex<Store>>,
    serving: tokio::task::JoinHandle<()>,
}

/// What the server holds.
pub struct Store {
    version: u64,
    /// By the path of their collection, and their name.
    objects: BTreeMap<(String, String), Value>,
    history: Vec<(String, Value)>,
    watches: Vec<(String, Option<String>, UnboundedSender<Bytes>)>,
    /// `METHOD path?query body`, as they came.
    pub requests: Vec<String>,
    reaction: Reaction,
    /// Writes whose path contains the text are refused so.
    refusals: Vec<(String, Value)>,
    /// Sent with every write.
    warning: Option<String>,
    /// What every pool has counted, where this server counts.
    pub usage: Option<Value>,
}

impl Fake {
    /// Starts one that reacts to writes.
    pub fn start(reaction: Reaction) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let listener = UnixListener::bind(dir.path().join("rl.sock")).expect("a socket");
        let store = Arc::new(Mutex::new(Store {
            version: 100,
            objects: BTreeMap::new(),
            history: Vec::new(),
            watches: Vec::new(),
            requests: Vec::new(),
            reaction,
            refusals: Vec::new(),
            warning: None,
            usage: None,
        }));
        let shared = Arc::clone(&store);
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let store = Arc::clone(&shared);
                let service = service_fn(move |request| {
                    let store = Arc::clone(&store);
                    async move { Ok::<_, Infallible>(answer(&store, request).await) }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection.with_upgrades());
            }
        });
        let fake = Self { dir, store, serving };
        fake.put(json!({"apiVersion": "core.ringleader.dev/v1", "kind": "Namespace",
            "metadata": {"name": "local"}}));
        fake
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("rl.sock")
    }

    /// A directory for the client's own files.
    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores an object, as its owner would.
    pub fn put(&self, object: Value) {
        self.store().put(object);
    }

    /// Refuses the writes whose path contains `part`.
    pub fn refuse(&self, part: &str, code: u16, status: Value) {
        let mut status = status;
        status["code"] = code.into();
        self.store().refusals.push((part.to_owned(), status));
    }

    /// Warns of every write.
    pub fn warn(&self, text: &str) {
        self.store().warning = Some(text.to_owned());
    }

    /// Ends every open watch, as a server does that stops.
    pub fn end_watches(&self) {
        self.store().watches.clear();
    }

    /// The requests that wrote something.
    pub fn writes(&self) -> Vec<String> {
        let store = self.store();
        store
            .requests
            .iter()
            .filter(|line| !line.starts_with("GET") && !line.contains("dryRun"))
            .cloned()
            .collect()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Store {
    /// Stores an object and tells the watches.
    pub fn put(&mut self, mut object: Value) {
        let place = place_of(&object);
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        if object.pointer("/metadata/uid").is_none() {
            object["metadata"]["uid"] = format!("uid-{}", self.version).into();
        }
        let change = if self.objects.contains_key(&place) { "MODIFIED" } else { "ADDED" };
        self.objects.insert(place.clone(), object.clone());
        self.tell(&place.0, change, object);
    }

    /// Removes an object and tells the watches.
    pub fn remove(&mut self, object: &Value) {
        let place = place_of(object);
        self.version += 1;
        if let Some(mut last) = self.objects.remove(&place) {
            last["metadata"]["resourceVersion"] = self.version.to_string().into();
            self.tell(&place.0, "DELETED", last);
        }
    }

    fn tell(&mut self, collection: &str, change: &str, object: Value) {
        let event = json!({"type": change, "object": object});
        self.history.push((collection.to_owned(), event.clone()));
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.watches.retain(|(watched, only, sender)| {
            let wanted = watched == collection && only.as_ref().is_none_or(|only| *only == name);
            !wanted || sender.send(line(&event)).is_ok()
        });
    }

    fn refusal(&self, path: &str) -> Option<Value> {
        self.refusals.iter().find(|(part, _)| path.contains(part)).map(|(_, status)| status.clone())
    }
}

/// A request's path, taken apart.
struct Route {
    collection: String,
    plural: String,
    name: Option<String>,
    tail: Option<String>,
}

fn route(path: &str) -> Option<Route> {
    let parts: Vec<&str> = path.strip_prefix("/apis/")?.split('/').collect();
    let depth = if parts.get(2) == Some(&"namespaces") && parts.len() >= 5 { 5 } else { 3 };
    let part = |at: usize| parts.get(at).map(|part| (*part).to_owned());
    let collection = format!("/apis/{}", parts.get(..depth)?.join("/"));
    Some(Route { collection, plural: part(depth - 1)?, name: part(depth), tail: part(depth + 1) })
}

fn place_of(object: &Value) -> (String, String) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = crate::object::registry();
    let kind = kind.by_type(text("/apiVersion"), text("/kind")).expect("a kind of the registry");
    let namespace = match text("/metadata/namespace") {
        "" if kind.namespaced => "local",
        namespace => namespace,
    };
    let target = super::Target::new(kind, namespace, text("/metadata/name"));
    (target.collection(), target.name)
}

async fn answer(store: &Mutex<Store>, mut request: Request<Incoming>) -> Response<Answer> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let upgrading = request.headers().contains_key("upgrade").then(|| hyper::upgrade::on(&mut request));
    let method = request.method().clone();
    let body =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    store.requests.push(format!("{method} {path}?{query} {}", String::from_utf8_lossy(&body)));
    if path == "/ringleader/v1/status" {
        return json_answer(StatusCode::OK, &health());
    }
    let Some(route) = route(&path) else { return not_found("", "") };
    if method != Method::GET
        && let Some(status) = store.refusal(&path)
    {
        let code =
            status["code"].as_u64().and_then(|code| StatusCode::from_u16(u16::try_from(code).ok()?).ok());
        return json_answer(code.expect("a status code"), &status);
    }
    let place = (route.collection.clone(), route.name.clone().unwrap_or_default());
    if route.tail.as_deref() == Some("ssh") {
        let known = store.objects.contains_key(&place);
        return if known { echo(upgrading) } else { not_found(&route.plural, &place.1) };
    }
    if route.tail.as_deref() == Some("usage") {
        return match store.usage.as_ref().filter(|_| store.objects.contains_key(&place)) {
            Some(usage) => json_answer(StatusCode::OK, usage),
            None => not_found(&route.plural, &place.1),
        };
    }
    let mut answer = match (method, route.name.is_some()) {
        (Method::GET, false) if query.contains("watch=true") => watch(&mut store, &route, &query),
        (Method::GET, false) => list(&store, &route, &query),
        (Method::GET, true) => found(&store, &place, &route.plural),
        (Method::POST, false) => create(&mut store, &route, &query, &body),
        (Method::PATCH, true) => patch(&mut store, &place, &route.plural, &query, &body),
        (Method::DELETE, true) => delete(&mut store, &place, &route.plural),
        _ => not_found(&route.plural, &place.1),
    };
    if let Some(warning) = store.warning.as_ref().filter(|_| query.contains("fieldValidation")) {
        let header = format!("299 - \"{warning}\"").parse().expect("a header's value");
        answer.headers_mut().insert("warning", header);
    }
    answer
}

fn health() -> Value {
    json!({"notReady": [], "instance": "01JDTEST", "dataDir": "/var/lib/ringleader", "version": "0.1.0",
        "providers": [{"name": "sandbox", "state": "available", "message": ""}]})
}

fn found(store: &Store, place: &(String, String), plural: &str) -> Response<Answer> {
    match store.objects.get(place) {
        Some(object) => json_answer(StatusCode::OK, object),
        None => not_found(plural, &place.1),
    }
}

fn list(store: &Store, route: &Route, query: &str) -> Response<Answer> {
    let everywhere = format!("/{}", route.plural);
    let cluster = !route.collection.contains("/namespaces/");
    let inside =
        |collection: &str| collection == route.collection || (cluster && collection.ends_with(&everywhere));
    let items: Vec<&Value> = store
        .objects
        .iter()
        .filter(|((collection, _), object)| inside(collection) && selected(query, object))
        .map(|(_, object)| object)
        .collect();
    let version = store.version.to_string();
    json_answer(StatusCode::OK, &json!({"metadata": {"resourceVersion": version}, "items": items}))
}

/// Only equality of one label is known here.
fn selected(query: &str, object: &Value) -> bool {
    let Some(selector) = parameter(query, "labelSelector") else { return true };
    let selector = selector.replace("%3D", "=").replace("%2F", "/");
    let (label, value) = selector.split_once('=').expect("an equality");
    object.pointer("/metadata/labels").and_then(|labels| labels.get(label)?.as_str()) == Some(value)
}

fn watch(store: &mut Store, route: &Route, query: &str) -> Response<Answer> {
    let since: u64 = parameter(query, "resourceVersion").and_then(|text| text.parse().ok()).unwrap_or(0);
    let only = parameter(query, "fieldSelector").map(|text| text.replace("metadata.name%3D", ""));
    let (sender, receiver) = unbounded_channel();
    for (_, event) in store.history.iter().filter(|(collection, _)| *collection == route.collection) {
        let text = |field: &str| event["object"]["metadata"][field].as_str().unwrap_or_default();
        let later = text("resourceVersion").parse::<u64>().is_ok_and(|version| version > since);
        if later && only.as_deref().is_none_or(|only| only == text("name")) {
            // The receiver is in this very function.
            let _ = sender.send(line(event));
        }
    }
    store.watches.push((route.collection.clone(), only, sender));
    Response::new(Answer(receiver))
}

fn create(store: &mut Store, route: &Route, query: &str, body: &[u8]) -> Response<Answer> {
    let mut object: Value = serde_json::from_slice(body).expect("a JSON body");
    if let Some(prefix) = object.pointer("/metadata/generateName").and_then(Value::as_str) {
        object["metadata"]["name"] = format!("{prefix}x7k2p").into();
    }
    let place = place_of(&object);
    if store.objects.contains_key(&place) {
        let message = format!("{} \"{}\" already exists", route.plural, place.1);
        return json_answer(StatusCode::CONFLICT, &json!({"reason": "AlreadyExists", "message": message}));
    }
    if query.contains("dryRun=All") {
        return json_answer(StatusCode::CREATED, &object);
    }
    if route.plural == "devices" {
        object["spec"]["owner"] = "local".into();
    }
    store.put(object.clone());
    let stored = store.objects[&place].clone();
    (store.reaction)(store, &stored);
    json_answer(StatusCode::CREATED, &stored)
}

fn patch(
    store: &mut Store,
    place: &(String, String),
    plural: &str,
    query: &str,
    body: &[u8],
) -> Response<Answer> {
    let Some(present) = store.objects.get(place).cloned() else { return not_found(plural, &place.1) };
    let mut object = present.clone();
    merge(&mut object, &serde_json::from_slice(body).expect("a JSON body"));
    if query.contains("dryRun=All") || object == present {
        return json_answer(StatusCode::OK, &object);
    }
    store.put(object);
    let stored = store.objects[place].clone();
    (store.reaction)(store, &stored);
    json_answer(StatusCode::OK, &stored)
}

fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (field, change) in changes {
        if change.is_null() {
            object.as_object_mut().expect("an object").remove(field);
        } else {
            merge(&mut object[field], change);
        }
    }
}

fn delete(store: &mut Store, place: &(String, String), plural: &str) -> Response<Answer> {
    let Some(mut object) = store.objects.get(place).cloned() else { return not_found(plural, &place.1) };
    if object.pointer("/metadata/finalizers/0").is_some() {
        object["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z".into();
        store.put(object);
        return json_answer(StatusCode::OK, &store.objects[place]);
    }
    store.remove(&object);
    json_answer(StatusCode::OK, &json!({"kind": "Status", "status": "Success"}))
}

/// A door behind which every byte comes back, after a greeting.
fn echo(upgrading: Option<hyper::upgrade::OnUpgrade>) -> Response<Answer> {
    let upgrading = upgrading.expect("the door is only for upgrades");
    tokio::spawn(async move {
        let mut stream = TokioIo::new(upgrading.await.expect("upgraded"));
        stream.write_all(b"SSH-2.0-fake\r\n").await.expect("written");
        let mut buffer = [0; 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            stream.write_all(&buffer[..count]).await.expect("written");
        }
    });
    let mut response = json_answer(StatusCode::SWITCHING_PROTOCOLS, &Value::Null);
    *response.body_mut() = Answer(unbounded_channel().1);
    response.headers_mut().insert("connection", "upgrade".parse().expect("a header's value"));
    response.headers_mut().insert("upgrade", "ringleader-ssh".parse().expect("a header's value"));
    response
}

fn not_found(plural: &str, name: &str) -> Response<Answer> {
    let status = json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": format!("{plural} \"{name}\" not found"), "details": {"name": name, "kind": plural}});
    json_answer(StatusCode::NOT_FOUND, &status)
}

fn json_answer(code: StatusCode, value: &Value) -> Response<Answer> {
    let (sender, receiver) = unbounded_channel();
    // The receiver is in this very function.
    let _ = sender.send(value.to_string().into());
    let mut response = Response::new(Answer(receiver));
    *response.status_mut() = code;
    response
}

fn parameter(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| Some(pair.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

fn line(event: &Value) -> Bytes {
    format!("{event}\n").into()
}

/// A body that ends when its sender does.
struct Answer(UnboundedReceiver<Bytes>);

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

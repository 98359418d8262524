//! The API as a client sees it: a real server on a unix socket before a small owner of all kinds,
//! asked by a real HTTP client. What Kubernetes answers to the same is in `kube-api.md`.

mod discovery;
mod double;
mod images;
mod limits;
mod metrics;
mod reading;
mod ssh;
mod watching;
mod writing;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::serve::{Options, serve};
use crate::actor::doors::Backend;
use double::House;

/// Where pools of the namespace `local` stand.
const POOLS: &str = "/apis/workstations.ringleader.dev/v1/namespaces/local/workstationpools";
/// No test waits longer for what must come.
const DEADLINE: Duration = Duration::from_secs(20);

/// A server and everything a test does with it.
struct Api {
    house: Arc<House>,
    socket: std::path::PathBuf,
    shutdown: watch::Sender<bool>,
    serving: JoinHandle<()>,
    _dir: tempfile::TempDir,
}

/// What came back.
#[derive(Debug)]
struct Answer {
    code: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Api {
    fn start() -> Self {
        Self::start_with(|_| {})
    }

    fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("rl.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let house = Arc::new(House::new());
        let (shutdown, stopping) = watch::channel(false);
        let mut options = Options::default();
        change(&mut options);
        let serving = tokio::spawn(serve(house.clone(), listener, options, stopping));
        Self { house, socket, shutdown, serving, _dir: dir }
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, &[], "").await
    }

    /// Sends a JSON body.
    async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        self.ask(method, path, &[(CONTENT_TYPE, kind)], body.to_string()).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let response = self.open(method, path, headers, body).await;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.expect("the whole body comes").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("bodies are UTF-8");
        Answer { code: head.status, headers: head.headers, text }
    }

    /// Sends a request and reads only the head of the answer.
    async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(HeaderName, &str)],
        body: impl Into<Bytes>,
    ) -> Response<Incoming> {
        let stream = UnixStream::connect(&self.socket).await.expect("the server listens");
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("it speaks HTTP");
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::builder().method(method).uri(path).header("host", "rl");
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a proper request");
        tokio::time::timeout(DEADLINE, sender.send_request(request))
            .await
            .expect("in time")
            .expect("answered")
    }

    /// The version of the newest write.
    fn house_version(&self) -> u64 {
        self.house.view().version()
    }

    async fn create_pool(&self, name: &str) -> Value {
        let answer = self.send(Method::POST, POOLS, &pool(name)).await;
        assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
        answer.json()
    }
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    /// Asserts that this is exactly Kubernetes' refusal.
    fn refuses(&self, code: u16, reason: &str, message: &str, details: &Value) {
        let mut expected = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": details, "code": code,
        });
        if details.is_null() {
            expected.as_object_mut().unwrap().remove("details");
        }
        assert_eq!(self.json(), expected);
        assert_eq!(self.code.as_u16(), code);
        assert_eq!(self.header("content-type"), "application/json");
    }
}

/// A pool that is right.
fn pool(name: &str) -> Value {
    json!({
        "apiVersion": "workstations.ringleader.dev/v1", "kind": "WorkstationPool",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {}}, "size": {"max": 6}},
    })
}

/// The details that refusals about one pool carry.
fn pool_details(name: &str) -> Value {
    json!({"name": name, "group": "workstations.ringleader.dev", "kind": "workstationpools"})
}

fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().expect("a string").parse().expect("a decimal number")
}

//! Whether the daemon lives, whether it is ready and why not, and which version it is.

use hyper::StatusCode;
use serde_json::{Value, json};

use crate::actor::doors::Health;

use super::reply::{self, Reply};

/// The Kubernetes API level that clients compare their own with; a far one only makes them warn.
const KUBERNETES_MINOR: u32 = 33;

/// `/livez` and `/healthz`: whoever answers is alive.
pub fn live() -> Reply {
    reply::text(StatusCode::OK, "ok")
}

/// `/readyz`: `ok`, or every reason why not, one a line.
pub fn ready(health: &Health) -> Reply {
    if health.not_ready.is_empty() {
        return reply::text(StatusCode::OK, "ok");
    }
    let reasons = health.not_ready.join("\nnot ready: ");
    reply::text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {reasons}\n"))
}

/// `/ringleader/v1/status`.
pub fn status(health: &Health) -> Reply {
    reply::json(StatusCode::OK, health)
}

/// `/version`. Clients read major, minor and gitVersion as a semantic version.
pub fn version() -> Reply {
    reply::json(StatusCode::OK, &version_info())
}

fn version_info() -> Value {
    json!({
        "major": "1",
        "minor": KUBERNETES_MINOR.to_string(),
        "gitVersion": format!("v1.{KUBERNETES_MINOR}.0+ringleader-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, go_architecture(std::env::consts::ARCH)),
    })
}

/// The name that Kubernetes' tools know a processor by.
fn go_architecture(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

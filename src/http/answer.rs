//! One request, from its head to its reply: who asks, what for, and which step answers.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, HeaderName, HeaderValue, UPGRADE};
use hyper::{Method, Request, StatusCode};

use crate::clock;
use crate::object::{Kind, Part, Subject};

use super::negotiate::Encoding;
use super::peer::Peer;
use super::query::Query;
use super::read::Selection;
use super::reply::{self, Reply};
use super::route::{Place, Route, Subresource};
use super::serve::Server;
use super::status::Status;
use super::write::Change;
use super::{health, images, metrics, read, ssh, watch, write};

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Answers one request. Never fails: what goes wrong is a `Status`.
pub async fn answer(server: &Arc<Server>, peer: &Peer, request: Request<Incoming>) -> Reply {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let started_us = clock::monotonic_us();
    let mut reply = match respond(server, peer, request).await {
        Ok(reply) => reply,
        Err(status) => reply::refusal(&status),
    };
    let audit_id = audit_id();
    let took_us = clock::monotonic_us().saturating_sub(started_us);
    metrics::count(server, &method, reply.status(), took_us);
    // The query is left out: selectors may name what is nobody's business.
    tracing::debug!(%peer, %method, path, code = reply.status().as_u16(), took_ms = took_us / 1000, audit_id, "answered");
    add_common_headers(&mut reply, &audit_id);
    reply
}

async fn respond(server: &Arc<Server>, peer: &Peer, request: Request<Incoming>) -> Result<Reply, Status> {
    let route = Route::of(request.uri().path(), server.backend().registry());
    let reading = matches!(*request.method(), Method::GET | Method::HEAD);
    // These tell nothing about anybody, and a full house must not look like a dead one.
    match route {
        Route::Live if reading => return Ok(health::live()),
        Route::Ready if reading => return Ok(health::ready(&server.backend().health())),
        Route::Version if reading => return Ok(health::version()),
        Route::Metrics if reading => return Ok(metrics::scrape(server, request.headers())),
        _ => {}
    }
    let by = peer.subject()?;
    let _permit = server.admit_request().await?;
    match route {
        Route::Nowhere => Ok(reply::nowhere()),
        Route::Collection { kind, namespace } => collection(server, by, request, kind, namespace).await,
        Route::Object { place, subresource } => object(server, by, request, place, subresource).await,
        Route::RefreshImage(_) if request.method() != Method::POST => Ok(not_allowed("POST")),
        Route::RefreshImage(name) => images::refresh(server, by, name).await,
        _ if !reading => Ok(not_allowed("GET, HEAD")),
        Route::Watch { kind, namespace, name } => {
            let query = Query::parse(request.uri().query());
            let selection = Selection::read(kind, namespace, &query)?.only(name);
            watch::start(server, selection, &query)
        }
        Route::CoreVersions => server.discovery().core(request.headers()),
        Route::Groups => server.discovery().groups(request.headers()),
        Route::Group(group) => Ok(server.discovery().group(&group)),
        Route::Resources { group, version } => Ok(server.discovery().resources(&group, &version)),
        Route::Images => Ok(images::list(server)),
        Route::Health => Ok(health::status(&server.backend().health())),
        Route::Live => Ok(health::live()),
        Route::Ready => Ok(health::ready(&server.backend().health())),
        Route::Version => Ok(health::version()),
        Route::Metrics => Ok(metrics::scrape(server, request.headers())),
    }
}

/// Lists, watches, creates, deletes of many.
async fn collection(
    server: &Arc<Server>,
    by: &Subject,
    request: Request<Incoming>,
    kind: &'static Kind,
    namespace: Option<String>,
) -> Result<Reply, Status> {
    let (head, body) = request.into_parts();
    let query = Query::parse(head.uri.query());
    let method = head.method;
    let all_namespaces = kind.namespaced && namespace.is_none();
    if matches!(method, Method::GET | Method::HEAD) {
        let encoding = Encoding::accepted(&head.headers)?;
        let selection = Selection::read(kind, namespace, &query)?;
        return if query.switch("watch").unwrap_or(false) {
            watch::start(server, selection, &query)
        } else {
            read::list(server.view(), &selection, &query, encoding)
        };
    }
    if all_namespaces {
        return Ok(not_allowed("GET, HEAD"));
    }
    if !matches!(method, Method::POST | Method::DELETE) {
        return Ok(not_allowed("GET, HEAD, POST, DELETE"));
    }
    let encoding = Encoding::accepted(&head.headers)?;
    let change = Change { server, by, headers: &head.headers, query: &query, encoding, body };
    if method == Method::POST {
        write::create(change, kind, namespace).await
    } else {
        write::delete_all(change, Selection::read(kind, namespace, &query)?).await
    }
}

/// One object, its status or its SSH door.
async fn object(
    server: &Arc<Server>,
    by: &Subject,
    mut request: Request<Incoming>,
    place: Place,
    subresource: Subresource,
) -> Result<Reply, Status> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (head, body) = request.into_parts();
    let (query, method) = (Query::parse(head.uri.query()), head.method);
    let part = match subresource {
        Subresource::Ssh => {
            if !matches!(method, Method::GET | Method::POST) {
                return Ok(not_allowed("GET, POST"));
            }
            return ssh::open(server, by, place, &head.headers, upgrade).await;
        }
        Subresource::None => Part::Main,
        Subresource::Status => Part::Status,
    };
    let encoding = Encoding::accepted(&head.headers)?;
    if matches!(method, Method::GET | Method::HEAD) {
        return read::get(server.view(), &place, &query, encoding);
    }
    let change = Change { server, by, headers: &head.headers, query: &query, encoding, body };
    match (method, part) {
        (Method::PUT, part) => write::replace(change, place, part).await,
        (Method::PATCH, part) => write::patch(change, place, part).await,
        (Method::DELETE, Part::Main) => write::delete(change, place).await,
        (_, Part::Main) => Ok(not_allowed("GET, HEAD, PUT, PATCH, DELETE")),
        (_, Part::Status) => Ok(not_allowed("GET, HEAD, PUT, PATCH")),
    }
}

fn not_allowed(allowed: &'static str) -> Reply {
    let mut reply = reply::refusal(&Status::method_not_allowed());
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    reply
}

fn add_common_headers(reply: &mut Reply, audit_id: &str) {
    let upgrade_required = reply.status() == StatusCode::UPGRADE_REQUIRED;
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Ok(audit_id) = HeaderValue::from_str(audit_id) {
        headers.insert(AUDIT_ID, audit_id);
    }
    if upgrade_required {
        headers.insert(UPGRADE, HeaderValue::from_static(ssh::PROTOCOL));
    }
}

/// A random UUID (RFC 9562, version 4): what the log and the client call this request.
fn audit_id() -> String {
    let bits = clock::entropy() & !(0xf << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_id_is_a_random_uuid() {
        let (one, other) = (audit_id(), audit_id());
        assert_ne!(one, other);
        assert_eq!(one.len(), 36);
        assert_eq!(&one[14..15], "4");
        assert!(["8", "9", "a", "b"].contains(&&one[19..20]), "{one}");
    }
}

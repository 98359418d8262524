//! One HTTP exchange over a connection of its own.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HOST, UPGRADE, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::{Address, ClientError, Status, Target};

/// The server gives up after 30 s and says so; this is for one that says nothing at all.
const ANSWER_WITHIN_SECS: u64 = 60;

/// A request before it is sent.
pub(super) struct Ask<'a> {
    pub method: Method,
    pub path: String,
    pub content_type: &'static str,
    pub body: Vec<u8>,
    pub upgrade: Option<&'static str>,
    pub answer_within_secs: u64,
    /// What it is about, for the error's words.
    pub target: Option<&'a Target>,
}

impl<'a> Ask<'a> {
    pub fn get(path: String) -> Self {
        Self {
            method: Method::GET,
            path,
            content_type: "application/json",
            body: Vec::new(),
            upgrade: None,
            answer_within_secs: ANSWER_WITHIN_SECS,
            target: None,
        }
    }

    pub fn with(method: Method, path: String, body: &serde_json::Value) -> Self {
        Self { method, body: body.to_string().into_bytes(), ..Self::get(path) }
    }

    pub fn about(mut self, target: &'a Target) -> Self {
        self.target = Some(target);
        self
    }
}

/// Sends, and returns the response once its head is there and good. Everything but success (and
/// the upgrade asked for) is an error.
pub(super) async fn send(address: &Address, ask: Ask<'_>) -> Result<Response<Incoming>, ClientError> {
    let (_, stream) = address.connect().await?;
    let target = ask.target.cloned();
    let (asked_upgrade, within_secs) = (ask.upgrade.is_some(), ask.answer_within_secs);
    let exchange = async {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection.with_upgrades());
        sender.send_request(request(ask)?).await.map_err(broken)
    };
    let response = within(within_secs, exchange).await?;
    let status = response.status();
    if (status.is_success() && !asked_upgrade) || status == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(response);
    }
    let body = whole(response).await?;
    Err(ClientError::Refused { target, status: Box::new(refused(status, &body)) })
}

/// Reads the whole body as JSON.
pub(super) async fn json<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T, ClientError> {
    let body = whole(response).await?;
    serde_json::from_slice(&body).map_err(|error| ClientError::NotUnderstood(error.to_string()))
}

/// Takes over the connection after 101: the stream, and the bytes that came behind the head.
pub(super) async fn upgraded(response: Response<Incoming>) -> Result<(UnixStream, Bytes), ClientError> {
    let upgraded = hyper::upgrade::on(response).await.map_err(broken)?;
    let parts = upgraded
        .downcast::<TokioIo<UnixStream>>()
        .map_err(|_| ClientError::NotUnderstood("an upgrade of another transport".into()))?;
    Ok((parts.io.into_inner(), parts.read_buf))
}

/// The texts of `Warning: 299 - "text"` headers.
pub(super) fn warnings(response: &Response<Incoming>) -> Vec<String> {
    let headers = response.headers().get_all(hyper::header::WARNING);
    headers.iter().filter_map(|value| warning_text(value.to_str().ok()?)).collect()
}

fn warning_text(header: &str) -> Option<String> {
    let quoted = &header[header.find('"')? + 1..];
    let mut text = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
}

fn request(ask: Ask<'_>) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut builder = Request::builder()
        .method(ask.method)
        .uri(ask.path)
        .header(HOST, "ringleader")
        .header(USER_AGENT, concat!("rl/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/json");
    if !ask.body.is_empty() {
        builder = builder.header(CONTENT_TYPE, ask.content_type);
    }
    if let Some(protocol) = ask.upgrade {
        builder = builder.header(CONNECTION, "upgrade").header(UPGRADE, protocol);
    }
    builder.body(Full::new(ask.body.into())).map_err(|error| ClientError::NotUnderstood(error.to_string()))
}

fn refused(code: StatusCode, body: &[u8]) -> Status {
    let mut status: Status = serde_json::from_slice(body).unwrap_or_else(|_| Status {
        message: String::from_utf8_lossy(body).trim().to_owned(),
        ..Status::default()
    });
    status.code = code.as_u16();
    status
}

async fn whole(response: Response<Incoming>) -> Result<Bytes, ClientError> {
    let body = within(ANSWER_WITHIN_SECS, async { response.into_body().collect().await.map_err(broken) });
    Ok(body.await?.to_bytes())
}

async fn within<T>(
    secs: u64,
    answer: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    tokio::time::timeout(Duration::from_secs(secs), answer).await.unwrap_or(Err(ClientError::Timeout(secs)))
}

pub(super) fn broken(error: hyper::Error) -> ClientError {
    ClientError::Broken(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::warning_text;

    #[test]
    fn a_warning_header_gives_its_text_without_the_quoting() {
        assert_eq!(
            warning_text(r#"299 - "unknown field \"spec.bogus\"""#).as_deref(),
            Some(r#"unknown field "spec.bogus""#)
        );
        assert_eq!(warning_text("299 - none"), None);
    }
}

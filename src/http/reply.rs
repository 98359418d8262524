//! What goes back: whole bodies, and streams of watch events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use super::status::Status;

/// An answer.
pub type Reply = Response<Either<Full<Bytes>, Chunks>>;

/// The receiving end of a body that is sent as it comes into being.
#[derive(Debug)]
pub struct Chunks(mpsc::Receiver<Bytes>);

/// The one media type of everything but `application/yaml` answers and plain texts.
pub const JSON: &str = "application/json";

/// How much all warnings of one answer may take. The rest is dropped, as Kubernetes does.
const WARNINGS_MAX_BYTES: usize = 4096;
const WARNING_MAX_CHARS: usize = 256;

/// An answer with this body.
pub fn bytes(code: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(Either::Left(Full::new(body.into())));
    *reply.status_mut() = code;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    reply
}

/// An answer of one JSON value.
///
/// # Panics
/// Never: what this room sends has string keys only and no fallible `Serialize`.
pub fn json(code: StatusCode, value: &impl Serialize) -> Reply {
    bytes(code, JSON, serde_json::to_vec(value).expect("our answers are JSON values"))
}

/// A plain text, as health checks and unknown paths have it.
pub fn text(code: StatusCode, text: impl Into<Bytes>) -> Reply {
    bytes(code, "text/plain; charset=utf-8", text)
}

/// What Kubernetes says where there is nothing at all.
pub fn nowhere() -> Reply {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// A refusal.
pub fn refusal(status: &Status) -> Reply {
    let mut reply = json(status.code, &status.body());
    if let Some(seconds) = status.retry_after_secs {
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    reply
}

/// An endless answer and the way to feed it; it ends when the sender is dropped.
pub fn stream(media_type: &'static str, chunks_waiting: usize) -> (mpsc::Sender<Bytes>, Reply) {
    let (sender, receiver) = mpsc::channel(chunks_waiting);
    let mut reply = Response::new(Either::Right(Chunks(receiver)));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    (sender, reply)
}

/// Adds a `Warning` header for each text; kubectl and `rl` print them.
pub fn warn(reply: &mut Reply, warnings: &[String]) {
    let mut left_bytes = WARNINGS_MAX_BYTES;
    for warning in warnings {
        let text: String = warning.chars().take(WARNING_MAX_CHARS).flat_map(quoted).collect();
        let Some(rest) = left_bytes.checked_sub(text.len()) else { return };
        left_bytes = rest;
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            reply.headers_mut().append(WARNING, value);
        }
    }
}

/// A character as it stands inside a quoted header text (RFC 9110, section 5.6.4).
fn quoted(c: char) -> impl Iterator<Item = char> {
    let escape = matches!(c, '"' | '\\').then_some('\\');
    escape.into_iter().chain([if c.is_control() { ' ' } else { c }])
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_quoted_and_stays_on_its_line() {
        let mut reply = nowhere();
        warn(&mut reply, &["unknown field \"spec.bogus\"\r\nSet-Cookie: x".to_owned()]);
        let warning = reply.headers().get(WARNING).unwrap();
        assert_eq!(warning, "299 - \"unknown field \\\"spec.bogus\\\"  Set-Cookie: x\"");
    }

    #[test]
    fn warnings_beyond_the_limit_are_dropped() {
        let mut reply = nowhere();
        warn(&mut reply, &vec!["w".repeat(1000); 1000]);
        assert_eq!(reply.headers().get_all(WARNING).iter().count(), 16);
    }
}

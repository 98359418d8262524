//! `/metrics`, and the counting of requests.

use hyper::header::HeaderMap;
use hyper::{Method, StatusCode};

use crate::metrics::{CodeClass, Form, Verb};

use super::negotiate::{MediaType, first_accepted};
use super::reply::{self, Reply};
use super::serve::Server;
use super::status::Status;

/// Everything that is counted, in the first form of the client's list that is written here. Who
/// lists none gets Prometheus' text format all the same: that helps a person more than a refusal.
pub fn scrape(server: &Server, headers: &HeaderMap) -> Reply {
    let form = first_accepted(headers, form).unwrap_or(Form::Prometheus);
    let metrics = server.backend().metrics();
    let (watches, sessions) = server.open();
    metrics.http.open(watches as u64, sessions as u64);
    match metrics.scrape(form) {
        Ok(scraped) => reply::bytes(StatusCode::OK, form.content_type(), scraped),
        Err(error) => reply::refusal(&Status::failed(format!("the metrics cannot be written: {error}"))),
    }
}

/// Counts one answer.
pub fn count(server: &Server, method: &Method, code: StatusCode, took_us: u64) {
    let class = CodeClass::of(code.as_u16());
    server.backend().metrics().http.answer(verb(method), class, took_us);
}

fn form(media_type: MediaType<'_>) -> Option<Form> {
    match (media_type.name(), media_type.parameter("version")) {
        ("application/openmetrics-text", None | Some("1.0.0")) => Some(Form::OpenMetrics),
        ("text/plain" | "text/*" | "*/*", _) => Some(Form::Prometheus),
        _ => None,
    }
}

/// A client may invent methods: those are all one.
fn verb(method: &Method) -> Verb {
    match *method {
        Method::GET | Method::HEAD => Verb::Get,
        Method::POST => Verb::Post,
        Method::PUT => Verb::Put,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => Verb::Other,
    }
}

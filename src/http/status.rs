//! Errors in Kubernetes' form: one `Status` object, from which clients read code, reason, the
//! object meant, and one cause for each field that is wrong.

use hyper::StatusCode;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use crate::actor::doors::Refusal;
use crate::object::{FieldError, FieldReason, Kind};

/// Why a request was not done, or (for a delete) that it was.
#[derive(Clone, Debug)]
pub struct Status {
    pub code: StatusCode,
    reason: &'static str,
    message: String,
    /// Boxed, since every function here may return a `Status`.
    details: Option<Box<Details>>,
    /// When asking again may help. Clients repeat *any* request by themselves when it is set, so it
    /// must be absent wherever the first one may have been done.
    pub retry_after_secs: Option<u32>,
}

/// The object and the fields that a [`Status`] is about.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub group: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub kind: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Cause {
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
}

/// What was asked for, so far as messages need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Read,
    Create,
    Update,
    Delete,
}

/// The object that a request names.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub kind: &'static Kind,
    /// Empty for a create that leaves the name to the server.
    pub name: &'a str,
    pub asked: Asked,
}

impl Status {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, retry_after_secs: None }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 403 for everything on this connection.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    /// 404 for what is no object of a kind.
    pub fn nothing_of_that_name(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// 500: what was asked for was tried, and went wrong.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// 405.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// 406, with what can be had.
    pub fn not_acceptable(offered: &str) -> Self {
        let message = format!("only the following media types are accepted: {offered}");
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 410 for a point in history that is no longer known.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 413.
    pub fn too_large(limit_bytes: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit_bytes}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 415, with what is taken.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 426 for a door that only opens to its own protocol.
    pub fn upgrade_required(protocol: &str) -> Self {
        let message = format!("ask with the headers \"Connection: Upgrade\" and \"Upgrade: {protocol}\"");
        Self::new(StatusCode::UPGRADE_REQUIRED, "BadRequest", message)
    }

    /// 429: nothing was done, ask again.
    pub fn too_many(message: impl Into<String>, retry_after_secs: u32) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message).retry_after(retry_after_secs)
    }

    /// 408: the request itself did not arrive in time.
    pub fn request_timeout() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "Timeout", "the body of the request did not arrive in time")
    }

    /// 504 for a version that lies ahead of everything written so far.
    pub fn version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let status = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        let message = "Too large resource version".to_owned();
        let cause = Cause { reason: "ResourceVersionTooLarge", message, field: String::new() };
        status.with(Details { causes: vec![cause], ..Details::default() }).retry_after(1)
    }

    /// 422 for the options of a request, such as `CreateOptions`.
    pub fn invalid_option(options: &'static str, error: &FieldError) -> Self {
        let errors = std::slice::from_ref(error);
        let message = format!("{options}.meta.k8s.io \"\" is invalid: {}", sentence(errors));
        let details =
            Details { group: "meta.k8s.io", kind: options, causes: causes(errors), ..Details::default() };
        Self::invalid(message, details)
    }

    fn invalid(message: String, details: Details) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(details)
    }

    fn with(self, details: Details) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_secs = Some(seconds);
        self.details.get_or_insert_default().retry_after_seconds = Some(seconds);
        self
    }

    /// The object as it is sent.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason,
        });
        if let Some(details) = &self.details {
            body["details"] = json!(details);
        }
        body["code"] = json!(self.code.as_u16());
        body
    }
}

/// What a delete that removed the object answers.
pub fn deleted(target: Target<'_>, uid: String) -> Value {
    let details = Details { uid, ..target.details() };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

impl Target<'_> {
    /// What the owner's refusal is to the client.
    pub fn refused(self, refusal: Refusal) -> Status {
        match refusal {
            Refusal::NotFound => self.not_found(),
            Refusal::NoNamespace(name) => no_namespace(name),
            Refusal::AlreadyExists => {
                self.about(StatusCode::CONFLICT, "AlreadyExists", format!("{self} already exists"))
            }
            Refusal::Conflict(why) => self.conflict(&why),
            Refusal::Invalid(errors) => self.invalid(&errors),
            Refusal::BadRequest(why) => Status::bad_request(why),
            Refusal::Forbidden(why) => {
                self.about(StatusCode::FORBIDDEN, "Forbidden", format!("{self} is forbidden: {why}"))
            }
            Refusal::TooMany { message, retry_after_secs } => Status::too_many(message, retry_after_secs),
            Refusal::Unavailable(why) => {
                Status::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why)
            }
            // No Retry-After: it may have been done, and a client must not do it twice unasked.
            Refusal::Timeout => {
                self.about(StatusCode::GATEWAY_TIMEOUT, "Timeout", format!("{self}: {}", Refusal::Timeout))
            }
        }
    }

    /// 404.
    pub fn not_found(self) -> Status {
        self.about(StatusCode::NOT_FOUND, "NotFound", format!("{self} not found"))
    }

    /// 409 because the object is not in the state the request was made for.
    pub fn conflict(self, why: &str) -> Status {
        let Kind { group, kind, .. } = *self.kind;
        // Kubernetes names the kind, not the resource, when a delete's precondition fails.
        let (resource, label) = match self.asked {
            Asked::Delete => (format!("{kind}.{group} {:?}", self.name), kind),
            Asked::Read | Asked::Create | Asked::Update => (self.to_string(), self.kind.plural),
        };
        let message = format!("Operation cannot be fulfilled on {resource}: {why}");
        let details = Details { kind: label, ..self.details() };
        Status::new(StatusCode::CONFLICT, "Conflict", message).with(details)
    }

    /// 422 with a cause for each field; 400 where all of them are fields that do not exist, which is
    /// how Kubernetes answers `fieldValidation=Strict`.
    pub fn invalid(self, errors: &[FieldError]) -> Status {
        if !errors.is_empty() && errors.iter().all(|e| e.reason == FieldReason::Unknown) {
            return self.strict(errors.iter().map(unknown_field));
        }
        let Kind { kind, group, .. } = *self.kind;
        let message = format!("{kind}.{group} {:?} is invalid: {}", self.name, sentence(errors));
        Status::invalid(message, Details { kind, causes: causes(errors), ..self.details() })
    }

    /// 400 for what `fieldValidation=Strict` does not let pass.
    pub fn strict(self, complaints: impl Iterator<Item = String>) -> Status {
        let Kind { kind, version, .. } = *self.kind;
        let complaints = complaints.collect::<Vec<_>>().join(", ");
        Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {complaints}"
        ))
    }

    fn about(self, code: StatusCode, reason: &'static str, message: String) -> Status {
        Status::new(code, reason, message).with(self.details())
    }

    fn details(self) -> Details {
        Details {
            name: self.name.to_owned(),
            group: self.kind.group,
            kind: self.kind.plural,
            ..Details::default()
        }
    }
}

/// `workstationpools.workstations.ringleader.dev "agents"`, as Kubernetes' messages name an object.
impl std::fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{} {:?}", self.kind.plural, self.kind.group, self.name)
    }
}

/// 404 for what everything in the request would have to be in.
fn no_namespace(name: String) -> Status {
    let message = format!("namespaces {name:?} not found");
    let details = Details { name, kind: "namespaces", ..Details::default() };
    Status::new(StatusCode::NOT_FOUND, "NotFound", message).with(details)
}

/// `unknown field "spec.sise"; did you mean "size"?`: the path stands inside Kubernetes' sentence.
fn unknown_field(error: &FieldError) -> String {
    let advice = error.message.strip_prefix("unknown field").unwrap_or_default();
    format!("unknown field {:?}{advice}", error.path)
}

fn sentence(errors: &[FieldError]) -> String {
    match errors {
        [one] => one.to_string(),
        many => format!("[{}]", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn causes(errors: &[FieldError]) -> Vec<Cause> {
    let cause =
        |e: &FieldError| Cause { reason: e.reason.code(), message: e.message.clone(), field: e.path.clone() };
    errors.iter().map(cause).collect()
}

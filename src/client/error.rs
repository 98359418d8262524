//! Why a request had no good answer, each with what to do next.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Status, Target};

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(
        "no daemon answers at {}: start it with `sudo rl daemon run`, or name another with --server",
        path.display()
    )]
    NoDaemon { path: PathBuf, error: io::Error },
    #[error("no permission to open {}: use sudo, or {}", path.display(), joining(path))]
    NoPermission { path: PathBuf },
    #[error("no server is named: pass --server unix:///path")]
    NoAddress,
    /// The server refused.
    #[error("{}", refusal(target.as_ref(), status))]
    Refused { target: Option<Target>, status: Box<Status> },
    /// A watch fell too far behind, or began too far back: list again.
    #[error("the server no longer has the changes since then: list again")]
    TooOld,
    #[error("the daemon gave no answer within {0} s: whether it was done is not known, read it back")]
    Timeout(u64),
    #[error("the connection to the daemon broke: {0}")]
    Broken(String),
    #[error("the daemon answered what this `rl` does not understand ({0}): compare `rl version`")]
    NotUnderstood(String),
}

const UNKNOWN_FIELDS: &str = "strict decoding error: unknown field ";
const UNKNOWN_FIELD: &str = "unknown field \"";

impl ClientError {
    /// The server's own word, where it spoke.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { status, .. } => Some(status),
            Self::NoDaemon { .. }
            | Self::NoPermission { .. }
            | Self::NoAddress
            | Self::TooOld
            | Self::Timeout(_)
            | Self::Broken(_)
            | Self::NotUnderstood(_) => None,
        }
    }

    /// Whether the object that was asked for is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404)
    }

    /// Whether the name is taken.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// Whether the server forbids it.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|status| status.code == 403)
    }
}

/// How to be let in without sudo. The daemon gives its socket to the group where there is one.
fn joining(socket: &Path) -> String {
    let has_group = socket.metadata().is_ok_and(|found| found.permissions().mode() & 0o060 != 0);
    let how = if has_group {
        "join its group with `sudo usermod -aG ringleader $USER` and log in again"
    } else {
        "make a group for it with `sudo groupadd -f ringleader && sudo usermod -aG ringleader $USER`, \
         restart the daemon and log in again"
    };
    format!("{how} (whoever is in that group can become root)")
}

/// The refusal in words: what was asked, what is wrong, what to type next.
fn refusal(target: Option<&Target>, status: &Status) -> String {
    let Some(target) = target else { return said(status) };
    let kind = target.kind.singular;
    match (status.code, status.reason.as_str()) {
        (404, _) if status.details.kind == "namespaces" && kind != "namespace" => format!(
            "namespace {:?} does not exist: `rl get namespace` lists those that do, -n names another",
            target.namespace.as_deref().unwrap_or_default()
        ),
        (404, _) if !target.name.is_empty() => format!(
            "{target} not found{}: `rl get {kind}{}` lists those that are there",
            target.in_namespace(),
            target.namespace.as_deref().map(|namespace| format!(" -n {namespace}")).unwrap_or_default()
        ),
        (_, "AlreadyExists") => format!(
            "{target} already exists{}: choose another name, or look at it with `rl describe {kind} {}`",
            target.in_namespace(),
            target.name
        ),
        (_, "Conflict") => format!("{target} was changed meanwhile: {}; try again", said(status)),
        (422, _) if !status.details.causes.is_empty() => {
            refused_lines(target, status.details.causes.iter().map(ToString::to_string))
        }
        (400, _) if status.message.contains(UNKNOWN_FIELDS) => {
            refused_lines(target, unknown_fields(&status.message))
        }
        (429, _) if status.details.retry_after_seconds > 0 => {
            format!("{}; try again in {} s", said(status), status.details.retry_after_seconds)
        }
        _ => said(status),
    }
}

fn refused_lines(target: &Target, causes: impl Iterator<Item = String>) -> String {
    causes.fold(format!("{target} is refused:"), |lines, cause| format!("{lines}\n  {cause}"))
}

/// The complaints of `fieldValidation=Strict`, which Kubernetes puts into one sentence:
/// `…: strict decoding error: unknown field "spec.sise"; did you mean "size"?, unknown field "spec.x"`.
fn unknown_fields(message: &str) -> impl Iterator<Item = String> {
    message.split(UNKNOWN_FIELD).skip(1).filter_map(|complaint| {
        let (path, advice) = complaint.split_once('"')?;
        Some(format!("{path}: unknown field{}", advice.trim_end_matches(", ")))
    })
}

fn said(status: &Status) -> String {
    match (status.message.trim_end_matches('.'), status.code) {
        ("", code) => format!("the daemon answered {code} without a reason"),
        (message, _) => message.to_owned(),
    }
}

impl std::fmt::Display for super::Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.field.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.field, self.message)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::unknown_fields;

    #[test]
    fn every_unknown_field_of_kubernetes_one_sentence_is_a_line_of_its_own() {
        let message = r#"WorkstationPool in version "v1" cannot be handled as a WorkstationPool: strict decoding error: unknown field "spec.warm.runing"; did you mean "running"?, unknown field "spec.x""#;
        let lines: Vec<String> = unknown_fields(message).collect();
        let first = r#"spec.warm.runing: unknown field; did you mean "running"?"#;
        assert_eq!(lines, [first, "spec.x: unknown field"]);
    }
}

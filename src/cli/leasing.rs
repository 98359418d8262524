//! The steps of a lease: ask, wait, end. What `lease`, `release` and `quickstart` are made of.

use serde_json::{Value, json};

use super::console::Progress;
use super::kinds;
use super::output::{name_of, text_at};
use super::session::Session;
use super::wait::failed;
use crate::client::{Change, ClientError, Commit, Follow, Target};
use crate::clock;
use crate::object::{LeaseState, Span};

/// What is asked of a pool.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub pool: String,
    /// None: the pool's name with five random characters.
    pub name: Option<String>,
    /// None: the pool's longest.
    pub term: Option<Span>,
    /// OpenSSH public keys for the member's login user.
    pub keys: Vec<String>,
}

/// A lease as the server has it.
pub struct Lease {
    pub target: Target,
    pub object: Value,
}

/// What a wait for a member ended with.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Ready {
        member: String,
    },
    Failed(String),
    /// Ended by someone else.
    Gone,
}

/// Creates the lease.
pub async fn ask(session: &Session, request: &Request) -> Result<Lease, ClientError> {
    let kind = kinds::leases(&session.registry);
    let mut spec = json!({"workstationPoolRef": {"name": request.pool}});
    if !request.keys.is_empty() {
        spec["authorizedKeys"] = request.keys.clone().into();
    }
    if let Some(term) = &request.term {
        spec["expiresAt"] = clock::now().plus_millis(term.millis()).to_string().into();
    }
    let metadata = match &request.name {
        Some(name) => json!({"name": name, "namespace": session.namespace}),
        None => json!({"generateName": format!("{}-", request.pool), "namespace": session.namespace}),
    };
    let lease =
        json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": metadata, "spec": spec});
    let target = session.target(kind, request.name.as_deref().unwrap_or(&request.pool));
    let object = session.client.create(&target, &lease, Commit::Write).await?;
    Ok(Lease { target: session.target(kind, name_of(&object)), object })
}

/// Follows the lease until it is Ready, or never will be.
pub async fn until_ready(
    session: &Session,
    lease: &Lease,
    progress: &mut Progress,
) -> Result<Outcome, ClientError> {
    let mut follow = Follow::object(&session.client, &lease.target, lease.object.clone());
    let mut object = lease.object.clone();
    loop {
        let status = |field: &str| text_at(&object, field);
        match status("/status/phase") {
            "Ready" => return Ok(Outcome::Ready { member: status("/status/workstationName").to_owned() }),
            "Failed" => return Ok(Outcome::Failed(failed(&object))),
            _ => progress.say(standing(&object)),
        }
        let event = follow.next().await?;
        if event.change == Change::Deleted {
            return Ok(Outcome::Gone);
        }
        object = event.object;
    }
}

/// `Pending, position 2: every member is leased`.
fn standing(lease: &Value) -> String {
    let phase = match text_at(lease, "/status/phase") {
        "" => "Pending",
        phase => phase,
    };
    let position = lease.pointer("/status/queuePosition").and_then(Value::as_u64);
    let position = position.map(|position| format!(", position {position}")).unwrap_or_default();
    let member = match text_at(lease, "/status/workstationName") {
        "" => String::new(),
        member => format!(" on {member}"),
    };
    let message = match text_at(lease, "/status/message") {
        "" => String::new(),
        message => format!(": {message}"),
    };
    format!("{phase}{position}{member}{message}")
}

/// Ends the lease as its holder.
pub async fn end(session: &Session, target: &Target, state: LeaseState) -> Result<Value, ClientError> {
    session.client.merge_patch(target, &json!({"spec": {"state": state}}), Commit::Write).await
}

/// Follows an ended lease until it has gone, and tells its last state.
pub async fn until_gone(
    session: &Session,
    lease: Lease,
    progress: &mut Progress,
) -> Result<(Outcome, Value), ClientError> {
    let mut follow = Follow::object(&session.client, &lease.target, lease.object.clone());
    let mut object = lease.object;
    loop {
        // An acknowledged failure goes; one that is new stays, and is the answer.
        if text_at(&object, "/status/phase") == "Failed" && text_at(&object, "/spec/state") != "Done" {
            return Ok((Outcome::Failed(failed(&object)), object));
        }
        progress.say(format!("{}: {}", lease.target, standing(&object)));
        let event = follow.next().await?;
        object = event.object;
        if event.change == Change::Deleted {
            return Ok((Outcome::Gone, object));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_lease_stands_is_said_in_one_line() {
        let pending =
            json!({"status": {"phase": "Pending", "queuePosition": 2, "message": "every member is leased"}});
        assert_eq!(standing(&pending), "Pending, position 2: every member is leased");
        let starting = json!({"status": {"phase": "Starting", "workstationName": "p-0a1b2c3d"}});
        assert_eq!(standing(&starting), "Starting on p-0a1b2c3d");
    }
}

//! `rl workstationpoollease …`: release, renew.

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::failure::{Exit, usage};
use super::grammar::CommonVerb;
use super::kinds::{self, labels};
use super::leasing::{self, Lease, Outcome};
use super::output::{name_of, text_at};
use super::session::Session;
use crate::client::{ClientError, Commit, ListOptions, Target};
use crate::clock;
use crate::object::{LeaseState, Span};

/// What can be done with leases.
#[derive(Debug, Subcommand)]
pub enum LeaseVerb {
    /// Hand members back: each is deleted, or with --recycle cleaned and kept
    Release(ReleaseArgs),
    /// Move the end of leases further off
    Renew(RenewArgs),
    #[command(flatten)]
    Common(CommonVerb),
}

/// Which leases end, and how.
#[derive(Debug, Args)]
pub struct ReleaseArgs {
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Those with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = labels)]
    selector: Option<String>,
    /// Let the pool clean the member and keep it
    #[arg(long)]
    recycle: bool,
    /// Wait until the leases have gone
    #[arg(long)]
    wait: bool,
}

/// Which leases, and until when.
#[derive(Debug, Args)]
pub struct RenewArgs {
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// From now, such as 2h [default: the pool's longest]
    #[arg(long, value_name = "DURATION")]
    term: Option<Span>,
}

/// Runs one verb.
pub async fn run(session: &Session, verb: LeaseVerb) -> anyhow::Result<Exit> {
    match verb {
        LeaseVerb::Release(args) => release(session, args).await,
        LeaseVerb::Renew(args) => renew(session, args).await,
        LeaseVerb::Common(verb) => super::common(session, kinds::leases(&session.registry), verb).await,
    }
}

async fn release(session: &Session, args: ReleaseArgs) -> anyhow::Result<Exit> {
    let targets = targets(session, &args).await?;
    if targets.is_empty() {
        session.console.note("no lease matches: nothing was released");
        return Ok(Exit::DONE);
    }
    let state = if args.recycle { LeaseState::Recycle } else { LeaseState::Done };
    let mut exit = Exit::DONE;
    let mut ended = Vec::new();
    // One that cannot be released does not keep the others.
    for target in targets {
        match leasing::end(session, &target, state).await {
            Ok(object) => ended.push(Lease { target, object }),
            // It ended by itself between the list and now: what was asked for is so.
            Err(error) if error.is_not_found() && args.selector.is_some() => {}
            Err(error) => {
                session.console.complain(format_args!("error: {error}"));
                exit = Exit::FAILED;
            }
        }
    }
    for lease in ended {
        if args.wait {
            exit = exit.max(released(session, lease).await?);
        } else {
            session.console.print(format_args!("{} released", lease.target))?;
        }
    }
    Ok(exit)
}

async fn targets(session: &Session, args: &ReleaseArgs) -> anyhow::Result<Vec<Target>> {
    let kind = kinds::leases(&session.registry);
    match (&args.selector, args.names.is_empty()) {
        (None, false) => Ok(args.names.iter().map(|name| session.target(kind, name)).collect()),
        (Some(selector), true) => {
            let list = session.client.list(&session.all(kind), &ListOptions::labelled(selector)).await?;
            Ok(list.items.iter().map(|lease| session.target(kind, name_of(lease))).collect())
        }
        _ => Err(usage("say which leases to release: write names or -l SELECTOR, one of them")),
    }
}

async fn released(session: &Session, lease: Lease) -> anyhow::Result<Exit> {
    let target = lease.target.clone();
    let (outcome, last) = leasing::until_gone(session, lease, &mut session.console.progress()).await?;
    let (outcome, exit) = match outcome {
        Outcome::Failed(why) => (format!(", and then {why}"), Exit::FAILED),
        Outcome::Gone | Outcome::Ready { .. } => (what_became(&last), Exit::DONE),
    };
    session.console.print(format_args!("{target} released{outcome}"))?;
    Ok(exit)
}

/// `, its member recycled`, as far as the lease's last state tells.
fn what_became(last: &Value) -> String {
    let release = |field: &str| text_at(last, &format!("/status/release/{field}"));
    let member = text_at(last, "/status/workstationName");
    match (member, release("outcome"), release("reason")) {
        ("", _, _) | (_, "", _) => String::new(),
        (member, outcome, "") => format!(": {member} {}", outcome.to_lowercase()),
        (member, outcome, reason) => format!(": {member} {}, {reason}", outcome.to_lowercase()),
    }
}

async fn renew(session: &Session, args: RenewArgs) -> anyhow::Result<Exit> {
    for name in &args.names {
        let target = session.target(kinds::leases(&session.registry), name);
        let term = match &args.term {
            Some(term) => term.clone(),
            None => longest_term(session, &target).await?,
        };
        let until = clock::now().plus_millis(term.millis());
        let patch = json!({"spec": {"expiresAt": until.to_string()}});
        let lease = session.client.merge_patch(&target, &patch, Commit::Write).await?;
        session
            .console
            .print(format_args!("{target} renewed until {}", text_at(&lease, "/spec/expiresAt")))?;
    }
    Ok(Exit::DONE)
}

async fn longest_term(session: &Session, lease: &Target) -> anyhow::Result<Span> {
    let object = session.client.get(lease).await?;
    let name = text_at(&object, "/spec/workstationPoolRef/name");
    let target = session.target(kinds::pools(&session.registry), name);
    let pool = session.client.get(&target).await.map_err(|error: ClientError| {
        anyhow::Error::new(error)
            .context(format!("how long {lease} may be renewed for is not known: pass --term"))
    })?;
    text_at(&pool, "/spec/lease/maxTerm")
        .parse()
        .context("the pool's lease.maxTerm is not understood: pass --term")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_the_member_is_told_with_the_reason() {
        let last = json!({"status": {"workstationName": "p-1",
            "release": {"outcome": "Deleted", "reason": "MaxReusesReached"}}});
        assert_eq!(what_became(&last), ": p-1 deleted, MaxReusesReached");
        assert_eq!(what_became(&json!({"status": {"phase": "Pending"}})), "");
    }
}

//! `rl delete`: asks before a pool or a namespace goes, and says what stays.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::Value;

use super::failure::{Exit, usage};
use super::kinds::{self, Selection, labels};
use super::output::{name_of, text_at};
use super::session::Session;
use crate::client::{Deleted, ListOptions, Target};
use crate::object::{Kind, POOL_LABEL};

/// Which objects, and whether to ask.
#[derive(Debug, Default, Args)]
pub struct DeleteOptions {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// All of the kind in the namespace
    #[arg(long)]
    all: bool,
    /// Those with these labels, such as app=web
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = labels)]
    selector: Option<String>,
}

/// Deletes what was selected.
pub async fn run(
    session: &Session,
    selections: Vec<Selection>,
    options: DeleteOptions,
) -> anyhow::Result<Exit> {
    let mut targets = Vec::new();
    for selection in &selections {
        targets.extend(targets_of(session, selection, &options).await?);
    }
    if targets.is_empty() {
        session.console.note("nothing matches: nothing was deleted");
        return Ok(Exit::DONE);
    }
    let asked: Vec<&Target> = targets.iter().filter(|target| asks(session, target.kind)).collect();
    if !asked.is_empty() && !options.yes && !confirmed(session, &asked).await? {
        session.console.note("nothing was deleted");
        return Ok(Exit::FAILED);
    }
    for target in &targets {
        delete(session, target).await?;
    }
    Ok(Exit::DONE)
}

async fn targets_of(
    session: &Session,
    selection: &Selection,
    options: &DeleteOptions,
) -> anyhow::Result<Vec<Target>> {
    let kind = selection.kind;
    let labels = match (selection.names.is_empty(), options.all, options.selector.clone()) {
        (false, false, None) => {
            return Ok(selection.names.iter().map(|name| session.target(kind, name)).collect());
        }
        (true, true, None) => None,
        (true, false, Some(selector)) => Some(selector),
        _ => {
            return Err(usage(format!(
                "say which {} to delete: write names, -l SELECTOR or --all, one of them",
                kind.plural
            )));
        }
    };
    let list = session.client.list(&session.all(kind), &ListOptions { labels, fields: None }).await?;
    Ok(list.items.iter().map(|object| session.target(kind, name_of(object))).collect())
}

/// Whether so much goes with an object of this kind that the person is asked.
fn asks(session: &Session, kind: &Kind) -> bool {
    let grave = [kinds::pools(&session.registry), kinds::known(&session.registry, "namespace")];
    grave.iter().any(|other| std::ptr::eq(*other, kind))
}

/// The command asks first (rule D1).
async fn confirmed(session: &Session, targets: &[&Target]) -> anyhow::Result<bool> {
    let mut sentences = Vec::new();
    for target in targets {
        // What is not there is reported before anybody is asked.
        let object = session.client.get(target).await?;
        sentences.push(match object.pointer("/status/capacity/members").and_then(Value::as_u64) {
            Some(0) => target.to_string(),
            Some(1) => format!("{target} and its member, machine and disk"),
            Some(members) => format!("{target} and its {members} members, machines and disks"),
            None => format!("{target} and all that is in it"),
        });
    }
    match session.console.confirm(&format!("Delete {}?", sentences.join(", ")))? {
        Some(answer) => Ok(answer),
        None => Err(usage(format!("this would delete {}: pass -y to do so", sentences.join(", ")))),
    }
}

async fn delete(session: &Session, target: &Target) -> anyhow::Result<()> {
    let pool = std::ptr::eq(target.kind, kinds::pools(&session.registry));
    match session.client.delete(target).await? {
        Deleted::Gone => session.console.print(format_args!("{target} deleted"))?,
        Deleted::Terminating(object) if pool => {
            let staying = staying_members(session, target, &object).await?;
            session.console.print(match staying {
                0 => format!("{target} deleting"),
                staying => staying_line(target, staying),
            })?;
        }
        Deleted::Terminating(_) => session.console.print(format_args!("{target} deleting"))?,
    }
    Ok(())
}

/// How many members of a pool stay until their leases end.
async fn staying_members(session: &Session, target: &Target, pool: &Value) -> anyhow::Result<usize> {
    let leases = Target::all(kinds::leases(&session.registry), target.namespace.as_deref());
    let selector = format!("{POOL_LABEL}={}", target.name);
    let list = session.client.list(&leases, &ListOptions::labelled(selector)).await?;
    let uid = text_at(pool, "/metadata/uid");
    let holding = list.items.iter().filter(|lease| {
        text_at(lease, "/status/poolUID") == uid
            && matches!(text_at(lease, "/status/phase"), "Starting" | "Ready")
            && lease.pointer("/metadata/deletionTimestamp").is_none()
    });
    let members: BTreeSet<&str> = holding.map(|lease| text_at(lease, "/status/workstationName")).collect();
    Ok(members.len())
}

/// The page's line (rule D3).
fn staying_line(pool: &Target, members: usize) -> String {
    let (stay, release) = match members {
        1 => ("1 member stays until its lease ends".to_owned(), "Release that lease"),
        _ => (format!("{members} members stay until their leases end"), "Release those leases"),
    };
    let namespace = pool.namespace.as_deref().unwrap_or_default();
    format!(
        "{pool}: {stay}. {release} with `rl workstationpoollease release -n {namespace} -l {POOL_LABEL}={}`.",
        pool.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::registry;

    // rule D3
    #[test]
    fn the_line_about_staying_members_is_the_pages_and_singular_where_one_stays() {
        let pool = Target::new(kinds::pools(&registry()), "acme-dev", "agents-linux");
        assert_eq!(
            staying_line(&pool, 2),
            "workstationpool/agents-linux: 2 members stay until their leases end. Release those leases with \
             `rl workstationpoollease release -n acme-dev -l pools.ringleader.dev/pool=agents-linux`."
        );
        assert_eq!(
            staying_line(&pool, 1),
            "workstationpool/agents-linux: 1 member stays until its lease ends. Release that lease with \
             `rl workstationpoollease release -n acme-dev -l pools.ringleader.dev/pool=agents-linux`."
        );
    }
}

//! `rl workstationpool …`: create, lease.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Map, Value, json};

use super::failure::{Exit, usage};
use super::grammar::CommonVerb;
use super::interrupt::Interrupts;
use super::key;
use super::kinds;
use super::leasing::{self, Lease, Outcome, Request};
use super::session::Session;
use super::wait::duration;
use crate::client::{ClientError, Commit};
use crate::object::{LeaseState, Span};

/// What can be done with pools.
#[derive(Debug, Subcommand)]
pub enum PoolVerb {
    /// Create a pool
    Create(CreateArgs),
    /// Ask a pool for a member
    Lease(LeaseArgs),
    #[command(flatten)]
    Common(CommonVerb),
}

/// A pool in flags.
#[derive(Debug, Args)]
pub struct CreateArgs {
    name: String,
    /// The most members there may be
    #[arg(long, value_name = "N", value_parser = whole_number)]
    size_max: u32,
    /// Copy this workstation's spec and labels into the template
    #[arg(long, value_name = "WORKSTATION")]
    from_workstation: Option<String>,
    /// Idle members kept running
    #[arg(long, value_name = "N", value_parser = whole_number)]
    warm_running: Option<u32>,
    /// Idle members kept stopped
    #[arg(long, value_name = "N", value_parser = whole_number)]
    warm_stopped: Option<u32>,
    /// Let members be recycled
    #[arg(long)]
    recycle: bool,
    /// Who the members belong to: a user's name, or serviceaccount:NAME [default: you]
    #[arg(long, value_name = "SUBJECT")]
    owner: Option<String>,
}

/// A count; what it may be in which field is for the server to say.
fn whole_number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "write a whole number, such as 6".into())
}

/// What is asked of a pool.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("whose-key").args(["key", "no_key"]))]
pub struct LeaseArgs {
    pool: String,
    /// The lease's name [default: the pool's with random characters]
    #[arg(long)]
    name: Option<String>,
    /// Wait until the member is ready; Ctrl-C cancels the lease
    #[arg(long)]
    wait: bool,
    /// Give up waiting after so long, and cancel the lease
    #[arg(long, value_name = "DURATION", requires = "wait")]
    timeout: Option<Span>,
    /// How long the lease lasts, such as 2h [default: the pool's longest]
    #[arg(long, value_name = "DURATION")]
    term: Option<Span>,
    /// A public key for the member's login user, instead of this device's; may be repeated
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Put no key on the member
    #[arg(long)]
    no_key: bool,
    /// When the wait ends early, leave the lease waiting instead of cancelling it
    #[arg(long, requires = "wait")]
    detach: bool,
}

/// Runs one verb.
pub async fn run(session: &Session, verb: PoolVerb) -> anyhow::Result<Exit> {
    match verb {
        PoolVerb::Create(args) => create(session, args).await,
        PoolVerb::Lease(args) => lease(session, args).await,
        PoolVerb::Common(verb) => super::common(session, kinds::pools(&session.registry), verb).await,
    }
}

async fn create(session: &Session, args: CreateArgs) -> anyhow::Result<Exit> {
    let kind = kinds::pools(&session.registry);
    let template = match &args.from_workstation {
        Some(workstation) => template_from(session, workstation).await?,
        None => json!({"spec": {}}),
    };
    let mut spec = json!({"template": template, "size": {"max": args.size_max}});
    if args.warm_running.is_some() || args.warm_stopped.is_some() {
        spec["warm"] =
            json!({"running": args.warm_running.unwrap_or(0), "stopped": args.warm_stopped.unwrap_or(0)});
    }
    if args.recycle {
        spec["recycle"] = json!({});
    }
    if let Some(owner) = &args.owner {
        spec["owner"] = subject(owner)?;
    }
    let target = session.target(kind, &args.name);
    let pool = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"name": args.name, "namespace": session.namespace},
        "spec": spec,
    });
    session.client.create(&target, &pool, Commit::Write).await?;
    session.console.print(format_args!("{target} created"))?;
    let flag = session.namespace_flag();
    session
        .console
        .note(format_args!("lease a member with `rl workstationpool lease{flag} {} --wait`", args.name));
    Ok(Exit::DONE)
}

/// The template that makes members like an existing workstation. What a template refuses is left
/// out, and said.
async fn template_from(session: &Session, name: &str) -> anyhow::Result<Value> {
    let target = session.target(kinds::workstations(&session.registry), name);
    let workstation = session.client.get(&target).await?;
    let (template, dropped) = template_of(&workstation);
    if !dropped.is_empty() {
        session.console.note(format_args!(
            "left out of the template, since the pool decides them: {}",
            dropped.join(", ")
        ));
    }
    Ok(template)
}

fn template_of(workstation: &Value) -> (Value, Vec<String>) {
    let refused = |field: &str| {
        ["cordoned", "lifecycle", "stopped", "ttl", "ttlAction"].contains(&field) || field.ends_with("Nonce")
    };
    let fields =
        |pointer: &str| workstation.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default();
    let (out, kept): (Map<String, Value>, Map<String, Value>) =
        fields("/spec").into_iter().partition(|(field, _)| refused(field));
    let labels: Map<String, Value> = fields("/metadata/labels")
        .into_iter()
        .filter(|(label, _)| !label.starts_with(crate::object::SERVER_PREFIX))
        .collect();
    let mut template = json!({"spec": kept});
    if !labels.is_empty() {
        template["metadata"] = json!({"labels": labels});
    }
    (template, out.into_iter().map(|(field, _)| field).collect())
}

/// `NAME`, `user:NAME` or `serviceaccount:NAME`.
fn subject(text: &str) -> anyhow::Result<Value> {
    let (kind, name) = text.split_once(':').unwrap_or(("user", text));
    let kind = match kind.to_ascii_lowercase().as_str() {
        "user" => "User",
        "serviceaccount" | "sa" => "ServiceAccount",
        _ => return Err(usage(format!("--owner {text:?}: write a user's name or serviceaccount:NAME"))),
    };
    Ok(json!({"kind": kind, "name": name}))
}

async fn lease(session: &Session, args: LeaseArgs) -> anyhow::Result<Exit> {
    let keys = match (args.key.as_slice(), args.no_key) {
        ([], false) => vec![key::ensure(session).await?.public],
        (files, _) => files.iter().map(|file| key::public_half(file)).collect::<Result<_, _>>()?,
    };
    let request = Request { pool: args.pool, name: args.name, term: args.term, keys };
    // From here on Ctrl-C must not leave a lease that nobody waits for.
    let mut interrupts = Interrupts::take()?;
    let lease = leasing::ask(session, &request).await?;
    if !args.wait {
        session.console.print(format_args!("{} created", lease.target))?;
        let (flag, name) = (session.namespace_flag(), &lease.target.name);
        session
            .console
            .note(format_args!("wait for its member with `rl workstationpoollease wait{flag} {name}`"));
        return Ok(Exit::DONE);
    }
    let mut progress = session.console.progress();
    let timeout = async {
        match &args.timeout {
            Some(timeout) => tokio::time::sleep(duration(timeout)).await,
            None => std::future::pending().await,
        }
    };
    let stopped = tokio::select! {
        outcome = leasing::until_ready(session, &lease, &mut progress) => {
            drop(progress);
            return report(session, &lease, outcome?);
        }
        () = timeout => format!("no member within {}", args.timeout.clone().unwrap_or_else(|| Span::from_secs(0))),
        _ = interrupts.next() => "interrupted".to_owned(),
    };
    drop(progress);
    if args.detach {
        let (flag, name) = (session.namespace_flag(), &lease.target.name);
        anyhow::bail!("{stopped}: {} waits on: `rl workstationpoollease wait{flag} {name}`", lease.target);
    }
    cancel(session, &lease, &stopped).await
}

fn report(session: &Session, lease: &Lease, outcome: Outcome) -> anyhow::Result<Exit> {
    match outcome {
        Outcome::Ready { member } => {
            session.console.print(format_args!("{} Ready on {member}", lease.target))?;
            Ok(Exit::DONE)
        }
        Outcome::Failed(why) => anyhow::bail!("{} {why}", lease.target),
        Outcome::Gone => anyhow::bail!("{} was ended while it waited", lease.target),
    }
}

/// Ctrl-C or --timeout of `lease --wait` writes Done unless --detach (rule S4).
async fn cancel(session: &Session, lease: &Lease, stopped: &str) -> anyhow::Result<Exit> {
    match leasing::end(session, &lease.target, LeaseState::Done).await {
        Ok(_) => anyhow::bail!("{stopped}: {} is cancelled", lease.target),
        Err(error) if error.is_not_found() => anyhow::bail!("{stopped}: {} is gone", lease.target),
        Err(error) => {
            let name = &lease.target.name;
            let error: ClientError = error;
            anyhow::bail!(
                "{stopped}, and {} could not be cancelled: {error}; release it with \
                 `rl workstationpoollease release{} {name}`",
                lease.target,
                session.namespace_flag()
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_leaves_out_what_the_pool_decides_and_names_it() {
        let workstation = json!({
            "metadata": {"labels": {"app": "ci", "pools.ringleader.dev/pool": "old"}},
            "spec": {"requirements": ["provider:sandbox"], "stopped": true, "restartNonce": "1"},
        });
        let (template, dropped) = template_of(&workstation);
        assert_eq!(
            template,
            json!({"spec": {"requirements": ["provider:sandbox"]}, "metadata": {"labels": {"app": "ci"}}})
        );
        assert_eq!(dropped, ["stopped", "restartNonce"]);
    }

    #[test]
    fn an_owner_is_a_user_unless_it_says_otherwise() {
        assert_eq!(subject("bob").expect("a user"), json!({"kind": "User", "name": "bob"}));
        let account = subject("serviceaccount:ci").expect("an account");
        assert_eq!(account, json!({"kind": "ServiceAccount", "name": "ci"}));
        assert!(subject("robot:x").is_err());
    }
}

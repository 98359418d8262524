//! `rl quickstart`: the main job once, from nothing to a shell on a member and back.
//!
//! Where no daemon answers, it starts one on a directory of its own. What it started it ends, so
//! that trying leaves nothing behind; `--keep` leaves it for going on.

mod own_daemon;

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use self::own_daemon::OwnDaemon;
use super::Hooks;
use super::doctor::{self, Finding};
use super::failure::Exit;
use super::interrupt::Interrupts;
use super::key;
use super::kinds;
use super::leasing::{self, Lease, Outcome, Request};
use super::session::Session;
use super::shell::{self, ShellArgs};
use super::wait::{self, Until};
use crate::client::{ClientError, Commit, Target};
use crate::clock;
use crate::object::LeaseState;

/// What the member is asked: who, where and what it is.
const COMMAND: &str = "id; hostname; . /etc/os-release; echo \"$PRETTY_NAME\"";

/// How it is tried.
#[derive(Debug, Args)]
pub struct QuickstartArgs {
    /// Leave the pool, and the daemon if one was started, for going on
    #[arg(long)]
    keep: bool,
    /// Where a daemon that is started keeps everything [default: a new directory in /var/lib]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Tries the whole way, then puts everything back.
pub async fn run(session: &Session, args: QuickstartArgs, hooks: Hooks) -> anyhow::Result<Exit> {
    let mut interrupts = Interrupts::take()?;
    let mut steps = Steps { session, count: 0, since: Instant::now() };
    let own = match session.client.health().await {
        Ok(health) => {
            steps.done(format_args!("the daemon {} answers already", health.version), "rl status")?;
            None
        }
        Err(ClientError::NoDaemon { .. }) => Some(start(session, &args, hooks, &mut interrupts).await?),
        Err(error) => return Err(error.into()),
    };
    let inside = match &own {
        Some(daemon) => {
            steps.done("started a daemon", "sudo rl daemon run")?;
            daemon.session(session)?
        }
        None => Session::new(session.globals.clone(), session.environment.clone(), session.console.clone())?,
    };
    let pool =
        inside.target(kinds::pools(&inside.registry), &format!("quickstart-{:08x}", clock::entropy() >> 96));
    let tried = tokio::select! {
        tried = try_out(&inside, &pool, &mut steps) => tried,
        _ = interrupts.next() => Err(anyhow::anyhow!("interrupted")),
    };
    let kept = args.keep && tried.is_ok();
    if !kept && let Err(error) = remove(&inside, &pool, &mut steps).await {
        session.console.complain(format_args!("error: {pool} is left behind: {error:#}"));
    }
    match own {
        Some(daemon) if kept => daemon.keep(session)?,
        Some(daemon) => {
            let failed = tried.is_err();
            daemon.stop(session, failed).await?;
            steps.done("stopped the daemon and removed its directory", "")?;
        }
        None => {}
    }
    tried?;
    next_steps(session, kept, &pool)?;
    Ok(Exit::DONE)
}

async fn start(
    session: &Session,
    args: &QuickstartArgs,
    hooks: Hooks,
    interrupts: &mut Interrupts,
) -> anyhow::Result<OwnDaemon> {
    if !rustix::process::geteuid().is_root() {
        anyhow::bail!(
            "no daemon answers, and to start one takes root, since it makes namespaces and mounts: \
             type `sudo rl quickstart`, or have root start it for good with `sudo rl daemon run` and try again"
        );
    }
    let blocking: Vec<String> = (hooks.checks)()
        .iter()
        .filter(|check| check.finding == Finding::Blocking)
        .flat_map(doctor::lines)
        .collect();
    if !blocking.is_empty() {
        anyhow::bail!("this machine cannot run members yet; `rl doctor` says more\n{}", blocking.join("\n"));
    }
    let mut daemon = OwnDaemon::start(args.data_dir.as_deref())?;
    let ready = tokio::select! {
        ready = daemon.ready(session) => ready,
        _ = interrupts.next() => Err(anyhow::anyhow!("interrupted")),
    };
    match ready {
        Ok(()) => Ok(daemon),
        Err(error) => {
            daemon.stop(session, true).await?;
            Err(error)
        }
    }
}

async fn try_out(session: &Session, pool: &Target, steps: &mut Steps<'_>) -> anyhow::Result<()> {
    let flag = session.namespace_flag();
    let object = json!({
        "apiVersion": pool.kind.api_version(),
        "kind": pool.kind.kind,
        "metadata": {"name": pool.name, "namespace": session.namespace},
        "spec": {"template": {"spec": {}}, "size": {"max": 2}, "warm": {"running": 1}},
    });
    session.client.create(pool, &object, Commit::Write).await?;
    steps.done(
        format_args!("created the pool {}", pool.name),
        format_args!("rl workstationpool create{flag} {} --size-max 2 --warm-running 1", pool.name),
    )?;
    let until: Until = "condition=WarmFloorsFilled".parse().map_err(anyhow::Error::msg)?;
    wait::wait_for(session, pool, &until, &mut session.console.progress()).await?;
    steps.done("built its first member", format_args!("rl wait workstationpool{flag} {}", pool.name))?;

    let key = key::ensure(session).await?;
    let request = Request { pool: pool.name.clone(), keys: vec![key.public], ..Request::default() };
    steps.begin();
    let lease = leasing::ask(session, &request).await?;
    let outcome = leasing::until_ready(session, &lease, &mut session.console.progress()).await?;
    let Outcome::Ready { member } = outcome else { anyhow::bail!("the lease was not served: {outcome:?}") };
    steps.done(
        format_args!("leased {member}"),
        format_args!("rl workstationpool lease{flag} {} --name my-build --wait", pool.name),
    )?;

    let exit = shell::run(session, ShellArgs::new(&member, COMMAND)).await?;
    anyhow::ensure!(exit == Exit::DONE, "the command on {member} ended with {}", exit.0);
    steps.done(format_args!("ran a command on {member}"), format_args!("rl shell{flag} {member}"))?;
    release(session, lease, steps, &flag).await
}

async fn release(session: &Session, lease: Lease, steps: &mut Steps<'_>, flag: &str) -> anyhow::Result<()> {
    let target = lease.target;
    let object = leasing::end(session, &target, LeaseState::Done).await?;
    let name = target.name.clone();
    let (outcome, _) =
        leasing::until_gone(session, Lease { target, object }, &mut session.console.progress()).await?;
    anyhow::ensure!(outcome == Outcome::Gone, "the lease did not end: {outcome:?}");
    steps.done("released it", format_args!("rl workstationpoollease release{flag} {name}"))
}

async fn remove(session: &Session, pool: &Target, steps: &mut Steps<'_>) -> anyhow::Result<()> {
    match session.client.delete(pool).await {
        Ok(_) => {}
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    // A lease that was cut short holds its member, and the member its pool.
    let leases = session.all(kinds::leases(&session.registry));
    let selector = format!("{}={}", crate::object::POOL_LABEL, pool.name);
    let options = crate::client::ListOptions::labelled(selector);
    for lease in session.client.list(&leases, &options).await?.items {
        let target = session.target(leases.kind, super::output::name_of(&lease));
        match leasing::end(session, &target, LeaseState::Done).await {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
    }
    wait::wait_for(session, pool, &Until::Deleted, &mut session.console.progress()).await?;
    let flag = session.namespace_flag();
    steps.done("deleted the pool", format_args!("rl workstationpool delete{flag} {}", pool.name))
}

fn next_steps(session: &Session, kept: bool, pool: &Target) -> anyhow::Result<()> {
    let console = &session.console;
    console.print("\nThat is the whole of it. To go on:")?;
    if kept {
        console.print(format_args!("  rl workstationpool lease {} --name my-build --wait", pool.name))?;
        console.print("  rl shell my-build")?;
        console.print("  rl workstationpoollease release my-build")?;
    } else {
        console.print("  sudo rl daemon run &")?;
        console.print("  rl workstationpool create agents-linux --size-max 6 --warm-running 1")?;
        console.print("  rl workstationpool lease agents-linux --name my-build --wait")?;
    }
    Ok(())
}

/// The steps as they are done, each with its time and the command that does the same.
struct Steps<'a> {
    session: &'a Session,
    count: u32,
    since: Instant,
}

impl Steps<'_> {
    fn begin(&mut self) {
        self.since = Instant::now();
    }

    fn done(&mut self, what: impl Display, command: impl Display) -> anyhow::Result<()> {
        self.count += 1;
        let (count, took) = (self.count, took(self.since));
        let command = command.to_string();
        let console = &self.session.console;
        console.print(format_args!("{count}. {what} ({took})"))?;
        if !command.is_empty() {
            console.print(format_args!("   $ {command}"))?;
        }
        self.begin();
        Ok(())
    }
}

fn took(since: Instant) -> String {
    let millis = since.elapsed().as_micros();
    if millis < 1_000_000 {
        format!("{}.{} ms", millis / 1000, millis % 1000 / 100)
    } else {
        format!("{}.{} s", millis / 1_000_000, millis % 1_000_000 / 100_000)
    }
}

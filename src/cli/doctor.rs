//! `rl doctor`: what of this machine stands in the way, each with its cure.

use clap::Args;

use super::Hooks;
use super::failure::Exit;
use super::session::Session;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// A few words, such as `user namespaces`.
    pub name: String,
    pub finding: Finding,
    /// What was found, in one sentence.
    pub message: String,
    /// What to do about it; empty where nothing needs doing.
    pub cure: String,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    Fine,
    /// It works, but less well.
    Warning,
    /// No machine can be made here until it is mended.
    Blocking,
}

/// No arguments of its own.
#[derive(Debug, Args)]
pub struct DoctorArgs {}

/// Runs every check of this machine, then asks the daemon.
pub async fn run(session: &Session, _: DoctorArgs, hooks: Hooks) -> anyhow::Result<Exit> {
    let mut checks = (hooks.checks)();
    checks.push(openssh());
    checks.push(daemon(session).await);
    for line in checks.iter().flat_map(lines) {
        session.console.print(line)?;
    }
    let worst = checks.iter().map(|check| check.finding).max();
    Ok(if worst == Some(Finding::Blocking) { Exit::FAILED } else { Exit::DONE })
}

/// A check in one line, and its cure in a second.
pub fn lines(check: &Check) -> Vec<String> {
    let word = match check.finding {
        Finding::Fine => "ok",
        Finding::Warning => "warning",
        Finding::Blocking => "blocked",
    };
    let mut lines = vec![format!("{word:<8} {}: {}", check.name, check.message)];
    if !check.cure.is_empty() {
        lines.push(format!("         {}", check.cure));
    }
    lines
}

fn openssh() -> Check {
    let name = "OpenSSH client".to_owned();
    let version = std::process::Command::new("ssh").arg("-V").output();
    match version {
        Ok(output) => Check {
            name,
            finding: Finding::Fine,
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            cure: String::new(),
        },
        Err(_) => Check {
            name,
            finding: Finding::Warning,
            message: "`ssh` is not installed, so that `rl shell` cannot work".into(),
            cure: "sudo apt-get install openssh-client".into(),
        },
    }
}

async fn daemon(session: &Session) -> Check {
    let name = "daemon".to_owned();
    match session.client.health().await {
        Ok(health) if health.not_ready.is_empty() => Check {
            name,
            finding: Finding::Fine,
            message: format!("{} is ready", health.version),
            cure: String::new(),
        },
        Ok(health) => Check {
            name,
            finding: Finding::Warning,
            message: format!("not ready: {}", health.not_ready.join("; ")),
            cure: "see `rl status`".into(),
        },
        Err(error) => {
            Check { name, finding: Finding::Warning, message: error.to_string(), cure: String::new() }
        }
    }
}

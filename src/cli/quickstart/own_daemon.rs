//! A daemon of the quickstart's own: on a directory that is its alone.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::cli::grammar::Globals;
use crate::cli::session::Session;

/// A first start takes an image, which may mean copying `/usr`.
const READY_WITHIN: Duration = Duration::from_mins(2);
const STOPPED_WITHIN: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How much of a failed daemon's log is shown.
const LOG_LINES_SHOWN: usize = 15;

/// A daemon that runs as our child.
pub struct OwnDaemon {
    dir: PathBuf,
    child: Child,
}

impl OwnDaemon {
    /// Starts it. Its directory is beside where a daemon for good keeps its own, since both want
    /// to be on the file system of `/usr`.
    pub fn start(dir: Option<&Path>) -> anyhow::Result<Self> {
        let fresh = || {
            let id = crate::clock::entropy() >> 96;
            PathBuf::from(format!("/var/lib/ringleader-quickstart-{id:08x}"))
        };
        let dir = dir.map_or_else(fresh, Path::to_owned);
        DirBuilder::new()
            .mode(0o700)
            .create(&dir)
            .with_context(|| format!("cannot make the new directory {}", dir.display()))?;
        let log = File::create(dir.join("daemon.log")).context("cannot write the daemon's log")?;
        let child = Command::new(std::env::current_exe().context("cannot tell where `rl` itself is")?)
            .args(["daemon", "run", "--data-dir"])
            .arg(dir.join("data"))
            .arg("--socket")
            .arg(socket(&dir))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C is for us: we end it when its members are gone.
            .process_group(0)
            .spawn()
            .context("cannot start a daemon")?;
        Ok(Self { dir, child })
    }

    /// Waits until it answers and is ready.
    pub async fn ready(&mut self, outer: &Session) -> anyhow::Result<()> {
        let session = self.session(outer)?;
        let mut progress = outer.console.progress();
        let ready = async {
            loop {
                if let Some(status) = self.child.try_wait()? {
                    bail!("the daemon ended at once ({status})");
                }
                match session.client.health().await {
                    Ok(health) if health.not_ready.is_empty() => return Ok(()),
                    Ok(health) => progress.say(format!("the daemon: {}", health.not_ready.join("; "))),
                    Err(_) => progress.say("the daemon starts".into()),
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        match tokio::time::timeout(READY_WITHIN, ready).await {
            Ok(ready) => ready,
            Err(_) => bail!("the daemon is not ready after {} s", READY_WITHIN.as_secs()),
        }
    }

    /// A session with this daemon.
    pub fn session(&self, outer: &Session) -> anyhow::Result<Session> {
        let server = format!("unix://{}", socket(&self.dir).display());
        let globals = Globals { server: Some(server), ..outer.globals.clone() };
        Session::new(globals, outer.environment.clone(), outer.console.clone())
    }

    /// Leaves it running, and says how to use and how to end it.
    pub fn keep(self, outer: &Session) -> anyhow::Result<()> {
        let (dir, id) = (self.dir.display(), self.child.id().unwrap_or(0));
        outer.console.print(format_args!("\nThe daemon goes on. To use it, and to end it:"))?;
        outer.console.print(format_args!("  export RL_SERVER=unix://{}", socket(&self.dir).display()))?;
        outer.console.print(format_args!("  rl workstationpool delete --all -y; kill {id}; rm -r {dir}"))?;
        Ok(())
    }

    /// Ends it and removes its directory; after a failure the end of its log is shown first.
    pub async fn stop(mut self, outer: &Session, failed: bool) -> anyhow::Result<()> {
        if failed {
            let log = fs::read_to_string(self.dir.join("daemon.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            for line in lines.iter().skip(lines.len().saturating_sub(LOG_LINES_SHOWN)) {
                outer.console.complain(format_args!("daemon: {line}"));
            }
        }
        if let Some(id) = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            // It may have ended already; the wait below says so.
            let _ = kill_process(id, Signal::TERM);
        }
        match tokio::time::timeout(STOPPED_WITHIN, self.child.wait()).await {
            Ok(status) => status.context("cannot wait for the daemon")?,
            Err(_) => bail!("the daemon does not end; its directory is {}", self.dir.display()),
        };
        fs::remove_dir_all(&self.dir)
            .with_context(|| format!("cannot remove the daemon's directory {}", self.dir.display()))
    }
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("rl.sock")
}

//! Inside a member: init, wire frames, ssh, the configuration pass.
//!
//! ```text
//!  host │ control.sock                          ssh.sock │ bound by the launcher, 0700
//! ──────┼───────────────────────────────────────────────┼────────────────────────────
//!       ▼                                               ▼
//!  control.rs  wire frames ◄─► Link (daemon)        ssh/   russh: publickey, exec, shell
//!       │ Apply                                         │
//!       ▼                                               ▼
//!  pass/  login user, home, sudo, environment,     login.rs  who may come in, with which
//!         the managed keys                                   variables; read at every login
//!       └──────────► the member's own files ◄───────────┘
//! ```
//!
//! The two halves share nothing but the member's files, so what a login sees is what the last
//! pass wrote, whether or not the agent was restarted between. The agent runs as root of the
//! member in any root file system: it reads and writes passwd and group itself (a static binary
//! has no NSS) and needs no program of the image but the login shell. Where a user can write,
//! it works with that user's rights only (`sys::session::as_user`).

pub mod init;
pub mod link;
pub mod wire;

mod accounts;
mod control;
mod host_key;
mod hostile;
mod login;
mod pass;
mod place;
mod ssh;

use std::io;
use std::os::fd::RawFd;

use tokio::net::UnixListener;
use tokio::sync::watch;

use crate::sys::namespaces::block_no_signals;
use crate::sys::session;
use place::Place;

/// Set by init at boot, for the hello.
const BOOT_ID: &str = "RINGLEADER_BOOT_ID";
const IMAGE: &str = "RINGLEADER_IMAGE";

/// Runs the agent on two listening sockets inherited from init, until it is told to end.
///
/// The program's own thread does everything but configuration passes and reads in the user's
/// home. Logs go to standard error.
pub fn main(control_fd: RawFd, ssh_fd: RawFd) -> io::Result<()> {
    start_log();
    // Init reads its signals from a descriptor, and this process inherits their blocking.
    block_no_signals()?;
    let control = session::inherited_listener(control_fd)?;
    let ssh = session::inherited_listener(ssh_fd)?;
    session::keep_descriptors_from_children()?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(4).build()?;
    runtime.block_on(async {
        let (control, ssh) = (UnixListener::from_std(control)?, UnixListener::from_std(ssh)?);
        serve(Place::at("/"), control, ssh).await
    })
}

/// Serves daemon and clients until SIGTERM.
async fn serve(place: Place, control: UnixListener, ssh: UnixListener) -> io::Result<()> {
    let host_key = host_key::load_or_make(&place)?;
    let (sessions, sessions_seen) = watch::channel(0);
    let hello = wire::AgentHello {
        protocol: wire::PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: wire::CAPABILITIES.iter().map(|&name| name.to_owned()).collect(),
        boot_id: std::env::var(BOOT_ID).unwrap_or_default(),
        image: std::env::var(IMAGE).unwrap_or_default(),
        login_user: String::new(),
        host_keys: vec![host_key::public_line(&host_key)?],
    };
    let daemon = control::Control { place: place.clone(), hello, sessions: sessions_seen };
    let server = ssh::Server::new(place, host_key, sessions);
    let mut ended = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "the agent serves");
    tokio::select! {
        () = control::serve(control, daemon) => {}
        () = server.serve(ssh) => {}
        _ = ended.recv() => tracing::info!("the agent ends"),
    }
    Ok(())
}

/// Our own events at info, libraries' at warn; no colours, because init writes them to a file.
fn start_log() {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::prelude::*;

    let filter = Targets::new().with_default(LevelFilter::WARN).with_target("ringleader", LevelFilter::INFO);
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(io::stderr);
    // A log that was set up before (in tests) is as good.
    drop(tracing_subscriber::registry().with(lines.with_filter(filter)).try_init());
}

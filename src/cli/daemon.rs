//! `rl daemon …`: its grammar. `main` runs the daemon itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What can be done with the daemon.
#[derive(Debug, Subcommand)]
pub enum DaemonVerb {
    /// Run the daemon in the foreground
    Run(DaemonRun),
}

/// How the daemon runs: what overrides its settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct DaemonRun {
    /// The settings file [default: /etc/ringleader/daemon.toml, where it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where everything is kept [default: /var/lib/ringleader; of others than root
    /// $XDG_STATE_HOME/ringleader]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The unix socket to listen on [default: /run/ringleader/rl.sock; of others than root
    /// $XDG_RUNTIME_DIR/ringleader/rl.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Listen on TCP as well [default: no]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
}

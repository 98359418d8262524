//! The daemon, put together: settings, launcher, store, actors, front end; and taken apart again.
//!
//! ```text
//!  parse settings ─► launcher (before any thread) ─► log ─► data directory ─► store, view
//!        64                                                  1                    1
//!  ─► provider ─► arbiters, supervisor, catalog ─► socket ─► ready ─► … SIGTERM ─► drain ─► close
//! ```
//!
//! Exit codes: 64 the settings are wrong, 1 it could not start, 70 the store or an arbiter was
//! lost, 0 it was told to stop. Members live on in every case.

mod log;
mod signals;
mod socket;
mod start;

use std::process::ExitCode;

use crate::cli::DaemonRun;
use crate::settings::{self, Overrides};

/// The settings are wrong (`EX_USAGE` of sysexits.h).
const BAD_SETTINGS: u8 = 64;
/// The store or an arbiter was lost (`EX_SOFTWARE` of sysexits.h).
pub(crate) const LOST: i32 = 70;

/// `rl daemon run`: returns when the daemon has stopped.
#[must_use]
pub fn run(run: DaemonRun) -> ExitCode {
    if run.listen.is_some() {
        eprintln!("rl: --listen: this version serves its unix socket alone; leave --listen out");
        return ExitCode::from(BAD_SETTINGS);
    }
    let overrides = Overrides { config: run.config, data_dir: run.data_dir, socket: run.socket };
    let settings = match settings::load(&overrides) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("rl: {error}");
            return ExitCode::from(BAD_SETTINGS);
        }
    };
    let log_is_apart = settings.log.directory.is_some();
    match start::run(settings, overrides) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Once on stderr, which is the terminal or the journal, and in the log where that is apart.
            if log_is_apart {
                tracing::error!("{}", causes(&error));
            }
            eprintln!("rl: the daemon could not start: {}", causes(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes, each said once: many of ours name their cause themselves.
fn causes(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| {
        let cause = cause.to_string();
        if said.is_empty() {
            cause
        } else if said.contains(&cause) {
            said
        } else {
            format!("{said}: {cause}")
        }
    })
}

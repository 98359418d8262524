//! `rl launcher`: the single-threaded program that makes machines for the daemon.

use std::io;

/// The daemon's hold on its launcher. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LauncherHandle {}

/// Starts `rl launcher`. `main` calls it before the runtime; the launcher ends with the daemon.
///
/// # Errors
/// When the process cannot be started.
pub fn spawn() -> io::Result<LauncherHandle> {
    Ok(LauncherHandle {})
}

/// The program `rl launcher`; its socket is standard input. Returns the exit code.
#[must_use]
pub fn main() -> i32 {
    0
}

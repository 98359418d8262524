//! The two sockets that lead to a machine's agent.
//!
//! They lie in a directory that only the host's root can enter, so that nobody inside can put
//! another file in their place, and are named through a descriptor of it: a socket's path may have
//! 108 bytes only, which a data directory can well exceed.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use tokio::net::UnixStream;

use crate::provider::Door;

const DOORS: [Door; 2] = [Door::Control, Door::Ssh];

/// Binds both sockets anew.
///
/// # Errors
/// When the directory cannot be written.
pub fn bind(link_dir: &Path) -> io::Result<(UnixListener, UnixListener)> {
    remove(link_dir)?;
    let directory = File::open(link_dir)?;
    let [control, ssh] = DOORS.map(|door| UnixListener::bind(path(&directory, door)));
    Ok((control?, ssh?))
}

/// Removes both sockets; connections that are open stay open.
///
/// # Errors
/// When the directory cannot be written.
pub fn remove(link_dir: &Path) -> io::Result<()> {
    for door in DOORS {
        match fs::remove_file(link_dir.join(file_name(door))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Connects to one of them.
///
/// # Errors
/// When nobody listens.
pub async fn connect(link_dir: &Path, door: Door) -> io::Result<UnixStream> {
    let directory = File::open(link_dir)?;
    UnixStream::connect(path(&directory, door)).await
}

fn path(directory: &File, door: Door) -> PathBuf {
    format!("/proc/self/fd/{}/{}", directory.as_raw_fd(), file_name(door)).into()
}

const fn file_name(door: Door) -> &'static str {
    match door {
        Door::Control => "control.sock",
        Door::Ssh => "ssh.sock",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_data_directory_deeper_than_a_socket_path_may_be_long_serves() {
        let base = tempfile::tempdir().expect("a directory");
        let deep = base.path().join("d".repeat(100)).join("e".repeat(100));
        fs::create_dir_all(&deep).expect("made");
        let (_control, ssh) = bind(&deep).expect("bound");
        connect(&deep, Door::Ssh).await.expect("connected");
        ssh.accept().expect("the other end");
        drop(ssh);
        connect(&deep, Door::Ssh).await.expect_err("nobody listens");
        bind(&deep).expect("bound again");
    }
}

//! The unix socket that `rl` speaks to.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use anyhow::{Context as _, bail};

/// Members of this group are as good as root: they may do everything the daemon does.
const GROUP: &str = "ringleader";

/// Binds the socket, over one that nobody answers at any more. A daemon run by root gives it to
/// the group `ringleader` where that exists.
///
/// # Errors
/// When another daemon answers there, or the socket cannot be made.
pub fn bind(path: &Path) -> anyhow::Result<UnixListener> {
    let display = path.display();
    if let Some(parent) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(parent)
            .with_context(|| format!("cannot make the directory of the socket {display}"))?;
    }
    match UnixStream::connect(path) {
        Ok(_) => bail!("another daemon answers at {display}: stop it, or pass another --socket"),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path)
                .with_context(|| format!("cannot remove the socket of an ended daemon at {display}"))?;
        }
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).with_context(|| format!("cannot bind the socket {display}"))?;
    let group = group_id(GROUP).filter(|_| rustix::process::geteuid().is_root());
    if let Some(group) = group {
        chown(path, None, Some(group))
            .with_context(|| format!("cannot give {display} to the group {GROUP}"))?;
    }
    let mode = if group.is_some() { 0o660 } else { 0o600 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {display}"))?;
    listener.set_nonblocking(true).context("cannot use the socket")?;
    Ok(listener)
}

/// The static binary has no NSS: the file is read as it stands.
fn group_id(name: &str) -> Option<u32> {
    let groups = fs::read_to_string("/etc/group").ok()?;
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_a_daemon_answers_at_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("run/rl.sock");
        let first = bind(&path).expect("binds");
        assert!(bind(&path).expect_err("refused").to_string().contains("another daemon answers"));
        drop(first);
        bind(&path).expect("binds over what an ended daemon left");
    }
}

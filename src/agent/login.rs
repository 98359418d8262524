//! A login: who may come in, and with which variables.
//!
//! Everything is read from the member's files at that moment, so a key or a variable that a pass
//! changed counts from the next login on, and open sessions are not touched.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use russh::keys::{Algorithm, PublicKey};

use super::accounts::{self, Account};
use super::pass;
use super::place::Place;

/// Variables by name.
pub(super) type Variables = BTreeMap<String, String>;

/// Why a login was refused. For the log: it names no key.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("no user may log in yet")]
    NoLoginUser,
    #[error("{0:?} is not the login user")]
    OtherUser(String),
    #[error("the key's signatures use SHA-1")]
    Sha1,
    #[error("the key is not authorized ({lines_with_options} lines with options were left out)")]
    UnknownKey { lines_with_options: usize },
    #[error("the keys cannot be read: {0}")]
    Unreadable(String),
}

/// Whether this key lets this user in now.
pub(super) async fn admits(
    place: &Place,
    user: &str,
    key: &PublicKey,
    algorithm: &Algorithm,
) -> Result<(), Refusal> {
    let account = pass::login_user(place).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    let account = account.ok_or(Refusal::NoLoginUser)?;
    if account.name != user {
        return Err(Refusal::OtherUser(user.chars().take(64).collect()));
    }
    if matches!(algorithm, Algorithm::Rsa { hash: None }) {
        return Err(Refusal::Sha1);
    }
    let has_key = |keys: &[PublicKey]| keys.iter().any(|known| known.key_data() == key.key_data());
    let managed = pass::read_managed_keys(place).map_err(|error| Refusal::Unreadable(error.to_string()))?;
    if has_key(&managed.keys) {
        return Ok(());
    }
    let authorized = pass::read_keys(place, &account).await;
    let authorized = authorized.map_err(|error| Refusal::Unreadable(error.to_string()))?;
    if has_key(&authorized.keys) {
        Ok(())
    } else {
        Err(Refusal::UnknownKey { lines_with_options: authorized.with_options })
    }
}

/// Whether a client may set this variable. Others could change what programs do before any shell
/// looks at them.
pub(super) fn takes_from_client(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_plain
        && (name == "LANG"
            || name == "COLORTERM"
            || ["LC_", "RL_"].iter().any(|start| name.starts_with(start)))
}

/// The environment of a session: defaults, then /etc/environment, the member's setup, and the
/// client's own; who the user is comes last and cannot be overridden.
pub(super) fn environment(
    place: &Place,
    account: &Account,
    from_client: &Variables,
) -> io::Result<Vec<(OsString, OsString)>> {
    let mut variables = Variables::new();
    let mut set = |name: &str, value: &str| drop(variables.insert(name.to_owned(), value.to_owned()));
    set("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
    set("LANG", "C.UTF-8");
    for (name, value) in image_variables(&place.read("etc/environment").ok().flatten().unwrap_or_default()) {
        set(name, value);
    }
    for (name, value) in pass::read_environment(place)? {
        set(&name, &value);
    }
    for (name, value) in from_client {
        set(name, value);
    }
    // A client comes through the daemon: the member sees no address, and these are looked at
    // mostly to learn that this is an SSH session.
    set("SSH_CLIENT", "127.0.0.1 0 22");
    set("SSH_CONNECTION", "127.0.0.1 0 127.0.0.1 22");
    set("USER", &account.name);
    set("LOGNAME", &account.name);
    set("HOME", &place.path(&account.home).to_string_lossy());
    set("SHELL", &account.shell.to_string_lossy());
    Ok(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
}

/// The group that terminals belong to.
pub(super) fn terminal_group(place: &Place) -> Option<u32> {
    accounts::group_id(place, "tty")
}

/// The lines of /etc/environment: `NAME=value`, perhaps quoted.
fn image_variables(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let quoted = |quote| value.strip_prefix(quote).and_then(|value: &str| value.strip_suffix(quote));
        is_name.then(|| (name, quoted('"').or_else(|| quoted('\'')).unwrap_or(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::session::User;

    #[test]
    fn later_layers_win_and_nobody_changes_who_the_user_is() {
        let root = tempfile::tempdir().expect("a directory");
        let place = Place::at(root.path());
        place
            .settle(
                "etc/environment",
                "# x\nPATH=\"/opt/bin\"\nA=image\nB='image'\nUSER=root\n",
                0o644,
                0o755,
            )
            .expect("set");
        place.settle("etc/ringleader/environment", "B=setup\nHOME=/elsewhere\n", 0o600, 0o755).expect("set");
        let account = Account {
            name: "dev".into(),
            user: User { uid: 1000, gid: 1000, groups: Vec::new() },
            home: "/home/dev".into(),
            shell: "/bin/sh".into(),
        };
        let from_client = Variables::from([("LANG".into(), "de_DE.UTF-8".into())]);
        let environment = environment(&place, &account, &from_client).expect("read");
        let value = |name: &str| {
            environment.iter().find(|(n, _)| n == name).map(|(_, v)| v.to_string_lossy().into_owned())
        };
        assert_eq!(value("PATH").as_deref(), Some("/opt/bin"));
        assert_eq!(value("A").as_deref(), Some("image"));
        assert_eq!(value("B").as_deref(), Some("setup"));
        assert_eq!(value("LANG").as_deref(), Some("de_DE.UTF-8"));
        assert_eq!(value("USER").as_deref(), Some("dev"));
        assert_eq!(value("HOME"), Some(root.path().join("home/dev").to_string_lossy().into_owned()));
    }

    #[test]
    fn clients_set_language_and_our_own_variables_only() {
        let taken = ["LANG", "LC_ALL", "RL_POOL", "COLORTERM"];
        assert!(taken.into_iter().all(takes_from_client));
        assert!(
            !["LD_PRELOAD", "PATH", "BASH_ENV", "LC_X=Y", "", "GIT_SSH"].into_iter().any(takes_from_client)
        );
    }
}

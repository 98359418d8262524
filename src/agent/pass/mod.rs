//! The configuration pass: brings the member to what is declared, and says what it could not.
//!
//! A pass is level-triggered: it looks at what is there and changes only what differs, so it may
//! run again at any time, after a crash in its middle too. Its steps, in order:
//!
//! 1. `identity`: the login user's account and groups (`accounts.rs`).
//! 2. `home`: its home, from /etc/skel when it is new.
//! 3. `keys`: the managed keys, and their block in its `authorized_keys`. Early, because a lease waits for it.
//! 4. `sudo`: who may become root.
//! 5. `environment`: the variables that sessions get.
//!
//! Keys and the rest are judged apart: a lease is Ready by its keys, a member Configured by all.

mod environment;
mod home;
mod identity;
mod keys;
mod sudo;

use super::accounts::Account;
use super::place::Place;
use super::wire;

pub(super) use environment::read as read_environment;
pub(super) use identity::login_user;
pub(super) use keys::{read as read_keys, read_managed as read_managed_keys};

/// A step that failed.
#[derive(Clone, Debug)]
struct Failure {
    /// One CamelCase word.
    reason: &'static str,
    /// The step's name, and what went wrong.
    message: String,
}

/// Lands `setup` and `keys`. Blocks for as long as files take: a few milliseconds.
pub(super) fn run(place: &Place, keys: &[String], setup: &wire::Setup) -> Report {
    let mut remarks = Vec::new();
    let account =
        identity::settle(place, setup).and_then(|account| home::settle(place, &account).map(|()| account));
    let keys = account.as_ref().map_err(Clone::clone).and_then(|account| keys::settle(place, account, keys));
    let setup = account.and_then(|account| {
        remarks.extend(sudo::settle(place, &account, setup.sudo)?);
        environment::settle(place, &setup.environment)?;
        identity::remember(place, &account)
    });
    Report { keys: outcome(keys), setup: outcome(setup), remarks }
}

/// What a pass did.
#[derive(Debug)]
pub(super) struct Report {
    pub keys: wire::Outcome,
    pub setup: wire::Outcome,
    pub remarks: Vec<String>,
}

impl Report {
    /// For a pass that ended in a panic.
    pub(super) fn broken_off() -> Self {
        let failure =
            Failure { reason: "PassBrokeOff", message: "the pass broke off; see the agent's log".to_owned() };
        Self { keys: outcome(Err(failure.clone())), setup: outcome(Err(failure)), remarks: Vec::new() }
    }
}

/// For the log: how both parts ended.
impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |outcome: &wire::Outcome| match outcome {
            wire::Outcome::Done => "done".to_owned(),
            wire::Outcome::Failed { reason, message } => format!("{reason} ({message})"),
        };
        write!(f, "keys {}, setup {}", shown(&self.keys), shown(&self.setup))
    }
}

fn outcome(result: Result<(), Failure>) -> wire::Outcome {
    match result {
        Ok(()) => wire::Outcome::Done,
        Err(Failure { reason, message }) => wire::Outcome::Failed { reason: reason.to_owned(), message },
    }
}

/// Runs a step's work as the account's user and waits for it.
fn as_user<T, F>(account: &Account, work: F) -> std::io::Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> std::io::Result<T> + Send + 'static,
{
    let result = crate::sys::session::as_user(&account.user, work)?;
    result.blocking_recv().unwrap_or_else(|_| Err(std::io::Error::other("the work broke off")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use wire::Outcome;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    /// A scratch root whose user `dev` is who runs the test, or 12345 where that is root.
    fn scratch() -> (tempfile::TempDir, Place) {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).expect("set");
        for directory in ["etc", "etc/skel", "home", "bin", "var", "var/lib"] {
            std::fs::create_dir(root.path().join(directory)).expect("made");
        }
        let own = rustix::process::geteuid();
        let uid = if own.is_root() { 12345 } else { own.as_raw() };
        let place = Place::at(root.path());
        let passwd = format!("root:x:0:0::/root:/bin/sh\ndev:x:{uid}:{uid}::/home/dev:/bin/sh\n");
        place.replace("etc/passwd", passwd.as_bytes(), 0o644).expect("written");
        place.replace("etc/group", format!("root:x:0:\ndev:x:{uid}:\n").as_bytes(), 0o644).expect("written");
        place.replace("etc/skel/.profile", b"hello\n", 0o644).expect("written");
        (root, place)
    }

    fn text(place: &Place, path: &str) -> Option<String> {
        place.read(path).expect("read")
    }

    #[test]
    fn a_pass_makes_the_home_the_keys_and_the_environment_and_remarks_on_missing_sudo() {
        let (_root, place) = scratch();
        let setup = wire::Setup { environment: vec![("A".into(), "b\nc\\".into())], ..Default::default() };
        let report = run(&place, &[format!("{KEY} laptop")], &setup);
        assert_eq!((report.keys, report.setup), (Outcome::Done, Outcome::Done));
        assert_eq!(report.remarks, ["sudo: the image has no sudo"]);
        let account = login_user(&place).expect("read").expect("there");
        assert_eq!(account.name, "dev");
        assert_eq!(text(&place, "home/dev/.profile").as_deref(), Some("hello\n"));
        let keys = text(&place, "home/dev/.ssh/authorized_keys").expect("there");
        assert!(keys.contains(&format!("\n{KEY} laptop\n")), "{keys}");
        assert_eq!(read_managed_keys(&place).expect("read").keys.len(), 1);
        assert_eq!(read_environment(&place).expect("read"), [("A".to_owned(), "b\nc\\".to_owned())]);
        for (path, mode) in
            [("home/dev", 0o700), ("home/dev/.ssh", 0o700), ("home/dev/.ssh/authorized_keys", 0o600)]
        {
            let metadata = std::fs::metadata(place.path(path)).expect("there");
            assert_eq!((metadata.uid(), metadata.mode() & 0o7777), (account.user.uid, mode), "{path}");
        }
    }

    #[test]
    fn sudo_is_given_where_the_image_has_it_and_taken_back_when_it_is_unwanted() {
        let (_root, place) = scratch();
        place.make_directory("usr", 0o755).expect("made");
        place.make_directory("usr/bin", 0o755).expect("made");
        place.replace("usr/bin/sudo", b"", 0o755).expect("written");
        assert!(run(&place, &[], &wire::Setup::default()).remarks.is_empty());
        let rule = text(&place, "etc/sudoers.d/90-ringleader").expect("there");
        assert!(rule.ends_with("\ndev ALL=(ALL:ALL) NOPASSWD: ALL\n"), "{rule}");
        let report = run(&place, &[], &wire::Setup { sudo: Some(false), ..Default::default() });
        assert_eq!((report.setup, report.remarks), (Outcome::Done, Vec::new()));
        assert_eq!(text(&place, "etc/sudoers.d/90-ringleader"), None);
    }

    #[test]
    fn a_failed_step_is_named_and_keys_do_not_depend_on_what_comes_after_them() {
        let (_root, place) = scratch();
        let setup = wire::Setup { environment: vec![("A=B".into(), String::new())], ..Default::default() };
        let report = run(&place, &[KEY.to_owned()], &setup);
        assert_eq!(report.keys, Outcome::Done);
        let Outcome::Failed { reason, message } = report.setup else { panic!("a failure was expected") };
        assert_eq!(
            (reason.as_str(), message.as_str()),
            ("EnvironmentFailed", "environment: \"A=B\" is no variable name")
        );
        let report = run(&place, &[], &wire::Setup { user: Some("Root!".into()), ..Default::default() });
        let Outcome::Failed { reason, message } = report.keys else { panic!("a failure was expected") };
        assert_eq!(
            (reason.as_str(), message.as_str()),
            ("IdentityFailed", "identity: \"Root!\" is no user name")
        );
    }

    #[test]
    fn keys_are_taken_back_from_the_server_even_where_the_home_cannot_be_written() {
        let (_root, place) = scratch();
        run(&place, &[KEY.to_owned()], &wire::Setup::default());
        std::fs::remove_dir_all(place.path("home/dev/.ssh")).expect("removed");
        std::os::unix::fs::symlink("/tmp", place.path("home/dev/.ssh")).expect("linked");
        assert_eq!(read_managed_keys(&place).expect("read").keys.len(), 1);
        let report = run(&place, &[], &wire::Setup::default());
        assert!(matches!(report.keys, Outcome::Failed { .. }), "the block may still stand: {report}");
        assert_eq!(read_managed_keys(&place).expect("read").keys.len(), 0);
    }
}

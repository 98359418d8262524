//! The member's accounts: /etc/passwd, /etc/group and their shadows, read and written natively.
//!
//! Lines this file does not understand are kept as they are. Files are replaced by rename, under
//! the lock that `useradd` and its kin take (/etc/.pwd.lock). There is no fsync: a replaced file
//! on a disk that lost power is either the old or the new one, and the pass runs at every boot.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::place::Place;
use crate::sys::session::User;

/// Ids that `useradd` gives to people.
const PERSON_IDS: std::ops::Range<u32> = 1000..60_000;
/// Ids that `groupadd --system` gives.
const SYSTEM_IDS: std::ops::Range<u32> = 100..1000;
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// One account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub name: String,
    pub user: User,
    /// As passwd has it; not below the place's root.
    pub home: PathBuf,
    pub shell: PathBuf,
}

/// What an account should be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wished<'a> {
    pub name: &'a str,
    /// None keeps the present shell, or takes `shell_if_new`.
    pub shell: Option<&'a str>,
    pub shell_if_new: &'a str,
    pub groups: &'a [String],
}

/// Why an account could not be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccountError {
    #[error("{0:?} is no user name")]
    UserName(String),
    #[error("{0:?} is no group name")]
    GroupName(String),
    #[error("{0:?} is no absolute path of a shell")]
    Shell(String),
    #[error("{0} has another user id than a login user may have")]
    Root(String),
    #[error("no free id for {0}")]
    NoFreeId(String),
    #[error("the account files stayed locked by another program")]
    Locked,
    #[error("{0}")]
    File(#[from] std::io::Error),
}

/// Whether `useradd` would take this name: what the sudoers file and an ssh command rely on.
pub(super) fn is_user_name(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    first && name.len() <= 32 && name.bytes().all(rest)
}

/// The account of that name, with its supplementary groups. None if there is none.
pub(super) fn find(place: &Place, name: &str) -> Result<Option<Account>, AccountError> {
    let passwd = Table::read(place, "etc/passwd")?;
    let Some(line) = passwd.line(name) else {
        return Ok(None);
    };
    let group = Table::read(place, "etc/group")?;
    Ok(account(line, &group))
}

/// The id of a group; None if there is none.
pub(super) fn group_id(place: &Place, name: &str) -> Option<u32> {
    let group = Table::read(place, "etc/group").ok()?;
    field(group.line(name)?, 2)?.parse().ok()
}

/// Makes the account what it should be, and says what it is then.
pub(super) fn ensure(place: &Place, wished: Wished<'_>) -> Result<Account, AccountError> {
    check(wished)?;
    let _lock = lock(place)?;
    let mut passwd = Table::read(place, "etc/passwd")?;
    let mut group = Table::read(place, "etc/group")?;
    match passwd.line(wished.name).cloned() {
        None => {
            let gid = own_group(&mut group, wished.name)?;
            let uid =
                free_id(&passwd, PERSON_IDS, Some(gid)).ok_or(AccountError::NoFreeId(wished.name.into()))?;
            let shell = wished.shell.unwrap_or(wished.shell_if_new);
            passwd.lines.push(format!("{0}:x:{uid}:{gid}::/home/{0}:{shell}", wished.name));
            Table::append_if_present(place, "etc/shadow", wished.name, "*::0:99999:7:::")?;
            Table::append_if_present(place, "etc/gshadow", wished.name, "!::")?;
        }
        Some(line) => {
            if let (Some(shell), 7) = (wished.shell, line.split(':').count()) {
                passwd.set_field(wished.name, 6, shell);
            }
        }
    }
    for name in wished.groups {
        join_group(&mut group, name, wished.name)?;
    }
    // The group file first: an account never names a group that is not there.
    group.write(place)?;
    passwd.write(place)?;
    let line = passwd.line(wished.name).cloned().unwrap_or_default();
    let account = account(&line, &group).ok_or_else(|| AccountError::UserName(wished.name.into()))?;
    if account.user.uid == 0 { Err(AccountError::Root(account.name)) } else { Ok(account) }
}

fn check(wished: Wished<'_>) -> Result<(), AccountError> {
    if !is_user_name(wished.name) {
        return Err(AccountError::UserName(wished.name.to_owned()));
    }
    if let Some(name) = wished.groups.iter().find(|name| !is_user_name(name)) {
        return Err(AccountError::GroupName(name.clone()));
    }
    let well_formed = |s: &&str| s.starts_with('/') && !s.contains([':', '\n', '\0']);
    match wished.shell.filter(|s| !well_formed(s)) {
        Some(shell) => Err(AccountError::Shell(shell.to_owned())),
        None => Ok(()),
    }
}

/// The id of the user's own group, made if need be.
fn own_group(group: &mut Table, name: &str) -> Result<u32, AccountError> {
    if let Some(gid) = group.line(name).and_then(|line| field(line, 2)?.parse().ok()) {
        return Ok(gid);
    }
    let gid = free_id(group, PERSON_IDS, None).ok_or(AccountError::NoFreeId(name.to_owned()))?;
    group.lines.push(format!("{name}:x:{gid}:"));
    Ok(gid)
}

/// Makes `member` one of the group `name`; a group the image does not have is made.
fn join_group(group: &mut Table, name: &str, member: &str) -> Result<(), AccountError> {
    let Some(line) = group.line(name) else {
        let gid = SYSTEM_IDS.rev().find(|id| !group.has_id(*id));
        let gid = gid.ok_or_else(|| AccountError::NoFreeId(name.to_owned()))?;
        group.lines.push(format!("{name}:x:{gid}:{member}"));
        return Ok(());
    };
    let members = field(line, 3).unwrap_or_default().to_owned();
    if members.split(',').any(|m| m == member) {
        return Ok(());
    }
    let separator = if members.is_empty() { "" } else { "," };
    group.set_field(name, 3, &format!("{members}{separator}{member}"));
    Ok(())
}

/// The preferred id if it is free, else the first free one.
fn free_id(table: &Table, mut ids: std::ops::Range<u32>, preferred: Option<u32>) -> Option<u32> {
    let preferred = preferred.filter(|id| ids.contains(id) && !table.has_id(*id));
    preferred.or_else(|| ids.find(|id| !table.has_id(*id)))
}

/// Reads one passwd line. None if it is malformed.
fn account(line: &str, group: &Table) -> Option<Account> {
    let [name, _, uid, gid, _, home, shell] = line.split(':').collect::<Vec<_>>().try_into().ok()?;
    let gid = gid.parse().ok()?;
    let is_member = |line: &&String| field(line, 3).is_some_and(|m| m.split(',').any(|m| m == name));
    let others = group.lines.iter().filter(is_member).filter_map(|line| field(line, 2)?.parse().ok());
    let groups = std::iter::once(gid).chain(others.filter(|other| *other != gid)).collect();
    Some(Account {
        name: name.to_owned(),
        user: User { uid: uid.parse().ok()?, gid, groups },
        home: home.into(),
        shell: if shell.is_empty() { "/bin/sh".into() } else { shell.into() },
    })
}

fn field(line: &str, number: usize) -> Option<&str> {
    line.split(':').nth(number)
}

/// Holds the lock of the account files until it is dropped. Another holder is waited for.
fn lock(place: &Place) -> Result<std::fs::File, AccountError> {
    let file = std::fs::File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(place.path("etc/.pwd.lock"))?;
    let give_up_at = Instant::now() + LOCK_WAIT;
    loop {
        match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::AGAIN | Errno::ACCESS) if Instant::now() < give_up_at => {
                std::thread::sleep(LOCK_RETRY);
            }
            Err(Errno::AGAIN | Errno::ACCESS) => return Err(AccountError::Locked),
            Err(errno) => return Err(std::io::Error::from(errno).into()),
        }
    }
}

/// A file of colon-separated lines whose first field is a name.
struct Table {
    path: &'static str,
    lines: Vec<String>,
    as_read: String,
}

impl Table {
    /// A file that does not exist is an empty one.
    fn read(place: &Place, path: &'static str) -> Result<Self, AccountError> {
        let as_read = place.read(path)?.unwrap_or_default();
        Ok(Self { path, lines: as_read.lines().map(str::to_owned).collect(), as_read })
    }

    fn append_if_present(
        place: &Place,
        path: &'static str,
        name: &str,
        rest: &str,
    ) -> Result<(), AccountError> {
        let mut table = Self::read(place, path)?;
        if !table.as_read.is_empty() && table.line(name).is_none() {
            table.lines.push(format!("{name}:{rest}"));
            table.write(place)?;
        }
        Ok(())
    }

    fn write(&self, place: &Place) -> Result<(), AccountError> {
        let mut text = self.lines.join("\n");
        text.push('\n');
        if text != self.as_read {
            place.replace(self.path, text.as_bytes(), 0o644)?;
        }
        Ok(())
    }

    fn line(&self, name: &str) -> Option<&String> {
        self.lines.iter().find(|line| field(line, 0) == Some(name))
    }

    fn has_id(&self, id: u32) -> bool {
        self.lines.iter().any(|line| field(line, 2).and_then(|f| f.parse().ok()) == Some(id))
    }

    fn set_field(&mut self, name: &str, number: usize, value: &str) {
        if let Some(line) = self.lines.iter_mut().find(|line| field(line, 0) == Some(name)) {
            let mut fields: Vec<&str> = line.split(':').collect();
            fields.resize(fields.len().max(number + 1), "");
            fields[number] = value;
            *line = fields.join(":");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(passwd: &str, group: &str) -> (tempfile::TempDir, Place) {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join("etc")).expect("made");
        let place = Place::at(root.path());
        place.replace("etc/passwd", passwd.as_bytes(), 0o644).expect("written");
        place.replace("etc/group", group.as_bytes(), 0o644).expect("written");
        (root, place)
    }

    fn text(place: &Place, path: &str) -> String {
        place.read(path).expect("read").expect("there")
    }

    fn wished<'a>(name: &'a str, groups: &'a [String]) -> Wished<'a> {
        Wished { name, shell: None, shell_if_new: "/bin/bash", groups }
    }

    #[test]
    fn a_new_account_gets_free_ids_its_own_group_and_the_groups_asked_for() {
        let (_root, place) = place(
            "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n",
            "root:x:0:\nann:x:1000:\nvideo:x:44:ann\n",
        );
        place.replace("etc/shadow", b"root:*:1::::::\n", 0o640).expect("written");
        let groups = ["video".to_owned(), "docker".to_owned()];
        let account = ensure(&place, wished("dev", &groups)).expect("made");
        assert_eq!(account.user, User { uid: 1001, gid: 1001, groups: vec![1001, 44, 999] });
        assert_eq!(account.home, PathBuf::from("/home/dev"));
        assert!(text(&place, "etc/passwd").ends_with("\ndev:x:1001:1001::/home/dev:/bin/bash\n"));
        assert_eq!(
            text(&place, "etc/group"),
            "root:x:0:\nann:x:1000:\nvideo:x:44:ann,dev\ndev:x:1001:\ndocker:x:999:dev\n"
        );
        assert_eq!(text(&place, "etc/shadow"), "root:*:1::::::\ndev:*::0:99999:7:::\n");
        assert_eq!(place.read("etc/gshadow").expect("read"), None);
        assert_eq!(find(&place, "dev").expect("read"), Some(account));
        assert_eq!(find(&place, "nobody").expect("read"), None);
    }

    #[test]
    fn a_second_pass_changes_nothing_and_a_new_shell_changes_only_the_shell() {
        let odd = "root:x:0:0:root:/root:/bin/sh\n# a comment\n+nis\n";
        let (_root, place) = place(odd, "root:x:0:\n");
        ensure(&place, wished("dev", &[])).expect("made");
        let before = (text(&place, "etc/passwd"), text(&place, "etc/group"));
        ensure(&place, wished("dev", &[])).expect("kept");
        assert_eq!((text(&place, "etc/passwd"), text(&place, "etc/group")), before);
        let shell = Wished { shell: Some("/bin/zsh"), ..wished("dev", &[]) };
        assert_eq!(ensure(&place, shell).expect("changed").shell, PathBuf::from("/bin/zsh"));
        assert_eq!(text(&place, "etc/passwd"), before.0.replace("/bin/bash", "/bin/zsh"));
        assert!(text(&place, "etc/passwd").starts_with(odd));
    }

    #[test]
    fn names_that_would_break_a_file_and_root_as_the_login_user_are_refused() {
        let (_root, place) =
            place("root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/root:/bin/sh\n", "root:x:0:\n");
        let broken = ["x\ny".to_owned()];
        let refused = |wished| ensure(&place, wished).expect_err("refused").to_string();
        assert_eq!(refused(wished("a:b", &[])), "\"a:b\" is no user name");
        assert_eq!(refused(wished("dev", &broken)), "\"x\\ny\" is no group name");
        assert_eq!(
            refused(Wished { shell: Some("sh"), ..wished("dev", &[]) }),
            "\"sh\" is no absolute path of a shell"
        );
        assert_eq!(refused(wished("toor", &[])), "toor has another user id than a login user may have");
    }
}

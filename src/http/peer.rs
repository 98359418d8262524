//! Who is at the other end of a connection.
//!
//! On the unix socket the kernel says it: root, the daemon's own user and the members of one group
//! are the user `local`. The binary is linked statically and cannot ask NSS, so `/etc/group` and
//! `/etc/passwd` are read as files, at every connection: a member added is let in at once.

use std::fmt;
use std::path::Path;

use crate::object::Subject;

use super::status::Status;

/// The user of everyone who may use the socket.
const LOCAL_USER: &str = "local";

/// Who speaks on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    Known(Subject),
    /// May be told why not, and what to do about it.
    Stranger(String),
}

impl Peer {
    /// Whoever may use the socket.
    #[must_use]
    pub fn local() -> Self {
        Self::Known(Subject::user(LOCAL_USER))
    }

    /// The subject behind every request on this connection.
    ///
    /// # Errors
    /// 403 for a stranger, with the cure.
    pub fn subject(&self) -> Result<&Subject, Status> {
        match self {
            Self::Known(subject) => Ok(subject),
            Self::Stranger(why) => Err(Status::forbidden(why.clone())),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(subject) => subject.fmt(f),
            Self::Stranger(_) => f.write_str("a stranger"),
        }
    }
}

/// Who may use the socket beside root.
#[derive(Clone, Debug)]
pub struct SocketGroup {
    /// The daemon's own user.
    pub own_uid: u32,
    /// The group whose members may.
    pub group: String,
}

impl SocketGroup {
    /// The group `ringleader`, and the user this process runs as.
    #[must_use]
    pub fn ringleader() -> Self {
        Self { own_uid: rustix::process::geteuid().as_raw(), group: "ringleader".to_owned() }
    }

    /// Who the process with these effective ids is.
    #[must_use]
    pub fn peer(&self, uid: u32, gid: u32) -> Peer {
        if uid == 0 || uid == self.own_uid {
            return Peer::local();
        }
        // Where a file cannot be read, nobody stands in it.
        let read = |path| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
        self.peer_by(uid, gid, &read("/etc/passwd"), &read("/etc/group"))
    }

    fn peer_by(&self, uid: u32, gid: u32, passwd: &str, groups: &str) -> Peer {
        let user = user_name(passwd, uid);
        let group = groups.lines().find_map(|line| GroupLine::parse(line).filter(|g| g.name == self.group));
        let member = group.is_some_and(|g| g.gid == gid || user.is_some_and(|user| g.has_member(user)));
        if member { Peer::local() } else { Peer::Stranger(self.refusal(uid, user)) }
    }

    fn refusal(&self, uid: u32, user: Option<&str>) -> String {
        let group = &self.group;
        let (who, name) = match user {
            Some(user) => (format!("user {user:?}"), user),
            None => (format!("uid {uid}"), "USER"),
        };
        format!(
            "{who} may not use this daemon: run \"sudo usermod -aG {group} {name}\" and log in again, \
             or run the command as root (members of the group {group} can become root through the daemon)"
        )
    }
}

/// A line of `/etc/group`: name, password, gid, members.
struct GroupLine<'a> {
    name: &'a str,
    gid: u32,
    members: &'a str,
}

impl<'a> GroupLine<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(4, ':');
        let (name, _, gid) = (fields.next()?, fields.next()?, fields.next()?.parse().ok()?);
        Some(Self { name, gid, members: fields.next().unwrap_or_default() })
    }

    fn has_member(&self, user: &str) -> bool {
        self.members.split(',').any(|member| member.trim() == user)
    }
}

fn user_name(passwd: &str, uid: u32) -> Option<&str> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, line_uid) = (fields.next()?, fields.next()?, fields.next()?);
        (line_uid.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n";
    const GROUP: &str = "root:x:0:\nringleader:x:990:ann,carol\nother:x:991:bob\n";

    fn group() -> SocketGroup {
        SocketGroup { own_uid: 500, group: "ringleader".to_owned() }
    }

    #[test]
    fn root_and_the_daemons_own_user_are_local() {
        assert_eq!(group().peer(0, 0), Peer::local());
        assert_eq!(group().peer(500, 500), Peer::local());
    }

    #[test]
    fn members_of_the_group_are_local_by_list_or_as_their_first_group() {
        assert_eq!(group().peer_by(1000, 1000, PASSWD, GROUP), Peer::local());
        assert_eq!(group().peer_by(4242, 990, PASSWD, GROUP), Peer::local());
    }

    #[test]
    fn everyone_else_is_told_the_cure() {
        let Peer::Stranger(why) = group().peer_by(1001, 1001, PASSWD, GROUP) else { panic!("let in") };
        assert!(why.contains("user \"bob\"") && why.contains("sudo usermod -aG ringleader bob"), "{why}");
        let Peer::Stranger(why) = group().peer_by(4242, 4242, PASSWD, "") else { panic!("let in") };
        assert!(why.contains("uid 4242"), "{why}");
    }
}

//! Pure: who may do what.
//!
//! For now there is one door, the unix socket, and who comes through it is the user `local`: the
//! administrator of this daemon. Rights of others come with the doors for others.

use crate::object::Subject;

/// The user that root, the daemon's own user and the group `ringleader` are.
pub const LOCAL: &str = "local";

/// Whether `subject` may do everything.
#[must_use]
pub fn is_administrator(subject: &Subject) -> bool {
    *subject == Subject::user(LOCAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_local_user_is_the_administrator() {
        assert!(is_administrator(&Subject::user("local")));
        assert!(!is_administrator(&Subject::user("ann")));
    }
}

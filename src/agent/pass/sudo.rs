//! Step `sudo`: whether the login user may become root.
//!
//! This is a convenience for people, not the wall: a member without sudo is made with
//! `no_new_privs` by its provider, which nothing inside can undo.

use std::io;

use super::Failure;
use crate::agent::accounts::Account;
use crate::agent::place::Place;

const RULE: &str = "etc/sudoers.d/90-ringleader";

/// Gives or takes the rule; the remark says when it cannot be given.
pub(super) fn settle(
    place: &Place,
    account: &Account,
    wanted: Option<bool>,
) -> Result<Option<String>, Failure> {
    let failed = |error: io::Error| Failure { reason: "SudoFailed", message: format!("sudo: {error}") };
    if !wanted.unwrap_or(true) {
        place.remove(RULE).map_err(failed)?;
        return Ok(None);
    }
    if !place.has_program("usr/bin/sudo") && !place.has_program("bin/sudo") {
        return Ok(Some("sudo: the image has no sudo".to_owned()));
    }
    // `account.name` is a checked user name: it cannot carry sudoers syntax.
    let rule = format!("# Written by the pool's agent.\n{} ALL=(ALL:ALL) NOPASSWD: ALL\n", account.name);
    place.settle(RULE, &rule, 0o440, 0o750).map_err(failed)?;
    Ok(None)
}

//! Step `identity`: the login user's account.

use super::Failure;
use crate::agent::accounts::{self, Account, AccountError, Wished};
use crate::agent::place::Place;
use crate::agent::wire;

const USER_DEFAULT: &str = "dev";
const SHELL_DEFAULT: &str = "/bin/bash";
const SHELL_EVERYWHERE: &str = "/bin/sh";
/// Keeps the login user's name over a restart of the agent.
const LOGIN_USER: &str = "var/lib/ringleader/login-user";

pub(super) fn settle(place: &Place, setup: &wire::Setup) -> Result<Account, Failure> {
    let shell_if_new = if place.has_program(SHELL_DEFAULT) { SHELL_DEFAULT } else { SHELL_EVERYWHERE };
    let wished = Wished {
        name: setup.user.as_deref().unwrap_or(USER_DEFAULT),
        shell: setup.shell.as_deref(),
        shell_if_new,
        groups: &setup.groups,
    };
    if let Some(shell) = wished.shell.filter(|shell| shell.starts_with('/') && !place.has_program(shell)) {
        return Err(failure(format!("the image has no shell {shell}")));
    }
    accounts::ensure(place, wished).map_err(failure)
}

/// From now on this is the user that may log in.
pub(super) fn remember(place: &Place, account: &Account) -> Result<(), Failure> {
    let name = format!("{}\n", account.name);
    place.settle(LOGIN_USER, &name, 0o644, 0o700).map_err(failure)
}

/// The user that may log in, as its account is now. None before a first pass has landed.
pub(in crate::agent) fn login_user(place: &Place) -> Result<Option<Account>, AccountError> {
    match place.read(LOGIN_USER)? {
        Some(name) => accounts::find(place, name.trim_end()),
        None => Ok(None),
    }
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure { reason: "IdentityFailed", message: format!("identity: {error}") }
}

//! How a command ends: its exit code, and what it says when it failed.

use std::io;

/// What the process exits with. The numbers are the contract of `spec/cli.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exit(pub u8);

impl Exit {
    pub const DONE: Self = Self(0);
    /// Failed, timed out or not found.
    pub const FAILED: Self = Self(1);
    /// The command itself is wrong.
    pub const USAGE: Self = Self(2);
    /// Of commands that run something on a member: `rl` itself failed, not the command.
    pub const OWN_FAILURE: Self = Self(125);
}

/// The command was typed wrong; the sentence says what to type.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Shorthand for a `Usage` error.
pub fn usage(sentence: impl Into<String>) -> anyhow::Error {
    Usage(sentence.into()).into()
}

/// The exit code of an error.
pub fn exit_of(error: &anyhow::Error) -> Exit {
    if error.is::<Usage>() { Exit::USAGE } else { Exit::FAILED }
}

/// Whether whoever read our output has gone (`rl get … | head`): no one is left to tell.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

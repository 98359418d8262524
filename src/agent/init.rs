//! `rl init`: PID 1 inside a member.

/// The program `rl init`, with the arguments after the word `init`. Returns the exit code.
#[must_use]
pub fn main(_arguments: &[String]) -> i32 {
    0
}

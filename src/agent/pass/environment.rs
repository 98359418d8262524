//! Step `environment`: the variables that sessions get.
//!
//! They stand in a file of our own (root's, mode 0600: values may be secrets), one
//! `NAME=value` a line, with `\n` and `\\` for a line break and a backslash. The agent reads it
//! at the start of every session; no shell does.

use std::io;

use super::Failure;
use crate::agent::place::Place;

const FILE: &str = "etc/ringleader/environment";

pub(super) fn settle(place: &Place, variables: &[(String, String)]) -> Result<(), Failure> {
    let failed =
        |message: String| Failure { reason: "EnvironmentFailed", message: format!("environment: {message}") };
    let mut text = String::new();
    for (name, value) in variables {
        if !is_name(name) {
            return Err(failed(format!("{name:?} is no variable name")));
        }
        if value.contains('\0') {
            return Err(failed(format!("the value of {name} has a zero byte")));
        }
        text.extend([name, "=", &value.replace('\\', "\\\\").replace('\n', "\\n"), "\n"]);
    }
    let settled = if text.is_empty() { place.remove(FILE) } else { place.settle(FILE, &text, 0o600, 0o755) };
    settled.map_err(|error| failed(error.to_string()))
}

/// The variables of the last pass.
pub(in crate::agent) fn read(place: &Place) -> io::Result<Vec<(String, String)>> {
    let text = place.read(FILE)?.unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    Ok(pairs.map(|(name, value)| (name.to_owned(), unescape(value))).collect())
}

/// What a shell takes for a variable.
fn is_name(name: &str) -> bool {
    let rest = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(rest)
}

fn unescape(value: &str) -> String {
    let mut characters = value.chars();
    let mut text = String::with_capacity(value.len());
    while let Some(character) = characters.next() {
        text.push(match (character, characters.as_str().chars().next()) {
            ('\\', Some('n')) => '\n',
            ('\\', Some(other)) => other,
            (plain, _) => plain,
        });
        if character == '\\' {
            characters.next();
        }
    }
    text
}

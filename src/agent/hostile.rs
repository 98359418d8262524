//! What the agent says, checked: after a lease with sudo the agent is the holder's.
//!
//! `wire` bounds a frame's bytes; here every string and list gets its own bound, control
//! characters become U+FFFD (these texts reach terminals), and what others rely on (the login
//! user in an ssh command, host keys in a `known_hosts` file) must have the right form.

use russh::keys::PublicKey;

use super::accounts::is_user_name;
use super::link::Applied;
use super::wire;
use crate::machine::{AgentInfo, Failure};

const WORD_CHARS_MAX: usize = 64;
const SENTENCE_CHARS_MAX: usize = 2048;
const CAPABILITIES_MAX: usize = 64;
const HOST_KEYS_MAX: usize = 8;
const REMARKS_MAX: usize = 16;

/// A checked hello.
#[derive(Debug)]
pub(super) struct Hello {
    pub agent: AgentInfo,
    pub boot_id: String,
}

/// Checks an introduction. The error is a sentence about the agent.
pub(super) fn hello(hello: wire::AgentHello) -> Result<Hello, String> {
    if !hello.login_user.is_empty() && !is_user_name(&hello.login_user) {
        return Err("its login user is no user name".to_owned());
    }
    let host_keys: Option<Vec<String>> =
        hello.host_keys.iter().take(HOST_KEYS_MAX).map(|l| host_key(l)).collect();
    let agent = AgentInfo {
        version: printable(&hello.version, WORD_CHARS_MAX),
        capabilities: list(&hello.capabilities, CAPABILITIES_MAX, WORD_CHARS_MAX),
        login_user: hello.login_user,
        host_keys: host_keys.ok_or("one of its host keys is no public key")?,
        image: printable(&hello.image, WORD_CHARS_MAX),
    };
    Ok(Hello { agent, boot_id: printable(&hello.boot_id, WORD_CHARS_MAX) })
}

/// Bounds an outcome.
pub(super) fn applied(applied: &wire::Applied) -> Applied {
    Applied {
        revision: applied.revision,
        keys: outcome(&applied.keys),
        setup: outcome(&applied.setup),
        remarks: list(&applied.remarks, REMARKS_MAX, SENTENCE_CHARS_MAX),
    }
}

fn outcome(outcome: &wire::Outcome) -> Result<(), Failure> {
    match outcome {
        wire::Outcome::Done => Ok(()),
        wire::Outcome::Failed { reason, message } => Err(Failure {
            reason: reason.chars().filter(char::is_ascii_alphanumeric).take(WORD_CHARS_MAX).collect(),
            message: printable(message, SENTENCE_CHARS_MAX),
        }),
    }
}

/// Type and base64 of a key line, written anew; None if it is none.
fn host_key(line: &str) -> Option<String> {
    let mut key = PublicKey::from_openssh(line).ok()?;
    key.set_comment("");
    key.to_openssh().ok().map(|line| line.trim_end().to_owned())
}

fn list(texts: &[String], count_max: usize, chars_max: usize) -> Vec<String> {
    texts.iter().take(count_max).map(|text| printable(text, chars_max)).collect()
}

/// The first characters, with what a terminal would act on replaced.
fn printable(text: &str, chars_max: usize) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c };
    text.chars().take(chars_max).map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";

    fn said(login_user: &str, host_key: &str) -> wire::AgentHello {
        wire::AgentHello {
            login_user: login_user.into(),
            host_keys: vec![host_key.into()],
            ..Default::default()
        }
    }

    #[test]
    fn a_hello_keeps_only_what_is_bounded_printable_and_well_formed() {
        let mut said = said("dev", &format!("{KEY} root@\u{7}here"));
        said.version = format!("1\u{1b}{}", "x".repeat(1000));
        said.capabilities = vec![String::new(); 1000];
        let hello = hello(said).expect("accepted");
        assert_eq!(hello.agent.host_keys, [KEY]);
        assert!(hello.agent.version.starts_with("1\u{fffd}xx"));
        assert_eq!((hello.agent.version.chars().count(), hello.agent.capabilities.len()), (64, 64));
    }

    #[test]
    fn a_hello_that_would_inject_into_a_command_or_known_hosts_is_refused() {
        assert!(hello(said("-oProxyCommand=x", KEY)).is_err());
        assert!(hello(said("dev", &format!("* {KEY}"))).is_err());
        assert!(hello(said("dev", "nonsense")).is_err());
    }
}

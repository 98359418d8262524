//! One line of an `authorized_keys` file, as users hand it in: a public key and nothing else.

use ssh_key::{Algorithm, PublicKey};

/// Judges one OpenSSH public key line.
///
/// # Errors
/// What was written instead of a key, and what to write. Never repeats the text: it may be a secret.
pub fn check(line: &str) -> Result<(), String> {
    let line = line.trim();
    if line.contains("PRIVATE KEY") || line.starts_with("PuTTY-User-Key-File") {
        return Err("a private key: keep it secret, and write the line of its .pub file".into());
    }
    if line.is_empty() {
        return Err("no key: write one line such as ssh-ed25519 AAAA… name".into());
    }
    if line.contains(char::is_control) {
        return Err("several lines: write each key as an item of its own".into());
    }
    let first = line.split_whitespace().next().unwrap_or_default();
    if is_path(line) {
        return Err("a path, not a key: paste its line, or pass --key FILE".into());
    }
    if !is_algorithm(first) {
        if line.split_whitespace().any(is_algorithm) {
            return Err(format!("options before the key are not taken: begin with the key's type"));
        }
        return Err("not an OpenSSH public key: write a line such as ssh-ed25519 AAAA… name".into());
    }
    let key = PublicKey::from_openssh(line)
        .map_err(|_| format!("not a whole {first} key: paste the whole line of the .pub file"))?;
    match key.algorithm() {
        Algorithm::Dsa => {
            Err("ssh-dss keys are no longer secure: make one with ssh-keygen -t ed25519".into())
        }
        _ => Ok(()),
    }
}

fn is_algorithm(word: &str) -> bool {
    ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-sha2-"].iter().any(|prefix| word.starts_with(prefix))
}

fn is_path(text: &str) -> bool {
    let names_a_file = text.ends_with(".pub") || text.contains("/.ssh/");
    let one_word = !text.contains(char::is_whitespace);
    one_word && (names_a_file || text.starts_with(['/', '~', '.']))
}

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
            return Err("options before the key are not taken: begin with the key's type".into());
        }
        return Err("not an OpenSSH public key: write a line such as ssh-ed25519 AAAA… name".into());
    }
    if !matches!(first.parse::<Algorithm>(), Ok(known) if !matches!(known, Algorithm::Other(_))) {
        return Err(format!("{first} is no type of key that is known here"));
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
    let names_a_file = text.rsplit('.').next() == Some("pub") || text.contains("/.ssh/");
    let one_word = !text.contains(char::is_whitespace);
    one_word && (names_a_file || text.starts_with(['/', '~', '.']))
}

#[cfg(test)]
mod tests {
    use ssh_key::private::{Ed25519Keypair, PrivateKey};

    use super::check;

    fn key() -> PrivateKey {
        PrivateKey::from(Ed25519Keypair::from_seed(&[7; 32]))
    }

    fn line() -> String {
        key().public_key().to_openssh().expect("a public key has a line")
    }

    #[test]
    fn a_public_key_passes_with_and_without_a_comment() {
        assert_eq!(check(&line()), Ok(()));
        assert_eq!(check(&format!("  {} build controller\n", line())), Ok(()));
    }

    #[test]
    fn a_private_key_is_refused_without_a_word_of_it() {
        let secret = key().to_openssh(ssh_key::LineEnding::LF).expect("a private key has a file");
        let why = check(&secret).expect_err("a private key");
        assert_eq!(why, "a private key: keep it secret, and write the line of its .pub file");
        let one_line = secret.replace('\n', " ");
        assert_eq!(check(&one_line), Err(why));
    }

    #[test]
    fn a_path_is_told_from_a_key() {
        for path in ["~/.ssh/id_ed25519.pub", "/home/dev/.ssh/id_rsa", "./key", "id_ed25519.pub", "~/key"] {
            assert_eq!(
                check(path),
                Err("a path, not a key: paste its line, or pass --key FILE".into()),
                "{path}"
            );
        }
    }

    #[test]
    fn what_stands_before_or_instead_of_a_key_is_named() {
        let told = |line: &str| check(line).expect_err("this is no key");
        assert_eq!(
            told(&format!("command=\"true\" {}", line())),
            "options before the key are not taken: begin with the key's type"
        );
        assert_eq!(
            told("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK cut"),
            "not a whole ssh-ed25519 key: paste the whole line of the .pub file"
        );
        assert_eq!(told("hello"), "not an OpenSSH public key: write a line such as ssh-ed25519 AAAA… name");
        assert_eq!(told(" "), "no key: write one line such as ssh-ed25519 AAAA… name");
        assert_eq!(told(&format!("{0}\n{0}", line())), "several lines: write each key as an item of its own");
        assert_eq!(told("ssh-nonsense AAAA"), "ssh-nonsense is no type of key that is known here");
    }
}

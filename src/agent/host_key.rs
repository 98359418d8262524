//! The member's host key: made at the first start, kept over stop and start.

use std::io;

use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::Ed25519Keypair;
use russh::keys::{PrivateKey, PublicKey};

use super::place::Place;
use crate::clock;

const FILE: &str = "var/lib/ringleader/host_ed25519_key";

/// The present key, or a new one where there is none.
///
/// A file that cannot be read as a key is an error and not replaced: a silent new key would look
/// to every client like an attack.
pub(super) fn load_or_make(place: &Place) -> io::Result<PrivateKey> {
    if let Some(text) = place.read(FILE)? {
        return PrivateKey::from_openssh(text)
            .map_err(|_| io::Error::other(format!("/{FILE} is no private key")));
    }
    let mut seed = [0; 32];
    seed[..16].copy_from_slice(&clock::entropy().to_be_bytes());
    seed[16..].copy_from_slice(&clock::entropy().to_be_bytes());
    let key = PrivateKey::from(Ed25519Keypair::from_seed(&seed));
    let text = key.to_openssh(LineEnding::LF).map_err(io::Error::other)?;
    place.settle(FILE, &text, 0o600, 0o700)?;
    Ok(key)
}

/// Type and base64, as `known_hosts` has them.
pub(super) fn public_line(key: &PrivateKey) -> io::Result<String> {
    PublicKey::from(key).to_openssh().map(|line| line.trim_end().to_owned()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_key_is_made_once_kept_private_and_never_replaced_when_damaged() {
        let root = tempfile::tempdir().expect("a directory");
        let place = Place::at(root.path());
        let line = public_line(&load_or_make(&place).expect("made")).expect("a line");
        assert!(line.starts_with("ssh-ed25519 AAAA") && line.split(' ').count() == 2, "{line}");
        assert_eq!(public_line(&load_or_make(&place).expect("kept")).expect("a line"), line);
        assert_eq!(std::fs::metadata(place.path(FILE)).expect("there").mode() & 0o777, 0o600);
        std::fs::write(place.path(FILE), "damaged").expect("written");
        assert_eq!(
            load_or_make(&place).expect_err("refused").to_string(),
            format!("/{FILE} is no private key")
        );
    }
}

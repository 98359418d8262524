//! Where apt inside gets packages from: where the host does, as far as everybody may know.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::tree::Tree;

/// Takes the sources that hold no password, with the keys they are checked by. `auth.conf` holds
/// nothing but passwords.
pub fn take(host: &Path, tree: &mut Tree) -> io::Result<()> {
    let mut sources = files(host, "etc/apt", &["list"])?;
    sources.extend(files(host, "etc/apt/sources.list.d", &["list", "sources"])?);
    for path in sources {
        let text = String::from_utf8_lossy(&fs::read(host.join(&path))?).into_owned();
        if has_password(&text) {
            tracing::info!(file = %path.display(), "left out of the host image: it holds a password");
            continue;
        }
        take_copy(host, &path, tree)?;
        for key in keys_named_in(&text) {
            take_copy(host, &key, tree)?;
        }
    }
    for folder in ["etc/apt/trusted.gpg.d", "etc/apt/keyrings"] {
        for path in files(host, folder, &["gpg", "asc"])? {
            take_copy(host, &path, tree)?;
        }
    }
    Ok(())
}

fn take_copy(host: &Path, path: &Path, tree: &mut Tree) -> io::Result<()> {
    tree.copy_public(&host.join(path), &Path::new("/").join(path))
}

/// The files of a folder whose names end so, from the host's root.
fn files(host: &Path, folder: &str, endings: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(host.join(folder)).into_iter().flatten() {
        let path = Path::new(folder).join(entry?.file_name());
        let fits = path.extension().is_some_and(|has| endings.iter().any(|ending| has == *ending));
        if fits && host.join(&path).is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// `scheme://user:password@host`, or a user alone: a token often stands there.
fn has_password(text: &str) -> bool {
    let addresses = text.split_whitespace().filter_map(|word| word.split_once("://"));
    addresses.into_iter().any(|(_, rest)| rest.split('/').next().is_some_and(|host| host.contains('@')))
}

/// In `[signed-by=/usr/share/keyrings/a.gpg]` and `Signed-By: /usr/share/keyrings/a.gpg`.
fn keys_named_in(text: &str) -> Vec<PathBuf> {
    let words = text.split(|mark: char| mark.is_whitespace() || "[]=,".contains(mark));
    let keys = words.filter(|word| {
        let known = ["/usr/share/keyrings/", "/etc/apt/keyrings/"];
        known.iter().any(|folder| word.starts_with(folder)) && !word.contains("..")
    });
    keys.map(|key| key.trim_start_matches('/').into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_with_a_password_is_told_from_one_without() {
        assert!(has_password("deb https://me:secret@example.com/debian bookworm main"));
        assert!(has_password("Types: deb\nURIs: https://token@example.com/\n"));
        assert!(!has_password("# ask admin@example.com\ndeb http://deb.debian.org/debian bookworm main"));
    }

    #[test]
    fn the_keys_of_both_kinds_of_sources_are_found() {
        let list = "deb [arch=amd64,signed-by=/usr/share/keyrings/a.gpg] https://example.com x main";
        assert_eq!(keys_named_in(list), [Path::new("usr/share/keyrings/a.gpg")]);
        let sources = "Signed-By: /etc/apt/keyrings/b.asc\nSigned-By: /etc/shadow\n";
        assert_eq!(keys_named_in(sources), [Path::new("etc/apt/keyrings/b.asc")]);
    }
}

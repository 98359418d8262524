//! Which distribution a root file system is.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

use super::named;

/// Distribution and version, from os-release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    pub distribution: String,
    pub version: String,
}

impl Release {
    /// Of the root file system at `root`, a directory or a tar archive; unknown where it does not
    /// say.
    pub fn of(root: &Path) -> Self {
        let text = if root.is_dir() { in_directory(root) } else { named::release_in_archive(root) };
        Self::parse(&text.unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            line.map(|value| value.trim().trim_matches(['"', '\'']).to_owned()).unwrap_or_default()
        };
        let known = |value: String, unknown: &str| if value.is_empty() { unknown.to_owned() } else { value };
        Self { distribution: known(value("ID"), "linux"), version: known(value("VERSION_ID"), "rolling") }
    }
}

/// The one in /etc may be a link, which is right inside `root` alone: the host's is another's.
fn in_directory(root: &Path) -> Option<String> {
    let root = open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    // Non-blocking, so that a pipe of that name does not hold us up.
    let reading = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    ["usr/lib/os-release", "etc/os-release"].into_iter().find_map(|path| {
        let file = openat2(&root, path, reading, Mode::empty(), ResolveFlags::IN_ROOT).ok()?;
        io::read_to_string(File::from(file)).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_missing_fields_are_understood() {
        let debian = Release::parse("ID=debian\nVERSION_ID=\"12\"\n");
        assert_eq!(debian, Release { distribution: "debian".into(), version: "12".into() });
        assert_eq!(Release::parse("ID=arch\n").version, "rolling");
    }
}

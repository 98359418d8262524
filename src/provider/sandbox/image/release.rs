//! Which distribution a root file system is.

use std::fs;
use std::path::Path;

/// Distribution and version, from os-release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    pub distribution: String,
    pub version: String,
}

impl Release {
    /// Of the root file system at `root`; unknown where it does not say.
    pub fn of(root: &Path) -> Self {
        // The one in /etc is usually a link that is relative, and right inside `root` alone.
        let text = ["usr/lib/os-release", "etc/os-release"]
            .into_iter()
            .find_map(|path| fs::read_to_string(root.join(path)).ok())
            .unwrap_or_default();
        Self::parse(&text)
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

//! The registry of kinds: what the API serves. Adding a kind adds its file and one line here.

use std::sync::Arc;

use serde_json::Value;

use super::FieldError;

/// One column of a kind's table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    /// OpenAPI type: string, integer, date, boolean.
    pub r#type: &'static str,
    /// 0 is always shown, 1 with `-o wide`.
    pub priority: i32,
    pub description: &'static str,
    /// A JSON pointer (RFC 6901) to the value, such as `/status/phase`.
    pub pointer: &'static str,
}

/// All the API needs to know of one kind.
pub struct Kind {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    /// Short names that `rl` itself also takes (`ns`, `sa`, `cm`); never advertised.
    pub cli_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    pub has_status: bool,
    pub columns: &'static [Column],
    /// The JSON schema of the whole object, generated from its type, references resolved inline.
    pub schema: fn() -> Value,
    /// Fills in defaults and checks the whole object (spec and the kind's own metadata rules).
    /// `old` is the stored object on an update. Reports every field that is wrong.
    pub admit: fn(new: &mut Value, old: Option<&Value>) -> Vec<FieldError>,
}

impl Kind {
    /// `group/version`, as `apiVersion` says it.
    #[must_use]
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.plural, self.group)
    }
}

/// The kinds one daemon serves.
#[derive(Clone, Debug)]
pub struct Registry {
    kinds: Arc<[&'static Kind]>,
}

impl Registry {
    /// A registry of these kinds, in dependency order (what others refer to comes first).
    #[must_use]
    pub fn new(kinds: Vec<&'static Kind>) -> Self {
        Self { kinds: kinds.into() }
    }

    /// Every kind, in dependency order.
    #[must_use]
    pub fn kinds(&self) -> &[&'static Kind] {
        &self.kinds
    }

    /// The kind served at `/apis/<group>/<version>/…/<plural>`.
    #[must_use]
    pub fn by_plural(&self, group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
        self.kinds.iter().copied().find(|k| k.group == group && k.version == version && k.plural == plural)
    }

    /// The kind of an object's `apiVersion` and `kind`.
    #[must_use]
    pub fn by_type(&self, api_version: &str, kind: &str) -> Option<&'static Kind> {
        self.kinds.iter().copied().find(|k| k.kind == kind && k.api_version() == api_version)
    }

    /// The kind a person means by `word`: plural, singular, kind or short name, in any letter
    /// case, with or without `.group`.
    #[must_use]
    pub fn by_word(&self, word: &str) -> Option<&'static Kind> {
        let word = word.to_ascii_lowercase();
        let (name, group) = word.split_once('.').map_or((word.as_str(), None), |(n, g)| (n, Some(g)));
        self.kinds.iter().copied().find(|k| {
            let named = k.plural == name
                || k.singular == name
                || k.short_names.contains(&name)
                || k.cli_names.contains(&name);
            named && group.is_none_or(|g| k.group.starts_with(g))
        })
    }
}

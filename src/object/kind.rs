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
    pub cell: Cell,
}

/// Where a column takes its value from.
#[derive(Clone, Copy, Debug)]
pub enum Cell {
    /// A JSON pointer (RFC 6901), such as `/status/phase`.
    At(&'static str),
    /// A value no single field holds.
    Of(fn(&Value) -> Value),
}

impl Column {
    /// This column's value for one object; null where the object has none.
    #[must_use]
    pub fn value(&self, object: &Value) -> Value {
        match self.cell {
            Cell::At(pointer) => object.pointer(pointer).cloned().unwrap_or(Value::Null),
            Cell::Of(compute) => compute(object),
        }
    }
}

/// What a kind's names look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// A DNS-1123 label of at most this many characters.
    Label { max_len: usize },
    /// A DNS-1123 subdomain of at most 253 characters.
    Subdomain,
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
    pub name_rule: NameRule,
    pub columns: &'static [Column],
    /// The structural schema of the whole object, generated from its type, references inlined.
    pub schema: fn() -> &'static Value,
    /// The rules the schema cannot say. `old` is the stored object on an update. Total: fields
    /// that the schema refused may still be there in a wrong shape, and are passed over.
    pub check: fn(new: &Value, old: Option<&Value>) -> Vec<FieldError>,
    /// A checked object with every default filled in, its fields in the order of its type.
    pub complete: fn(Value) -> Result<Value, serde_json::Error>,
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

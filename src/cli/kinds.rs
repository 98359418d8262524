//! The kinds a person names: singular, plural, short name, any letter case.

use crate::object::{Kind, Registry, WORKSTATIONS_GROUP};

use super::failure::usage;

/// Some objects of one kind.
#[derive(Clone, Debug)]
pub struct Selection {
    pub kind: &'static Kind,
    /// Empty: all of them.
    pub names: Vec<String>,
}

/// What `KIND [NAME…]`, `KIND,KIND` and `KIND/NAME…` mean.
pub fn select(registry: &Registry, words: &[String]) -> anyhow::Result<Vec<Selection>> {
    let Some((first, names)) = words.split_first() else {
        return Err(usage(format!("a kind is missing: one of {}", all_words(registry))));
    };
    if first.contains('/') {
        return words.iter().map(|word| one_of(registry, word)).collect();
    }
    if let Some(pair) = names.iter().find(|name| name.contains('/')) {
        return Err(usage(format!("{pair:?} names its kind already: write either KIND NAME… or KIND/NAME…")));
    }
    let kinds = listed(registry, first)?;
    if kinds.len() > 1 && !names.is_empty() {
        return Err(usage("several kinds cannot share a name: write KIND/NAME…"));
    }
    Ok(kinds.into_iter().map(|kind| Selection { kind, names: names.to_vec() }).collect())
}

fn one_of(registry: &Registry, word: &str) -> anyhow::Result<Selection> {
    match word.split_once('/') {
        Some((kind, name)) if !name.is_empty() && !name.contains('/') => {
            Ok(Selection { kind: by_word(registry, kind)?, names: vec![name.to_owned()] })
        }
        _ => Err(usage(format!("{word:?} is not KIND/NAME"))),
    }
}

/// The kinds of `KIND`, `KIND,KIND` or a category such as `all`.
fn listed(registry: &Registry, words: &str) -> anyhow::Result<Vec<&'static Kind>> {
    let category = words.to_ascii_lowercase();
    let members: Vec<&'static Kind> = registry
        .kinds()
        .iter()
        .copied()
        .filter(|kind| kind.categories.contains(&category.as_str()))
        .collect();
    if !members.is_empty() {
        return Ok(members);
    }
    words.split(',').map(|word| by_word(registry, word)).collect()
}

/// The kind of a word; an unknown one is answered with the nearest.
pub fn by_word(registry: &Registry, word: &str) -> anyhow::Result<&'static Kind> {
    registry.by_word(word).ok_or_else(|| {
        let kinds = all_words(registry);
        usage(match nearest(registry, word) {
            Some(meant) => format!("no kind {word:?}: did you mean {meant}? The kinds are {kinds}"),
            None => format!("no kind {word:?}: the kinds are {kinds}"),
        })
    })
}

/// The kind of our own group by its singular name.
///
/// # Panics
/// Where the registry lacks a kind this program was written for.
pub fn known(registry: &Registry, singular: &str) -> &'static Kind {
    registry.by_word(singular).expect("the registry has every kind the commands are about")
}

/// Pools.
pub fn pools(registry: &Registry) -> &'static Kind {
    known(registry, "workstationpool")
}

/// Leases.
pub fn leases(registry: &Registry) -> &'static Kind {
    known(registry, "workstationpoollease")
}

/// Workstations, members among them.
pub fn workstations(registry: &Registry) -> &'static Kind {
    let kind = known(registry, "workstation");
    debug_assert_eq!(kind.group, WORKSTATIONS_GROUP);
    kind
}

fn all_words(registry: &Registry) -> String {
    registry.kinds().iter().map(|kind| kind.singular).collect::<Vec<_>>().join(", ")
}

fn nearest(registry: &Registry, word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let words = registry.kinds().iter().flat_map(|kind| [kind.singular, kind.plural]);
    words
        .map(|known| (strsim::damerau_levenshtein(&word, known), known))
        .filter(|(distance, known)| distance * 3 <= known.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

//! The kinds a person names: singular, plural, short name, any letter case.

use crate::object::{Kind, LabelSelector, Registry, WORKSTATIONS_GROUP};

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
            Some(Kind { singular: meant, .. }) => {
                format!("no kind {word:?}: did you mean {meant}? The kinds are {kinds}")
            }
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

/// Reads `-l`: a label selector, judged before anything is asked of a daemon.
pub fn labels(text: &str) -> Result<String, String> {
    LabelSelector::parse(text)
        .map(|_| text.to_owned())
        .map_err(|error| format!("{error}: write labels such as app=web,tier!=db or app in (web, api)"))
}

fn all_words(registry: &Registry) -> String {
    registry.kinds().iter().map(|kind| kind.singular).collect::<Vec<_>>().join(", ")
}

/// The kind that a mistyped word may have meant: one spelt nearly so, else one that ends so, as
/// `pool` and `lease` do.
pub fn nearest(registry: &Registry, word: &str) -> Option<&'static Kind> {
    let word = word.to_ascii_lowercase();
    let kinds = || registry.kinds().iter().copied();
    let distance = |kind: &Kind| {
        let to = |known| strsim::damerau_levenshtein(&word, known);
        to(kind.singular).min(to(kind.plural))
    };
    let spelt = kinds().map(|kind| (distance(kind), kind)).filter(|(far, kind)| far * 3 <= kind.plural.len());
    let spelt = spelt.min_by_key(|(far, _)| *far).map(|(_, kind)| kind);
    let ends = |kind: &&Kind| kind.singular.ends_with(&word) || kind.plural.ends_with(&word);
    spelt.or_else(|| kinds().find(ends).filter(|_| word.len() > 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::registry;

    #[test]
    fn a_mistyped_kind_is_told_the_nearest_one() {
        let near = |word| nearest(&registry(), word).map(|kind| kind.singular);
        assert_eq!(near("workstationpol"), Some("workstationpool"));
        assert_eq!(near("WorkstationPoolLeases"), Some("workstationpoollease"));
        assert_eq!(near("pool"), Some("workstationpool"));
        assert_eq!(near("leases"), Some("workstationpoollease"));
        assert_eq!(near("pod"), None);
        assert_eq!(near("n"), None);
    }
}

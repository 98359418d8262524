//! The known word that a mistyped one may have meant.

/// The candidate nearest to `word`, if it is near enough to be worth naming.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = word.to_lowercase();
    // A third of the letters may be wrong; words of one letter are near to nothing.
    let tolerated = (typed.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&typed, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= tolerated && candidate.len() > *distance)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_missing_letter_swapped_letters_and_the_wrong_case_are_recognized() {
        let known = ["running", "stopped", "stopAfter", "deleteAfter"];
        assert_eq!(nearest("runing", known), Some("running"));
        assert_eq!(nearest("stoppde", known), Some("stopped"));
        assert_eq!(nearest("stopafter", known), Some("stopAfter"));
        assert_eq!(nearest("stop_after", known), Some("stopAfter"));
    }

    #[test]
    fn a_word_that_is_far_from_all_is_left_alone() {
        assert_eq!(nearest("replicas", ["running", "stopped"]), None);
        assert_eq!(nearest("x", ["a", "b"]), None);
    }
}

//! The known name that a mistyped one is nearest to.

/// A hint to append to an error, such as `"; did you mean 'acquire'?"`; empty if no candidate is
/// near.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!("; did you mean '{near}'?"))
}

/// The candidate nearest to `word`, if it begins with `word` or at most a third of its letters
/// would have to change. Two neighbouring letters that are swapped count as one change.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: String = word.chars().take(64).collect();
    let letters = word.chars().count();
    let measured = candidates.into_iter().map(|candidate| {
        let begins = letters >= 3 && candidate.starts_with(&word);
        let changes = if begins { 1 } else { strsim::osa_distance(&word, candidate) };
        (changes, candidate.chars().count().max(letters), candidate)
    });
    let near = measured.filter(|(changes, length, _)| changes * 3 <= *length);
    near.min_by_key(|(changes, _, _)| *changes).map(|(_, _, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_names_are_recognised_and_nonsense_is_not() {
        let names = ["lamport", "maekawa", "maekawa-eager", "raymond-tree"];
        assert_eq!(nearest("maekaw", names), Some("maekawa"));
        assert_eq!(nearest("mekawa", names), Some("maekawa"));
        assert_eq!(nearest("raymond", names), Some("raymond-tree"));
        assert_eq!(nearest("lamprot", names), Some("lamport"));
        assert_eq!(nearest("gird", ["grid", "triangle"]), Some("grid"), "a swap is one change");
        assert_eq!(nearest("rgdi", ["grid", "triangle"]), None, "two swaps are half of the word");
        assert_eq!(nearest("quicksort", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(hint("lamprt", names), "; did you mean 'lamport'?");
    }
}

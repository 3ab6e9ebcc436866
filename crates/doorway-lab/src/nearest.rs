//! The word a person probably meant.

/// The candidate that `word` is a slip of, if one is close: as `"; did you mean 'acquire'?"`, ready
/// to be appended to an error, or as nothing.
pub fn hint<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!("; did you mean '{near}'?"))
}

/// The candidate nearest to `word`, if no more than a third of its letters would have to change or
/// it continues what was typed.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(64).collect();
    let measured = candidates.into_iter().map(|candidate| {
        let letters: Vec<char> = candidate.chars().collect();
        let continues = word.len() >= 3 && letters.starts_with(&word);
        let far = if continues { 1 } else { distance(&word, &letters) };
        (far, letters.len().max(word.len()), candidate)
    });
    let close = measured.filter(|(far, length, _)| far * 3 <= *length);
    close.min_by_key(|(far, _, _)| *far).map(|(_, _, candidate)| candidate)
}

/// How many letters must be added, removed, replaced, or swapped with their neighbours
/// (Levenshtein's distance with Damerau's swaps).
fn distance(one: &[char], other: &[char]) -> usize {
    // Row i holds how far the first i letters of `one` are from each beginning of `other`.
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut row = vec![i];
        for j in 1..=other.len() {
            let replaced = last[j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut fewest = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && one[i - 2] == other[j - 1] && one[i - 1] == other[j - 2] {
                fewest = fewest.min(before[j - 2] + 1);
            }
            row.push(fewest);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_nonsense_is_not() {
        let names = ["lamport", "maekawa", "maekawa-eager", "raymond-tree"];
        assert_eq!(nearest("maekaw", names), Some("maekawa"));
        assert_eq!(nearest("mekawa", names), Some("maekawa"));
        assert_eq!(nearest("raymond", names), Some("raymond-tree"));
        assert_eq!(nearest("lamprot", names), Some("lamport"));
        assert_eq!(nearest("gird", ["grid", "triangle"]), Some("grid"), "a swap is one slip");
        assert_eq!(nearest("rgdi", ["grid", "triangle"]), None, "two swaps are half of the word");
        assert_eq!(nearest("quicksort", names), None);
        assert_eq!(nearest("", names), None);
        assert_eq!(hint("lamprt", names), "; did you mean 'lamport'?");
    }
}

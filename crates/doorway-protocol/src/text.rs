//! Texts for messages and for people.

/// The beginning of a text that has at most this many bytes, in whole characters.
///
/// ```
/// use doorway_protocol::text::cut;
///
/// assert_eq!(cut("grün", 10), "grün");
/// assert_eq!(cut("grün", 3), "gr"); // `ü` has two bytes.
/// ```
pub fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The text with a capital letter at its beginning.
///
/// ```
/// use doorway_protocol::text::capitalized;
///
/// assert_eq!(capitalized("ein Schloss"), "Ein Schloss");
/// assert_eq!(capitalized("über allem"), "Über allem");
/// assert_eq!(capitalized(""), "");
/// ```
pub fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

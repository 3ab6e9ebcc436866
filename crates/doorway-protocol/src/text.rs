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

/// A text of at most `most` characters: an ellipsis stands for the middle of a longer text. The end
/// is kept as well as the beginning, because a client's description ends with its process and host.
///
/// ```
/// use doorway_protocol::text::shorten;
///
/// assert_eq!(shorten("make all (pid 12) on host", 25), "make all (pid 12) on host");
/// assert_eq!(shorten("make all (pid 12) on host", 11), "make … host");
/// ```
pub fn shorten(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most || most == 0 {
        return text.to_owned();
    }
    let tail = (most - 1) / 2;
    let head: String = text.chars().take(most - 1 - tail).collect();
    let tail: String = text.chars().skip(count - tail).collect();
    format!("{head}…{tail}")
}

/// A text of at most `most` bytes, for a message with a limit: ` ... ` stands for the middle of a
/// longer text. Of the end, up to `tail` bytes are kept, in whole characters.
///
/// ```
/// use doorway_protocol::text::shorten_bytes;
///
/// assert_eq!(shorten_bytes("the key xyz is not known", 24, 7), "the key xyz is not known");
/// assert_eq!(shorten_bytes("the key xyz is not known", 20, 7), "the key  ... t known");
/// ```
///
/// # Panics
///
/// Panics if `most` bytes have no room for the tail and the mark.
pub fn shorten_bytes(text: &str, most: usize, tail: usize) -> String {
    const MARK: &str = " ... ";
    if text.len() <= most {
        return text.to_owned();
    }
    let head = cut(text, most - tail - MARK.len());
    let tail = &text[text.ceil_char_boundary(text.len() - tail)..];
    format!("{head}{MARK}{tail}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shortened_in_whole_characters() {
        assert_eq!(shorten("ééééé", 3), "é…é");
        assert_eq!(shorten("ééé", 3), "ééé");
        assert_eq!(shorten_bytes("ééééééééé", 13, 5), "é ... éé");
        assert_eq!(shorten_bytes("ééé", 6, 1), "ééé");
    }
}

//! Labels: the names of groups, nodes and clients, which are parts of the names in certificates.

/// Is this text a label, as a part of a DNS name such as `NODE.GROUP.doorway` must be?
///
/// [`LABEL`] says the same in words, for error messages.
///
/// ```
/// use doorway_protocol::is_label;
///
/// assert!(is_label("web-1"));
/// assert!(!is_label("Web_1"));
/// ```
pub fn is_label(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let bounds = !text.starts_with('-') && !text.ends_with('-');
    bounds && (1..=63).contains(&text.len()) && text.chars().all(allowed)
}

/// What [`is_label`] accepts, in words.
pub const LABEL: &str = "1 to 63 of a-z, 0-9 and `-`, with no `-` at the beginning or the end";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_short_and_of_few_characters() {
        for good in ["a", "0", "web-1", "a--b", &"x".repeat(63)] {
            assert!(is_label(good), "{good:?}");
        }
        for bad in ["", "-", "-a", "a-", "A", "a.b", "a_b", "ü", &"x".repeat(64)] {
            assert!(!is_label(bad), "{bad:?}");
        }
    }
}

//! The value that a client of another protocol gives its lock, as a part of the description of the
//! client. Descriptions are for people, and survive a crash of the node.

use std::fmt::Write as _;

/// How the values of one protocol are described.
pub(crate) struct DescribedValue {
    /// What stands before a value of visible ASCII characters.
    pub(crate) text: &'static str,
    /// What stands before the hexadecimal digits of any other value.
    pub(crate) hex: &'static str,
    /// How many bytes a value of visible ASCII characters may have.
    pub(crate) visible: usize,
    /// How many bytes any other value may have.
    pub(crate) hidden: usize,
}

impl DescribedValue {
    /// The description of a value; `None` if the value is too long.
    pub(crate) fn describe(&self, value: &[u8]) -> Option<String> {
        let visible = value.iter().all(u8::is_ascii_graphic);
        match std::str::from_utf8(value) {
            Ok(text) if visible && (1..=self.visible).contains(&text.len()) => {
                Some(format!("{}{text}", self.text))
            }
            _ => (value.len() <= self.hidden).then(|| format!("{}{}", self.hex, hex(value))),
        }
    }

    /// The value that a description tells; `None` if it tells none of this protocol.
    pub(crate) fn read(&self, description: &str) -> Option<Vec<u8>> {
        // The user may follow.
        let word = description.split(' ').next()?;
        if let Some(text) = word.strip_prefix(self.text) {
            return Some(text.as_bytes().to_vec());
        }
        let digits = word.strip_prefix(self.hex)?;
        let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        (0..digits.len()).step_by(2).map(pair).collect()
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}"); // Writing into a string cannot fail.
        hex
    })
}

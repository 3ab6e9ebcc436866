//! The value of a key, which in Redis tells who owns a lock.
//!
//! A lease is found again by a hash of its value, so nothing has to be kept beside the lease.
//! For `GET`, and for people who look at a lock, the value is also the description of the client,
//! which survives a crash of the node. A value that is too long for that is described by its hash.

use std::fmt::Write as _;

use ring::digest::{SHA256, digest};

/// How many bytes a value of visible ASCII characters may have if `GET` is to return it, and how
/// many any other value. Descriptions are for people, so they are short.
const VISIBLE: usize = 50;
const HIDDEN: usize = 24;

const TEXT: &str = "redis:";
const HEX: &str = "redis-hex:";
const HASH: &str = "redis-sha256:";

/// The key by which the lease of a value is found.
pub(super) fn key(value: &[u8]) -> String {
    format!("{HASH}{}", hex(digest(&SHA256, value).as_ref()))
}

/// The description of the client that holds a lock with this value.
pub(super) fn description(value: &[u8]) -> String {
    let visible = value.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(value) {
        Ok(text) if visible && (1..=VISIBLE).contains(&text.len()) => format!("{TEXT}{text}"),
        _ if value.len() <= HIDDEN => format!("{HEX}{}", hex(value)),
        _ => format!("{HASH}{}", hex(&digest(&SHA256, value).as_ref()[..16])),
    }
}

/// The value that a description tells; `None` if it is the one of another client, or of a value
/// that is too long.
pub(super) fn value(description: &str) -> Option<Vec<u8>> {
    // The user may follow.
    let word = description.split(' ').next()?;
    if let Some(text) = word.strip_prefix(TEXT) {
        return Some(text.as_bytes().to_vec());
    }
    let digits = word.strip_prefix(HEX)?;
    let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map(pair).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}"); // Writing into a string cannot fail.
        hex
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The longest description.
    const LONGEST: usize = 60;

    proptest! {
        #[test]
        fn a_short_value_is_told_by_its_description(
            bytes in prop::collection::vec(any::<u8>(), 0..=24),
        ) {
            let text = description(&bytes);
            prop_assert!(text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(value(&text), Some(bytes.clone()));
            prop_assert_eq!(value(&format!("{text} (uid 1000)")), Some(bytes));
        }

        #[test]
        fn any_description_is_no_trouble(text in ".{0,80}") {
            let _ = (value(&text), value(&format!("{HEX}{text}")), value(&format!("{TEXT}{text}")));
        }
    }

    #[test]
    fn values_of_the_usual_clients_are_told() {
        for text in [
            "6f7d1b0a2c3d4e5f60718293a4b5c6d7",
            "0d3f2c8e-41b7-4f0f-9f0e-2a4d5c6b7a89",
            "MTIzNDU2Nzg5MDEyMzQ1Ng==",
        ] {
            assert_eq!(description(text.as_bytes()), format!("redis:{text}"));
        }
        let long = description(&[b'x'; 51]);
        assert!(long.starts_with(HASH) && long.len() <= LONGEST && value(&long).is_none());
        assert_ne!(key(b"a"), key(b"b"));
    }
}

//! The value of a key, which in Redis tells who owns a lock.
//!
//! A lease is found again by a hash of its value, so nothing has to be kept beside the lease.
//! For `GET`, and for people who look at a lock, the value is also the description of the client,
//! which survives a crash of the node. A value that is too long for that is described by its hash.

use ring::digest::{SHA256, digest};

use crate::described_value::{DescribedValue, hex};

const TEXT: &str = "redis:";
const HEX: &str = "redis-hex:";
const HASH: &str = "redis-sha256:";

/// `GET` returns values that are short enough for this.
const VALUE: DescribedValue = DescribedValue { text: TEXT, hex: HEX, visible: 50, hidden: 24 };

/// The key by which the lease of a value is found.
pub(super) fn key(value: &[u8]) -> String {
    format!("{HASH}{}", hex(digest(&SHA256, value).as_ref()))
}

/// The description of the client that holds a lock with this value.
pub(super) fn description(value: &[u8]) -> String {
    let hash = || format!("{HASH}{}", hex(&digest(&SHA256, value).as_ref()[..16]));
    VALUE.describe(value).unwrap_or_else(hash)
}

/// The value that a description tells; `None` if it is the one of another client, or of a value
/// that is too long.
pub(super) fn value(description: &str) -> Option<Vec<u8>> {
    VALUE.read(description)
}

/// Whether this describes a client that has acquired its lock by the Redis protocol.
pub(super) fn is_description(description: &str) -> bool {
    [TEXT, HEX, HASH].iter().any(|mark| description.starts_with(mark))
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
            prop_assert!(is_description(&text));
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
        assert!(is_description(&long) && !is_description("etcd lease"));
        assert!(long.starts_with(HASH) && long.len() <= LONGEST && value(&long).is_none());
        assert_ne!(key(b"a"), key(b"b"));
    }
}

//! The description of a lease for people. It also tells the value of its first key, after a crash
//! of the node and to other members.

use std::fmt::Write as _;

/// How many bytes a value may have to be told.
const VISIBLE: usize = 100;
const HIDDEN: usize = 40;

const LEASE: &str = "etcd lease ";
const TEXT: &str = "etcd:";
const HEX: &str = "etcd-hex:";

/// The description of a lease that puts a key with this value.
pub(super) fn of(value: &[u8], lease: i64) -> String {
    let visible = value.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(value) {
        Ok(text) if visible && (1..=VISIBLE).contains(&text.len()) => format!("{TEXT}{text}"),
        _ if (1..=HIDDEN).contains(&value.len()) => format!("{HEX}{}", hex(value)),
        _ => of_lease(lease),
    }
}

/// The description of a lease that has no key yet.
pub(super) fn of_lease(lease: i64) -> String {
    format!("{LEASE}{lease:x}")
}

/// The value that a description tells.
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

    proptest! {
        #[test]
        fn a_short_value_is_told_by_its_description(
            bytes in prop::collection::vec(any::<u8>(), 1..=40),
        ) {
            let text = of(&bytes, 7);
            prop_assert!(text.len() <= 110 && text.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(value(&text), Some(bytes.clone()));
            prop_assert_eq!(value(&format!("{text} (uid 1000)")), Some(bytes));
        }

        #[test]
        fn any_description_is_no_trouble(text in ".{0,80}") {
            let _ = (value(&text), value(&format!("{HEX}{text}")), value(&format!("{TEXT}{text}")));
        }
    }

    #[test]
    fn a_lease_without_a_value_is_described_by_its_number() {
        assert_eq!(of(b"", 255), "etcd lease ff");
        assert_eq!(of(&[b'x'; 101], 255), "etcd lease ff");
        assert_eq!(value("etcd lease ff"), None);
    }
}

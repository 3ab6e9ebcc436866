//! The description of a lease for people. It also tells the value of its first key, after a crash
//! of the node and to other members.

use crate::described_value::DescribedValue;

const LEASE: &str = "etcd lease ";
const TEXT: &str = "etcd:";
const HEX: &str = "etcd-hex:";

const VALUE: DescribedValue = DescribedValue { text: TEXT, hex: HEX, visible: 100, hidden: 40 };

/// The description of a lease that puts a key with this value.
pub(super) fn of(value: &[u8], lease: i64) -> String {
    let described = VALUE.describe(value).filter(|_| !value.is_empty());
    described.unwrap_or_else(|| of_lease(lease))
}

/// The description of a lease that has no key yet.
pub(super) fn of_lease(lease: i64) -> String {
    format!("{LEASE}{lease:x}")
}

/// The value that a description tells.
pub(super) fn value(description: &str) -> Option<Vec<u8>> {
    VALUE.read(description)
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

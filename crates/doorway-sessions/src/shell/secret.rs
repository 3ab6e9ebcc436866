//! Drawing random bytes, and comparing secrets without telling anything by the time it takes.

use subtle::ConstantTimeEq as _;

/// Whether two secrets are the same. Only their lengths influence how long that takes.
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// Bytes that nobody can guess.
pub fn random() -> [u8; 16] {
    let mut bytes = [0; 16];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    assert_eq!(got, Ok(16), "the system always gives a few random bytes at once");
    bytes
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn secrets_are_the_same_only_as_a_whole() {
        assert!(same(b"secret", b"secret"));
        for other in [b"Secret".as_slice(), b"secreT", b"secre", b""] {
            assert!(!same(b"secret", other));
        }
    }
}

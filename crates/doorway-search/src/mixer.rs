//! A fingerprint of 64 bits for any value that can be hashed.

use std::hash::{Hash, Hasher};

/// Compute the fingerprint of a value. It is never 0, which marks an empty slot of the table.
pub(super) fn fingerprint_of(value: &impl Hash) -> u64 {
    let mut mixer = Mixer(0);
    value.hash(&mut mixer);
    mixer.finish().max(1)
}

/// A hasher that is fast on the many small numbers of a state.
///
/// Each step is a bijection of the 64 bits, so values that differ in one number only have different
/// fingerprints.
struct Mixer(u64);

impl Mixer {
    fn fold(&mut self, word: u64) {
        // The constant keeps a row of zeros from being folded to 0. The shift brings the high bits
        // of the product, which depend on all bits of the factor, to the low ones.
        let product = (self.0 ^ word ^ 0x5851_f42d_4c95_7f2d).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        let product = self.0.wrapping_mul(0xd6e8_feb8_6659_fd93);
        product ^ product >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.fold(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.fold(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.fold(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.fold(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.fold(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn small_values_have_different_fingerprints() {
        let range = || 0..20u64;
        let triples = range().flat_map(|a| range().map(move |b| (a, b)));
        let triples = triples.flat_map(|(a, b)| range().map(move |c| [a, b, c]));
        let numbers: BTreeSet<u64> = triples.clone().map(|t| fingerprint_of(&t)).collect();
        assert_eq!(numbers.len(), 8_000);
        let bytes: BTreeSet<u64> =
            triples.map(|t| fingerprint_of(&t.map(|n| n as u8).to_vec())).collect();
        assert_eq!(bytes.len(), 8_000);
        // No single bit is always the same.
        let (ones, zeros) = numbers.iter().fold((0, 0), |(ones, zeros), n| (ones | n, zeros | !n));
        assert_eq!((ones, zeros), (u64::MAX, u64::MAX));
    }

    #[test]
    fn lengths_and_orders_count() {
        let values: [&[u8]; 7] = [&[], &[0], &[0, 0], &[0; 8], &[0; 9], &[1, 2], &[2, 1]];
        let prints: BTreeSet<u64> = values.iter().map(fingerprint_of).collect();
        assert_eq!(prints.len(), values.len());
        assert_ne!(fingerprint_of(&("ab", "c")), fingerprint_of(&("a", "bc")));
        assert_ne!(fingerprint_of(&(1u8, 2u8)), fingerprint_of(&(2u8, 1u8)));
    }
}

//! A fingerprint of 64 bits for the row of a state.

/// A fingerprint of a row, for models that have no cheaper one.
///
/// Two words at a time are folded in by a multiplication; both halves of the product count.
pub fn fingerprint(row: &[u32]) -> u64 {
    let fold = |print: u64, word: u64| {
        let product = u128::from(print ^ word) * u128::from(0xa076_1d64_78bd_642f_u64);
        (product >> 64) as u64 ^ product as u64
    };
    let pairs = row.chunks(2).map(|pair| match *pair {
        [low, high] => u64::from(high) << 32 | u64::from(low),
        [low] => u64::from(low),
        _ => 0,
    });
    let print = pairs.fold(0x9e37_79b9_7f4a_7c15, fold);
    fold(print, 0x8ebc_6af0_9c88_c6e3)
}

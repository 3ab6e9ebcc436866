//! FNV-1a, a hash that is the same in every process, on every machine and in every version.
//!
//! Its values are part of what nodes send to each other and of files, so they never change. It is
//! no protection against texts that are chosen to collide.

/// The FNV-1a hash of some bytes, with 64 bits.
///
/// ```
/// use doorway_protocol::fnv::fnv1a;
///
/// assert_eq!(fnv1a([]), 0xcbf2_9ce4_8422_2325);
/// assert_eq!(fnv1a(*b"foobar"), 0x8594_4171_f739_67e8);
/// ```
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The FNV-1a hash of some bytes, with 32 bits. It is not a part of the hash with 64 bits.
///
/// ```
/// use doorway_protocol::fnv::fnv1a_32;
///
/// assert_eq!(fnv1a_32([]), 0x811c_9dc5);
/// assert_eq!(fnv1a_32(*b"foobar"), 0xbf9c_f968);
/// ```
pub fn fnv1a_32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    bytes.into_iter().fold(0x811c_9dc5, step)
}

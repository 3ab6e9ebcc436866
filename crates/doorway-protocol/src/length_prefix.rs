//! Length-prefixed frames: what the protocol of clients and the links between nodes have in common.
//!
//! A frame is the length of its content, in four bytes with the lowest first, and then the content.

use std::hash::{Hash, Hasher};

/// The number of bytes in front of a frame's content.
pub const PREFIX: usize = 4;

/// Append a frame whose content `write` appends, and return the length of that content.
///
/// The caller makes sure that the other side accepts a content of this length.
pub fn append_frame(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> usize {
    let begin = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    write(out);
    let length = out.len() - begin - PREFIX;
    out[begin..begin + PREFIX].copy_from_slice(&(length as u32).to_le_bytes());
    length
}

/// A frame whose content is longer than is allowed, with that length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong(pub usize);

/// The received bytes of a connection, out of which whole frames of at most `MAX` bytes are taken.
///
/// The memory grows with the bytes that have arrived, never with the length that a frame announces.
#[derive(Clone, Debug, Default)]
pub struct FrameBuffer<const MAX: usize> {
    bytes: Vec<u8>,
    /// How many of the bytes have been taken.
    taken: usize,
}

/// Buffers with the same rest have the same future, however many bytes were taken before.
impl<const MAX: usize> Hash for FrameBuffer<MAX> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rest().hash(state);
    }
}

impl<const MAX: usize> FrameBuffer<MAX> {
    /// Where received bytes are to be appended.
    ///
    /// What is left of the last frame moves to the front here, once for all the frames before it.
    pub fn space(&mut self) -> &mut Vec<u8> {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        &mut self.bytes
    }

    /// The bytes that have arrived and have not been taken.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Take the first `count` bytes of the rest without reading them as a frame.
    ///
    /// # Panics
    ///
    /// If fewer bytes are left.
    pub fn skip(&mut self, count: usize) {
        assert!(count <= self.rest().len(), "only bytes that have arrived can be skipped");
        self.taken += count;
    }

    /// The length of the next frame's content, if all of the frame has arrived.
    pub fn whole(&self) -> Result<Option<usize>, TooLong> {
        let Some((length, rest)) = self.rest().split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX {
            return Err(TooLong(length));
        }
        Ok((rest.len() >= length).then_some(length))
    }

    /// Take the content of the next frame, if all of the frame has arrived.
    pub fn frame(&mut self) -> Result<Option<&[u8]>, TooLong> {
        let Some(length) = self.whole()? else { return Ok(None) };
        let begin = self.taken + PREFIX;
        self.taken = begin + length;
        Ok(Some(&self.bytes[begin..self.taken]))
    }
}

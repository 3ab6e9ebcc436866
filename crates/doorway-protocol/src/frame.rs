//! Frames: a length of four bytes, the lowest first, and a value.

use serde::{Deserialize, Serialize};

/// How a connection begins. No method of HTTP begins with a zero.
pub const MAGIC: [u8; 8] = *b"\0doorway";

/// How long the value of a frame may be. Lists that could be longer come in pages.
pub const MAX_FRAME: usize = 1 << 18;

/// What is wrong with what the other side sent. The connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// It does not speak this protocol.
    #[error("not the beginning of a doorway connection")]
    Magic,
    /// More than anyone has to say.
    #[error("a frame of {0} bytes: {MAX_FRAME} are allowed")]
    TooLong(usize),
    /// Not what was to be said here.
    #[error("a frame that means nothing")]
    Garbled,
}

/// Write a value as a frame. Where it is longer than a frame may be, which limits on all that goes
/// into one prevent, nothing is written, and the answer is false.
pub fn put<T: Serialize>(value: &T, to: &mut Vec<u8>) -> bool {
    let at = to.len();
    to.extend_from_slice(&[0; 4]);
    *to = postcard::to_extend(value, std::mem::take(to)).expect("memory takes all");
    let length = to.len() - at - 4;
    let fits = length <= MAX_FRAME;
    if fits {
        to[at..at + 4].copy_from_slice(&(length as u32).to_le_bytes());
    } else {
        to.truncate(at);
    }
    fits
}

/// The bytes of a connection, out of which frames are taken as they become whole.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// So many of them have been taken.
    taken: usize,
}

impl Frames {
    /// So much memory stays with a connection that has nothing to say.
    const KEPT: usize = 4096;

    /// Where to read more bytes to: after those that are there.
    ///
    /// What is left of the last frame moves to the front, once for all the frames before it; and
    /// what a burst needed is given back.
    pub fn space(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        if self.bytes.capacity() > 4 * Self::KEPT && self.bytes.len() <= Self::KEPT {
            self.bytes.shrink_to(Self::KEPT);
        }
        &mut self.bytes
    }

    /// Bytes that came from the other side.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.space().extend_from_slice(bytes);
    }

    /// Take [`MAGIC`]; not yet if there is too little to tell.
    pub fn magic(&mut self) -> Result<bool, FrameError> {
        let rest = &self.bytes[self.taken..];
        let seen = rest.len().min(MAGIC.len());
        if rest[..seen] != MAGIC[..seen] {
            return Err(FrameError::Magic);
        }
        let whole = seen == MAGIC.len();
        self.taken += if whole { seen } else { 0 };
        Ok(whole)
    }

    /// Take the next frame, if it is whole.
    pub fn take<'a, T: Deserialize<'a>>(&'a mut self) -> Result<Option<T>, FrameError> {
        let Some((length, rest)) = self.bytes[self.taken..].split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(FrameError::TooLong(length));
        }
        let Some(value) = rest.get(..length) else { return Ok(None) };
        match postcard::take_from_bytes(value) {
            Ok((value, [])) => {
                self.taken += 4 + length;
                Ok(Some(value))
            }
            _ => Err(FrameError::Garbled),
        }
    }
}

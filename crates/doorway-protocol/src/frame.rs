//! Frames: a length of four bytes, the lowest first, and a value.

use serde::{Deserialize, Serialize};

use crate::length_prefix::{FrameBuffer, TooLong, append_frame};

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

/// Append a value as a frame to the bytes that are to be sent.
///
/// If the value is longer than [`MAX_FRAME`], nothing is appended and the result is false. Limits on
/// everything that goes into a frame prevent that.
pub fn put<T: Serialize>(value: &T, to: &mut Vec<u8>) -> bool {
    let before = to.len();
    let length = append_frame(to, |to| {
        *to = postcard::to_extend(value, std::mem::take(to)).expect("memory takes every value");
    });
    if length > MAX_FRAME {
        to.truncate(before);
    }
    length <= MAX_FRAME
}

/// The received bytes of a connection, out of which values are taken as soon as their frames are
/// complete.
#[derive(Debug, Default)]
pub struct Frames(FrameBuffer<MAX_FRAME>);

impl Frames {
    /// The memory that an idle connection keeps, in bytes.
    const KEPT: usize = 4096;

    /// Where received bytes are to be appended. Memory that only a burst needed is given back here.
    pub fn space(&mut self) -> &mut Vec<u8> {
        let bytes = self.0.space();
        if bytes.capacity() > 4 * Self::KEPT && bytes.len() <= Self::KEPT {
            bytes.shrink_to(Self::KEPT);
        }
        bytes
    }

    /// Append received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.space().extend_from_slice(bytes);
    }

    /// Take [`MAGIC`] from the beginning of a connection. The result is false until enough bytes
    /// have arrived to tell.
    pub fn magic(&mut self) -> Result<bool, FrameError> {
        let rest = self.0.rest();
        let seen = rest.len().min(MAGIC.len());
        if rest[..seen] != MAGIC[..seen] {
            return Err(FrameError::Magic);
        }
        let complete = seen == MAGIC.len();
        if complete {
            self.0.skip(seen);
        }
        Ok(complete)
    }

    /// Take the value of the next frame, or nothing if the frame has not arrived completely.
    pub fn take<'a, T: Deserialize<'a>>(&'a mut self) -> Result<Option<T>, FrameError> {
        let frame = self.0.frame().map_err(|TooLong(length)| FrameError::TooLong(length))?;
        let Some(content) = frame else { return Ok(None) };
        match postcard::take_from_bytes(content) {
            Ok((value, [])) => Ok(Some(value)),
            _ => Err(FrameError::Garbled),
        }
    }
}

//! Frames of the protocol: each holds one value, encoded with postcard.

use serde::{Deserialize, Serialize};

use crate::length_prefix::{FrameBuffer, TooLong, append_frame};

/// The first bytes of a connection. They begin with a zero, as no HTTP request does, so a node can
/// serve both on one socket.
pub const MAGIC: [u8; 8] = *b"\0doorway";

/// The maximum length of a value in a frame, in bytes. Lists that could be longer are sent in
/// pages.
pub const MAX_FRAME: usize = 1 << 18;

/// Why received bytes cannot be understood. The connection must be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The connection does not begin with [`MAGIC`].
    #[error("the other side does not speak the protocol of Doorway")]
    Magic,
    /// A frame announces this many bytes, which is more than [`MAX_FRAME`].
    #[error("the other side sent a frame of {0} bytes; at most {MAX_FRAME} are allowed")]
    TooLong(usize),
    /// A frame does not hold a value of the expected type.
    #[error("the other side sent a frame that cannot be decoded")]
    Garbled,
}

/// Append a value as a frame to the bytes that are to be sent.
///
/// If the value is longer than [`MAX_FRAME`], nothing is appended and the result is false. Limits
/// on everything that goes into a frame prevent that.
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
#[derive(Clone, Debug, Default, Hash)]
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

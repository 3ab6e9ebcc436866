//! Frames: how the bytes of a connection are divided into messages.
//!
//! A frame is a length in four bytes, little-endian; a kind in one byte; and a body. The length
//! counts the kind and the body. Numbers in a body are encoded by postcard.

use std::fmt;

use doorway_protocol::length_prefix::{FrameBuffer, TooLong, append_frame};

use super::hello::Hello;

/// The longest frame in bytes, without its length prefix.
const FRAME_MAX: usize = 1 << 20;

/// The longest message in bytes. Its frame also has room for the kind and two numbers.
pub const MESSAGE_MAX: usize = FRAME_MAX - 1 - 2 * NUMBER_MAX;

/// The most bytes that an encoded number takes.
const NUMBER_MAX: usize = 10;

/// One frame of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The first frame of each side: who it is.
    Hello(Hello),
    /// A message.
    Data {
        /// The number of the message, counted from 1 for each pair of incarnations.
        number: u64,
        /// How many messages of the other side have arrived.
        received: u64,
        /// The message.
        message: &'a [u8],
    },
    /// How many messages of the other side have arrived. It also serves as the heartbeat.
    Ack(u64),
    /// The sender closes the connection; the text says why, for people.
    Bye(&'a str),
}

/// Why bytes are not a valid frame. Nothing after them can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame without a kind, of length 0.
    #[error("a frame of length 0")]
    Empty,
    /// A frame that is longer than allowed.
    #[error("a frame of {0} bytes; at most {FRAME_MAX} are allowed")]
    TooLong(usize),
    /// A frame of an unknown kind.
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    /// A body that cannot be decoded.
    #[error("a {0} frame that cannot be decoded")]
    Garbled(Kind),
}

/// The kinds of frames. The number of each is its byte on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A [`Frame::Hello`].
    Hello = 0,
    /// A message.
    Data = 1,
    /// A [`Frame::Ack`].
    Ack = 2,
    /// A [`Frame::Bye`].
    Bye = 3,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hello => "hello",
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Bye => "bye",
        })
    }
}

impl<'a> Frame<'a> {
    /// Append the encoded frame to `out`.
    ///
    /// # Panics
    ///
    /// If the frame is too long. The caller must limit the length of messages and hellos.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let length = append_frame(out, |out| self.append(out));
        assert!(length <= FRAME_MAX, "a frame of {length} bytes");
    }

    fn append(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => {
                out.push(Kind::Hello as u8);
                append(hello, out);
            }
            Self::Data { number, received, message } => {
                out.push(Kind::Data as u8);
                append(&(number, received), out);
                out.extend_from_slice(message);
            }
            Self::Ack(received) => {
                out.push(Kind::Ack as u8);
                append(received, out);
            }
            Self::Bye(why) => {
                out.push(Kind::Bye as u8);
                append(why, out);
            }
        }
    }

    fn decode(frame: &'a [u8]) -> Result<Self, FrameError> {
        let (kind, body) = frame.split_first().ok_or(FrameError::Empty)?;
        match kind {
            0 => {
                // A later version of the protocol may add fields at the end of its hello.
                let hello = postcard::take_from_bytes(body);
                hello.map(|(hello, _)| Self::Hello(hello)).map_err(|_| Kind::Hello)
            }
            1 => {
                let parts = postcard::take_from_bytes(body).map_err(|_| Kind::Data);
                parts.map(|((number, received), message)| Self::Data { number, received, message })
            }
            2 => whole(body).map(Self::Ack).ok_or(Kind::Ack),
            3 => whole(body).map(Self::Bye).ok_or(Kind::Bye),
            _ => return Err(FrameError::Kind(*kind)),
        }
        .map_err(FrameError::Garbled)
    }
}

fn append<T: serde::Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) {
    // Encoding into memory cannot fail, and all of our types can be encoded.
    *out = postcard::to_extend(value, std::mem::take(out))
        .expect("encoding plain data into memory cannot fail");
}

/// Decode a body that is one value and nothing else.
fn whole<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    postcard::take_from_bytes(body).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

/// Decodes frames from bytes, in whatever pieces they arrive.
#[derive(Debug, Default)]
pub struct Decoder(FrameBuffer<FRAME_MAX>);

impl Decoder {
    /// The buffer to which the next bytes must be appended.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.0.space()
    }

    /// Has a whole frame arrived, or bytes that cannot become one?
    pub fn is_ready(&self) -> bool {
        !matches!(self.0.whole(), Ok(None))
    }

    /// The next frame, if all of it has arrived.
    pub fn frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        match self.0.frame() {
            Ok(Some(frame)) => Frame::decode(frame).map(Some),
            Ok(None) => Ok(None),
            Err(TooLong(length)) => Err(FrameError::TooLong(length)),
        }
    }
}

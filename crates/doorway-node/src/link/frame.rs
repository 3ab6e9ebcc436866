//! Frames: how bytes on a connection are divided.
//!
//! A frame is its length in four bytes, the lowest first; its kind in one byte; and its body. The
//! length counts the kind and the body. Numbers in a body are postcard's.

use std::fmt;

use doorway_protocol::length_prefix::{FrameBuffer, TooLong, append_frame};

use super::hello::Hello;

/// How long a frame may be, its length not counted.
const FRAME_MAX: usize = 1 << 20;

/// How long a message may be: the frame around it has room for its kind and two numbers besides.
pub const MESSAGE_MAX: usize = FRAME_MAX - 1 - 2 * NUMBER_MAX;

/// The most bytes that a number takes.
const NUMBER_MAX: usize = 10;

/// What is said on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Who speaks: the first frame of each side.
    Hello(Hello),
    /// A message.
    Data {
        /// Its number, from 1 in the life of the link.
        number: u64,
        /// How many messages of the other side have arrived.
        received: u64,
        /// The message.
        message: &'a [u8],
    },
    /// How many messages of the other side have arrived; also the sign of life.
    Ack(u64),
    /// Nothing follows, and why, for people.
    Bye(&'a str),
}

/// Why bytes are no frame. Nothing after them can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame without a kind.
    #[error("a frame of no length")]
    Empty,
    /// A frame that nobody may send.
    #[error("a frame of {0} bytes, of which {FRAME_MAX} are allowed")]
    TooLong(usize),
    /// A kind of frame that is not spoken.
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    /// A body that cannot be read.
    #[error("a garbled {0} frame")]
    Garbled(Kind),
}

/// The kinds of frames; the number of each is its byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Who speaks.
    Hello = 0,
    /// A message.
    Data = 1,
    /// What has arrived.
    Ack = 2,
    /// The end.
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
    /// Append the frame to what is to be written.
    ///
    /// # Panics
    ///
    /// If it is too long, which whoever makes messages and greetings must see to.
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
                // A later version may say more at the end of its hello.
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
    // Writing to memory cannot fail, and none of our types refuses to be written.
    *out = postcard::to_extend(value, std::mem::take(out)).expect("a value that can be written");
}

/// A body that is one value and nothing else.
fn whole<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
    postcard::take_from_bytes(body).ok().filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

/// Turns bytes, in whatever pieces they come, into frames.
#[derive(Debug, Default)]
pub struct Decoder(FrameBuffer<FRAME_MAX>);

impl Decoder {
    /// Where the next bytes are to be appended.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.0.space()
    }

    /// Is there a whole frame, or what will never be one?
    pub fn is_ready(&self) -> bool {
        !matches!(self.0.whole(), Ok(None))
    }

    /// The next frame, if all of it has come.
    pub fn frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        match self.0.frame() {
            Ok(Some(frame)) => Frame::decode(frame).map(Some),
            Ok(None) => Ok(None),
            Err(TooLong(length)) => Err(FrameError::TooLong(length)),
        }
    }
}

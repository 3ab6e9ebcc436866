//! Why a call failed, as gRPC says it: a code and a sentence.

use std::fmt::Write as _;

use doorway_protocol::text::shorten_bytes;
use doorway_protocol::{Code as RefusalCode, Refusal};

use super::wire::MalformedMessage;

/// The codes of gRPC that clients of etcd get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) enum Code {
    Unknown = 2,
    InvalidArgument = 3,
    NotFound = 5,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    OutOfRange = 11,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

/// The longest sentence about a call that failed, in bytes. It may quote what the client has sent,
/// and it is a header of HTTP, of which clients accept a few kilobytes.
const LONGEST: usize = 1000;

/// How much of a sentence that is too long stays at its end, where the reason is.
const END: usize = 400;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Status {
    pub(super) code: Code,
    pub(super) text: String,
}

impl Status {
    pub(super) fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: shorten_bytes(&text.into(), LONGEST, END) }
    }

    pub(super) fn invalid(text: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, text)
    }

    pub(super) fn unimplemented(text: impl Into<String>) -> Self {
        Self::new(Code::Unimplemented, text)
    }

    /// There is no such lease. Clients compare the text.
    pub(super) fn no_lease() -> Self {
        Self::new(Code::NotFound, "etcdserver: requested lease not found")
    }

    /// An answer that does not fit its call, which never comes.
    pub(super) fn unexpected() -> Self {
        Self::new(Code::Unavailable, "the node gave an answer that does not fit the request")
    }

    /// The text as a header of HTTP may have it: everything but visible ASCII characters and spaces
    /// is written as `%` and two digits.
    pub(super) fn escaped(&self) -> String {
        self.text.bytes().fold(String::new(), |mut text, byte| {
            match byte {
                b' '..=b'~' if byte != b'%' => text.push(char::from(byte)),
                _ => {
                    let _ = write!(text, "%{byte:02X}"); // Writing into a string cannot fail.
                }
            }
            text
        })
    }

    /// The status of HTTP with which the JSON gateway of etcd answers.
    pub(super) fn http(&self) -> u16 {
        match self.code {
            Code::Unknown => 500,
            Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => 400,
            Code::NotFound => 404,
            Code::PermissionDenied => 403,
            Code::ResourceExhausted => 429,
            Code::Unimplemented => 501,
            Code::Unavailable => 503,
            Code::Unauthenticated => 401,
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal.code {
            RefusalCode::Invalid | RefusalCode::NotServed => Code::InvalidArgument,
            RefusalCode::Forbidden => Code::PermissionDenied,
            RefusalCode::Busy => Code::ResourceExhausted,
            RefusalCode::Gone => return Self::no_lease(),
            RefusalCode::NotFree | RefusalCode::Broken => Code::FailedPrecondition,
            _ => Code::Unavailable,
        };
        Self::new(code, refusal.text)
    }
}

impl From<MalformedMessage> for Status {
    fn from(why: MalformedMessage) -> Self {
        Self::invalid(format!("the request cannot be read: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_escaped_for_a_header() {
        let status = Status::invalid("50% of `ä`\n");
        assert_eq!(status.escaped(), "50%25 of `%C3%A4`%0A");
    }
    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        for letter in ["x", "ä", "€"] {
            let text = format!("the key {} is not a lock", letter.repeat(30_000));
            let Status { text: short, .. } = Status::invalid(text);
            assert!(short.len() <= LONGEST && short.len() > LONGEST - 8, "{}", short.len());
            assert!(short.starts_with("the key ") && short.ends_with("is not a lock"), "{short}");
        }
        let text = "x".repeat(LONGEST);
        assert_eq!(Status::invalid(text.clone()).text, text);
    }
}

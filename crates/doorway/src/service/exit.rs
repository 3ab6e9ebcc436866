//! Exit codes of the commands that use a node, as `sysexits.h` and flock(1) have them.

use std::error::Error;
use std::fmt;

use doorway_protocol::{Code, Refusal};

/// The command was misused.
pub(crate) const USAGE: u8 = 64;
/// No node, or one that cannot serve now.
pub(crate) const UNAVAILABLE: u8 = 69;
/// Something of the system failed: no more processes, no more descriptors.
pub(crate) const SYSTEM: u8 = 71;
/// The node refuses this client.
pub(crate) const REFUSED: u8 = 77;
/// The lock was lost while the command ran.
pub(crate) const LOST: u8 = 123;
/// The command is there but cannot be run.
pub(crate) const CANNOT_RUN: u8 = 126;
/// There is no such command.
pub(crate) const NOT_FOUND: u8 = 127;

/// The end of the program: its exit code and the one line that says why, unless it is the exit code
/// of a command that was run.
#[derive(Debug)]
pub(crate) struct Exit {
    /// The code.
    pub(crate) code: u8,
    /// Why.
    pub(crate) text: Option<String>,
    /// The kind of refusal of the node, if it is one.
    pub(crate) refused: Option<Code>,
}

impl Exit {
    /// An end that needs a word.
    pub(crate) fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: Some(text.into()), refused: None }
    }

    /// An end that needs none.
    pub(crate) fn quiet(code: u8) -> Self {
        Self { code, text: None, refused: None }
    }

    /// The end after this signal.
    pub(crate) fn signal(number: i32) -> Self {
        Self::quiet(u8::try_from(128 + number).unwrap_or(u8::MAX))
    }

    /// The end that a refusal of the node is, where a lock that is not free has this code.
    pub(crate) fn refusal(refusal: &Refusal, conflict: u8) -> Self {
        let code = match refusal.code {
            Code::NotFree => conflict,
            Code::Forbidden => REFUSED,
            Code::Invalid | Code::NotServed => USAGE,
            Code::Busy | Code::Gone | Code::Unavailable | Code::Broken => UNAVAILABLE,
        };
        Self { code, text: Some(refusal.text.clone()), refused: Some(refusal.code) }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.as_deref().unwrap_or_default())
    }
}

impl Error for Exit {}

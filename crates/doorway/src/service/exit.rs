//! Exit codes of the commands that use a node, after `sysexits.h` and flock(1).

use std::error::Error;
use std::fmt;

use doorway_protocol::{Code, Refusal};

/// The command line is wrong.
pub(crate) const USAGE: u8 = 64;
/// No node can be reached, or it cannot serve now.
pub(crate) const UNAVAILABLE: u8 = 69;
/// The operating system refused something, such as another process or descriptor.
pub(crate) const SYSTEM: u8 = 71;
/// The node refuses this client.
pub(crate) const REFUSED: u8 = 77;
/// The lock was lost while the command ran.
pub(crate) const LOST: u8 = 123;
/// The command exists but cannot be run.
pub(crate) const CANNOT_RUN: u8 = 126;
/// The command does not exist.
pub(crate) const NOT_FOUND: u8 = 127;

/// The reason for which the program ends: an exit code and a line for standard error. There is no
/// line if the exit code is that of a command that was run.
#[derive(Debug)]
pub(crate) struct Exit {
    /// The exit code.
    pub(crate) code: u8,
    /// The line.
    pub(crate) text: Option<String>,
    /// The code of the node's refusal, if it refused a request.
    pub(crate) refused: Option<Code>,
}

impl Exit {
    /// An exit with a line that says why.
    pub(crate) fn new(code: u8, text: impl Into<String>) -> Self {
        Self { code, text: Some(text.into()), refused: None }
    }

    /// An exit without a line.
    pub(crate) fn quiet(code: u8) -> Self {
        Self { code, text: None, refused: None }
    }

    /// The exit of a program that this signal ended.
    pub(crate) fn signal(number: i32) -> Self {
        Self::quiet(u8::try_from(128 + number).unwrap_or(u8::MAX))
    }

    /// The exit after a refusal of the node; `conflict` is the exit code for a lock that is not
    /// free.
    pub(crate) fn refusal(refusal: &Refusal, conflict: u8) -> Self {
        let code = match refusal.code {
            Code::NotFree => conflict,
            Code::Forbidden => REFUSED,
            Code::Invalid | Code::NotServed => USAGE,
            Code::Busy | Code::Gone | Code::Unavailable | Code::Broken | Code::Elsewhere => {
                UNAVAILABLE
            }
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

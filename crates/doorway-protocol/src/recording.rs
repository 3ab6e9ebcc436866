//! The format of a recording: what the locks of one node do, one JSON object a line.
//!
//! A node writes the file and the laboratory reads it, so the format lives here, where both can use
//! it. This module has the values of the lines; reading and writing files is left to the two sides.
//!
//! Each start of the node appends one line about the node ([`Header`]), then one line for each
//! event of a lock ([`LockLine`]). A last line ([`EndLine`]) follows unless the node was killed. A
//! file therefore tells what came before and after a crash.

use serde::{Deserialize, Serialize};

use crate::Mode;

/// The version of the format, which every [`Header`] names.
pub const VERSION: u32 = 1;

/// The first line of each start of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format, [`VERSION`].
    pub recording: u32,
    /// The name of the group.
    pub group: String,
    /// The name of the node that writes the recording.
    pub node: String,
    /// The names of all members, in the order of the configuration.
    pub members: Vec<String>,
    /// When the node started, in microseconds since 1970; all other times count from there.
    pub began: u64,
    /// Whether the recording begins while its lock is in use. Such a recording is of one lock. Its
    /// first line about the lock tells how the lock stands at this node, and nothing is known of
    /// what came before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partial: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The last line of a recording that was not cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndLine {
    /// How the recording ended.
    pub end: End,
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The node was stopped.
    Stop,
    /// The locks did more than could be written in time, so the recording was given up.
    Overflow,
    /// The time for which the lock was to be recorded was over.
    Time,
    /// The node could not be asked, and has recorded nothing.
    Missing,
}

/// One event of a lock at the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockLine {
    /// When it happened, in microseconds since the node started.
    pub at: u64,
    /// The view in which it happened.
    pub view: u64,
    /// The name of the lock.
    pub lock: String,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened to a node as a member of the algorithm of a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "lowercase")]
pub enum Event {
    /// The lock begins at this node, for the first time in its view or after it was forgotten.
    Begin {
        /// The name of the algorithm.
        algorithm: String,
        /// How many clients may be inside at once.
        permits: u32,
        /// Which members hold the lock as the view begins.
        holders: Vec<Holder>,
        /// The number from which the algorithm counts its requests.
        floor: u64,
        /// Whether the recording begins here while the lock is in use.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        standing: bool,
        /// The mode in which the node waits already, if the recording begins here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting: Option<Mode>,
    },
    /// The node asks for the lock.
    Acquire {
        /// In which mode.
        mode: Mode,
    },
    /// The node enters.
    Enter,
    /// The node leaves, or gives back one permit.
    Release,
    /// The node no longer wants to enter, and withdraws its request.
    Withdraw,
    /// The node sends a message of the algorithm.
    Send {
        /// The name of the receiver.
        to: String,
        /// The message in a form for people.
        message: String,
    },
    /// A message of the algorithm arrives. Messages from one sender about one lock arrive in the
    /// order in which they were sent, so the line does not repeat the message.
    Receive {
        /// The name of the sender.
        from: String,
        /// Whether the message was sent before the recording of its sender began, in a recording
        /// that is partial.
        #[serde(default, skip_serializing_if = "is_false")]
        early: bool,
    },
    /// The node refuses the message that has just arrived.
    Refuse {
        /// Why, for people.
        why: String,
    },
    /// The lock cannot be used any more in this view.
    Break {
        /// Why, for people.
        why: String,
    },
}

/// A member that holds a lock as a view begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The name of the member.
    pub node: String,
    /// How it holds the lock.
    pub mode: Mode,
    /// How many permits it holds: 1 unless the lock has several.
    pub permits: u32,
}

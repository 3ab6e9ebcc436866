//! The lines of a recording, and what is wrong with those that are none.

use doorway_core::Mode;
use serde::Deserialize;
use serde_json::Value;

/// The version of the format that is read.
const VERSION: u32 = 1;

/// The line with which a start of a node begins.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Header {
    recording: u32,
    pub(super) group: String,
    pub(super) node: String,
    pub(super) members: Vec<String>,
    /// When the node started, in microseconds since 1970.
    pub(super) began: u64,
}

impl Header {
    /// Are both about starts of one node of one group?
    pub(super) fn same_node(&self, other: &Self) -> bool {
        (&self.group, &self.node, &self.members) == (&other.group, &other.node, &other.members)
    }
}

/// How a recording ended that was not cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum End {
    /// The node was stopped.
    Stop,
    /// More happened than could be written.
    Overflow,
}

#[derive(Deserialize)]
struct EndLine {
    end: End,
}

/// A line about a lock.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct LockLine {
    /// In microseconds since the node started.
    pub(super) at: u64,
    pub(super) view: u64,
    pub(super) lock: String,
    #[serde(flatten)]
    pub(super) did: Did,
}

/// What happened to the node as a member of the lock's algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "did", rename_all = "lowercase")]
pub(super) enum Did {
    Begin { algorithm: String, permits: u32, holders: Vec<Holding>, floor: u64 },
    Acquire { mode: Mode },
    Enter,
    Release,
    Send { to: String, message: String },
    Receive { from: String },
    Refuse { why: String },
    Break { why: String },
}

/// Who is inside as a view begins.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Holding {
    pub(super) node: String,
    pub(super) mode: Mode,
    pub(super) permits: u32,
}

/// A line of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Header(Header),
    End(End),
    Lock(LockLine),
}

impl Line {
    /// Read a line, or say what is wrong with it.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|_| "this is no JSON".to_owned())?;
        let Some(object) = value.as_object() else { return Err("this is no object".to_owned()) };
        let read = if object.contains_key("recording") {
            serde_json::from_value(value).map(Self::Header)
        } else if object.contains_key("end") {
            serde_json::from_value(value).map(|EndLine { end }| Self::End(end))
        } else {
            serde_json::from_value(value).map(Self::Lock)
        };
        match read.map_err(|error| format!("no line of a recording: {error}"))? {
            Self::Header(header) if header.recording != VERSION => {
                let version = header.recording;
                Err(format!("version {version} of the format is not known, only {VERSION}"))
            }
            line => Ok(line),
        }
    }
}

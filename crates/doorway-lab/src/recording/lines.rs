//! The lines of a recording, and what is wrong with those that are none.

use doorway_protocol::recording::{End, EndLine, Header, LockLine, VERSION};
use serde_json::Value;

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
        let value: Value = serde_json::from_str(text).map_err(|_| "this is not JSON".to_owned())?;
        let Some(object) = value.as_object() else {
            return Err("this is not an object".to_owned());
        };
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

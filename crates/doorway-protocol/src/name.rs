//! The names of locks.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// The name of a lock: 1 to 200 bytes of UTF-8 without control characters.
///
/// Names are cheap to clone: a clone shares the text.
///
/// ```
/// use doorway_protocol::Name;
///
/// let name = Name::new("backup/north")?;
/// assert_eq!(name.as_str(), "backup/north");
/// assert!(Name::new("").is_err());
/// # Ok::<(), doorway_protocol::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "&str")]
pub struct Name(Arc<str>);

/// Why a text cannot be the name of a lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The text is empty.
    #[error("the name of a lock must not be empty")]
    Empty,
    /// The text has this many bytes, which is more than [`Name::MAX`].
    #[error("the name of a lock has at most {max} bytes, not {0}", max = Name::MAX)]
    TooLong(usize),
    /// The text contains this control character, which would garble a line of a log.
    #[error("the name of a lock must not contain the control character {0:?}")]
    Control(char),
}

impl Name {
    /// The maximum length of a name, in bytes.
    pub const MAX: usize = 200;

    /// Check that a text can be the name of a lock.
    pub fn new(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > Self::MAX {
            return Err(NameError::TooLong(text.len()));
        }
        match text.chars().find(|c| c.is_control()) {
            Some(control) => Err(NameError::Control(control)),
            None => Ok(Self(text.into())),
        }
    }

    /// The name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for Name {
    type Error = NameError;

    fn try_from(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

//! How messages are written that have grown since version 1 of the protocol.
//!
//! A frame holds its fields one after another, without their names. So a field can be added only
//! where the reader can tell whether it is there.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::session::{Claim, Life, NodeIdentity, Opening, Secret, SessionId, Welcome};

/// The version of the protocol since which a welcome tells which node gave the session.
const DIRECTORY: u16 = 3;

/// An [`Opening`] as it is written. A client that names the node of its session sends the last
/// kind, which only nodes understand that have told their identity.
#[derive(Serialize, Deserialize)]
pub(crate) enum OpeningOnWire {
    Visit,
    New { ttl_ms: u32, life: Life },
    Resume(ResumeOnWire),
    ResumeAt(NodeIdentity, ResumeOnWire),
}

/// The fields of [`Opening::Resume`] in version 1.
#[derive(Serialize, Deserialize)]
pub(crate) struct ResumeOnWire {
    session: SessionId,
    secret: Secret,
    ttl_ms: u32,
    life: Life,
    held: Vec<Claim>,
    waiting: Vec<u64>,
    more: bool,
}

impl From<Opening> for OpeningOnWire {
    fn from(opening: Opening) -> Self {
        match opening {
            Opening::Visit => Self::Visit,
            Opening::New { ttl_ms, life } => Self::New { ttl_ms, life },
            Opening::Resume { node, session, secret, ttl_ms, life, held, waiting, more } => {
                let resume = ResumeOnWire { session, secret, ttl_ms, life, held, waiting, more };
                match node {
                    None => Self::Resume(resume),
                    Some(node) => Self::ResumeAt(node, resume),
                }
            }
        }
    }
}

impl From<OpeningOnWire> for Opening {
    fn from(opening: OpeningOnWire) -> Self {
        let (node, resume) = match opening {
            OpeningOnWire::Visit => return Self::Visit,
            OpeningOnWire::New { ttl_ms, life } => return Self::New { ttl_ms, life },
            OpeningOnWire::Resume(resume) => (None, resume),
            OpeningOnWire::ResumeAt(node, resume) => (Some(node), resume),
        };
        let ResumeOnWire { session, secret, ttl_ms, life, held, waiting, more } = resume;
        Self::Resume { node, session, secret, ttl_ms, life, held, waiting, more }
    }
}

impl Serialize for Welcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { version, node, scope, session, ttl_ms, lost, directory } = self;
        let always = (version, node, scope, session, ttl_ms, lost);
        if *version < DIRECTORY {
            always.serialize(serializer)
        } else {
            (always, directory).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Welcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple(7, Fields)
    }
}

/// Reads the fields of a [`Welcome`], of which the first is the version.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Welcome;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fields of a welcome")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<Welcome, A::Error> {
        let version = next(&mut fields)?;
        Ok(Welcome {
            version,
            node: next(&mut fields)?,
            scope: next(&mut fields)?,
            session: next(&mut fields)?,
            ttl_ms: next(&mut fields)?,
            lost: next(&mut fields)?,
            directory: if version < DIRECTORY { None } else { next(&mut fields)? },
        })
    }
}

fn next<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(fields: &mut A) -> Result<T, A::Error> {
    fields.next_element()?.ok_or_else(|| A::Error::custom("a field is missing"))
}

//! Directories for servers, as the tests of the node have them.

#[path = "../../../doorway-node/tests/common/scratch.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod scratch;

pub(crate) use scratch::Scratch;

//! Scratch directories for servers, shared with the tests of the node.

#[path = "../../../doorway-node/tests/common/scratch.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod scratch;

pub(crate) use scratch::Scratch;

//! Pictures other than space-time diagrams: quorums on their arrangement, trees whose edges turn,
//! and the steps of threads beside the registers.

mod lanes;
mod quorums;
mod tree;

pub use lanes::{Lanes, Step, Stretch, lanes};
pub use quorums::quorums;
pub use tree::tree;

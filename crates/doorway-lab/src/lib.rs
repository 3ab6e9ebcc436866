//! Every way to run Doorway's algorithms without a network.
//!
//! [`World`] is a whole group plus its network as one value. A driver picks the next [`Choice`] of
//! a world: the model checker tries all of them, [`random`] picks one at random, and a script or a
//! trace lists them. The laboratory never opens a socket and never reads the clock.

mod canvas;
pub mod check;
pub mod compare;
pub mod diagram;
pub mod erased;
pub mod flaws;
pub mod itf;
mod nodes;
pub mod numbers;
pub mod papers;
pub mod pictures;
pub mod plot;
pub mod problems;
pub mod random;
pub mod recording;
pub mod refutations;
pub mod script;
pub mod simulate;
pub mod source;
pub mod spoiled;
pub mod stories;
pub mod story;
pub mod trace;
pub mod values;
pub mod watch;
mod world;

pub use doorway_protocol::nearest;
pub use erased::AnyAlgorithm;
pub use nodes::{Nodes, Violation};
pub use trace::Trace;
pub use world::{ChannelPosition, Choice, FOREVER, Letter, Limits, Step, Victims, World};

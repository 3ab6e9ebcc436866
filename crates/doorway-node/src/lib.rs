//! Named locks over a network, inside a Rust program.

mod fence;
pub mod link;
pub mod locks;
mod name;
pub mod net;
pub mod views;
pub mod wire;

pub use fence::Fence;
pub use name::{Name, NameError};

//! Sessions at a Doorway node: named locks for programs, blocking or async.

pub use doorway_protocol::{Fence, Mode, Name, NameError};

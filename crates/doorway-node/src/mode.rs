//! The one place where the mode of a client becomes the mode of an algorithm, and back.
//!
//! Clients know `doorway-protocol` and no algorithm, algorithms know `doorway-core` and no client,
//! so each of the two crates has a `Mode` of its own.

use doorway_core::Mode as AlgorithmMode;
use doorway_protocol::Mode;

/// Convert the mode that a client asks for into the mode that its algorithm is asked for.
pub(crate) fn to_algorithm(mode: Mode) -> AlgorithmMode {
    match mode {
        Mode::Exclusive => AlgorithmMode::Exclusive,
        Mode::Shared => AlgorithmMode::Shared,
    }
}

/// Convert the mode of an algorithm into the mode that reports show to clients.
pub(crate) fn to_client(mode: AlgorithmMode) -> Mode {
    match mode {
        AlgorithmMode::Exclusive => Mode::Exclusive,
        AlgorithmMode::Shared => Mode::Shared,
    }
}

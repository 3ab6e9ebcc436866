//! Problems of synchronisation besides mutual exclusion, solved by messages.
//!
//! They are not algorithms in the sense of [`doorway_core::Algorithm`]: no node enters or leaves
//! anything. So they have a small world of their own ([`exchange`]): processes that act and
//! exchange messages, which may be lost, doubled and overtaken. One [`Process`](exchange::Exchange)
//! is searched exhaustively, walked at random, and drawn.
//!
//! [`buffer`] is the bounded buffer between producers and a consumer.

pub mod buffer;
pub mod exchange;

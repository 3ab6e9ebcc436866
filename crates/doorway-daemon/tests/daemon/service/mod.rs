//! The service as its clients see it, over a Unix socket with raw frames.

pub(crate) mod client;
mod crash;
mod evidence;
mod greeting;
mod life;
mod locks;
mod process;
mod remote;
mod trouble;
pub(crate) mod windows;

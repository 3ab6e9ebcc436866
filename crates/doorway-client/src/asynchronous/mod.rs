//! A client for programs with a tokio runtime.

mod call;
mod client;
mod driver;

pub use self::client::Client;

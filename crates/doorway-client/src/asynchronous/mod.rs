//! A client for programs with a tokio runtime.

mod call;
mod client;
mod driver;
mod grant;

pub use self::client::Client;
pub use self::grant::Grant;

//! Doorway's page: the laboratory in a browser.
//!
//! The world stays in Rust. The server steps the shipped algorithms and answers in JSON; the page
//! is plain ES modules and SVG, and only decides where to draw what it is told. All files are
//! inside the program.
//!
//! - [`files`] is the table of files. It needs no laboratory, so another server can offer them.
//! - [`guard`] lets requests in: loopback names only, same origin, a token.
//! - [`lab`] answers for the laboratory: stories, checks, comparisons, exports.
//! - [`live`] serves the live page of a node to the machine of the node.
//! - [`server`] puts them together on a listening socket.

pub mod files;
pub mod guard;
#[cfg(feature = "lab")]
pub mod lab;
#[cfg(feature = "lab")]
pub mod live;
#[cfg(feature = "lab")]
pub mod server;

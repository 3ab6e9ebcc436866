//! The laboratory behind the page: every call takes a moment as (group, steps) and forgets nothing
//! that the caller could not tell again.
//!
//! A key names a story that the server remembers. A key that it has forgotten is answered with 410,
//! and the page plays the story again. So there is no session to lose.

mod atlas;
mod cache;
mod compare;
mod export;
mod jobs;
mod past;
mod problem;
mod recordings;
mod routes;
mod threads;

use axum::http::HeaderMap;
use axum::response::Response;

use crate::files;
pub(crate) use routes::router;
pub use threads::Schedule;

/// The colours of all pictures, as the page's style sheet uses them.
pub(crate) async fn picture_css(headers: HeaderMap) -> Response {
    let sheet = doorway_lab::diagram::page_colours();
    files::kept(&headers, "text/css; charset=utf-8", sheet.into())
}

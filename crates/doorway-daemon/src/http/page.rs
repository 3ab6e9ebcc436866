//! The live page, where `[http] page = true`: its files, and nothing else.
//!
//! The files are the same for everybody, so a browser gets them without a token. What the page
//! shows comes over the documented routes, with the token of the operator.

use axum::Router;
use axum::extract::{Path, Request};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use doorway_page::files;
use doorway_page::guard::protect;

use super::api::Api;
use super::problem::{Kind, Problem};

/// Where the page is.
const PLACE: &str = "/page";

/// The routes of the page.
pub(crate) fn routes() -> Router<Api> {
    Router::new().route(PLACE, get(async |headers: HeaderMap| file(&headers, "live.html"))).route(
        "/page/{*file}",
        get(async |headers: HeaderMap, Path(path): Path<String>| file(&headers, &path)),
    )
}

/// Whether a request is for a file of the page, which needs no token.
pub(crate) fn is_file(request: &Request) -> bool {
    let path = request.uri().path();
    let below = path.strip_prefix(PLACE).and_then(|rest| rest.strip_prefix('/'));
    let known = path == PLACE || below.is_some_and(files::is_live);
    known && matches!(*request.method(), Method::GET | Method::HEAD)
}

fn file(headers: &HeaderMap, path: &str) -> Response {
    if !files::is_live(path) {
        return Problem::new(Kind::NotFound, "the page has no such file").into_response();
    }
    let mut response = files::answer(headers, path);
    debug_assert_ne!(response.status(), StatusCode::NOT_FOUND);
    protect(response.headers_mut());
    response
}

//! Errors as sentences.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a call is refused, as a sentence that the page shows.
#[derive(Debug)]
pub(crate) struct Problem(pub(crate) StatusCode, pub(crate) String);

impl Problem {
    /// The call asks for something that cannot be.
    pub(crate) fn bad(why: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, why.into())
    }

    /// The server no longer remembers the story. The page tells it again.
    pub(crate) fn forgotten() -> Self {
        Self(StatusCode::GONE, "the server no longer remembers this story".to_owned())
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        Self(rejection.status(), rejection.body_text())
    }
}

impl From<String> for Problem {
    fn from(why: String) -> Self {
        Self::bad(why)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}

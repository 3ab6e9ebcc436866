//! Error responses, and the status of each kind.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use doorway_protocol::text::cut;
use doorway_protocol::{Code, Refusal};
use serde::Serialize;
use utoipa::ToSchema;

/// How many bytes of a reason are sent at most: it may repeat what the client sent.
const TOLD: usize = 1000;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// The request is malformed: the name is not valid, or the body is not JSON.
    Invalid,
    /// The client did not prove who it is: a token or a client certificate is missing or unknown.
    Unauthorized,
    /// The client does not have the right to do this.
    Forbidden,
    /// There is nothing at this path.
    NotFound,
    /// The lock was not free at once, or not in time.
    NotFree,
    /// The lock does not support shared mode, or not this number of permits.
    NotServed,
    /// The lease or the grant does not exist any more.
    Gone,
    /// A limit of the node is reached.
    Busy,
    /// The node is stopping, or does not serve yet, or the group cannot know whether the lock is
    /// free because members are away.
    Unavailable,
    /// The lock is unusable until the next view.
    Broken,
}

/// Why the node refused a request. The request changed nothing.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The kind of the error.
    code: Kind,
    /// The reason, and what to do if something can be done.
    text: String,
    #[serde(skip)]
    status: StatusCode,
}

impl Problem {
    pub(crate) fn new(code: Kind, text: impl Into<String>) -> Self {
        let status = match code {
            Kind::Invalid => StatusCode::BAD_REQUEST,
            Kind::Unauthorized => StatusCode::UNAUTHORIZED,
            Kind::Forbidden => StatusCode::FORBIDDEN,
            Kind::NotFound | Kind::Gone => StatusCode::NOT_FOUND,
            Kind::NotFree => StatusCode::CONFLICT,
            Kind::NotServed => StatusCode::UNPROCESSABLE_ENTITY,
            Kind::Busy => StatusCode::TOO_MANY_REQUESTS,
            Kind::Unavailable | Kind::Broken => StatusCode::SERVICE_UNAVAILABLE,
        };
        let text = cut(&text.into(), TOLD).to_owned();
        Self { code, text, status }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, text)
    }

    /// The client has come to a port that does not serve HTTP.
    pub(crate) fn misdirected(text: impl Into<String>) -> Self {
        Self::invalid(text).with(StatusCode::MISDIRECTED_REQUEST)
    }

    /// Whether the client should try again.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.code, Kind::Busy | Kind::Unavailable | Kind::Broken)
    }

    /// This problem with another HTTP status.
    pub(crate) fn with(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn body(&self) -> String {
        serde_json::to_string(self).expect("two strings can be written as JSON")
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal.code {
            Code::Invalid => Kind::Invalid,
            Code::Forbidden => Kind::Forbidden,
            Code::Busy => Kind::Busy,
            Code::NotFree => Kind::NotFree,
            Code::NotServed => Kind::NotServed,
            Code::Gone => Kind::Gone,
            // Clients over HTTP resume no session.
            Code::Unavailable | Code::Elsewhere => Kind::Unavailable,
            Code::Broken => Kind::Broken,
        };
        Self::new(kind, refusal.text)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.is_passing() {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.code == Kind::Unauthorized {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

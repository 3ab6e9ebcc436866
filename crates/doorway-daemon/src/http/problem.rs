//! What is answered instead, and with which status.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use doorway_protocol::{Code, Refusal};
use serde::Serialize;
use utoipa::ToSchema;

/// How many bytes of a reason are told: it may repeat what was sent.
const TOLD: usize = 1000;

/// Kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// The request makes no sense: a name that is none, a body that is no JSON.
    Invalid,
    /// Nobody knows who asks: a token or a client certificate is missing.
    Unauthorized,
    /// The client may not do that.
    Forbidden,
    /// There is nothing of that kind here.
    NotFound,
    /// The lock was not free at once, or not in time.
    NotFree,
    /// The lock is not served that way: not shared, or not with so many permits.
    NotServed,
    /// The lease or the grant is no more.
    Gone,
    /// A limit of the node is reached.
    Busy,
    /// The node stops, or does not serve yet.
    Unavailable,
    /// The lock is out of order until the next view.
    Broken,
}

/// Something the node does not do, and why. Nothing has changed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What kind of reason.
    code: Kind,
    /// The reason and, if there is one, the remedy.
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
        let mut text = text.into();
        text.truncate(text.floor_char_boundary(TOLD));
        Self { code, text, status }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, text)
    }

    /// The same with a status that says more.
    pub(crate) fn with(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn body(&self) -> String {
        serde_json::to_string(self).expect("two texts can be written as JSON")
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
            Code::Unavailable => Kind::Unavailable,
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
        match self.code {
            Kind::Busy | Kind::Unavailable | Kind::Broken => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Kind::Unauthorized => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

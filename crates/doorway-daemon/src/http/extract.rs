//! Reads the parts of a request: a JSON body, the name of a lock, a query.

use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use doorway_protocol::Name;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::problem::Problem;

/// How many bytes a body may have.
pub(crate) const MOST: usize = 1 << 16;

/// How long a client may take to send a body.
const PATIENCE: Duration = Duration::from_secs(10);

/// A body of JSON.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        parsed(&body(request, state).await?).map(Self)
    }
}

/// A body of JSON, or an empty one.
pub(crate) struct JsonOrNothing<T>(pub(crate) Option<T>);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonOrNothing<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = body(request, state).await?;
        if bytes.is_empty() { Ok(Self(None)) } else { parsed(&bytes).map(|it| Self(Some(it))) }
    }
}

async fn body<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    // A page of another site can make a browser send any request but one with this content
    // type.
    if !is_json(request.headers()) {
        let text = "the body has to be JSON, with `content-type: application/json`";
        return Err(Problem::invalid(text).with(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let bytes = timeout(PATIENCE, Bytes::from_request(request, state)).await;
    let bytes = bytes.map_err(|_| {
        let text = format!("the body took longer than {} seconds", PATIENCE.as_secs());
        Problem::invalid(text).with(StatusCode::REQUEST_TIMEOUT)
    })?;
    bytes.map_err(|error| {
        let text = format!("the body cannot be read ({MOST} bytes are allowed): {error}");
        Problem::invalid(text).with(error.status())
    })
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Problem::invalid("the body has to be a JSON object: {...}"));
    }
    let value = serde_json::from_slice(bytes);
    value.map_err(|error| Problem::invalid(format!("the body: {error}")))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

/// The lock that the path names. A `/` in its name is written `%2F` there.
pub(crate) struct Lock(pub(crate) Name);

impl<S: Send + Sync> FromRequestParts<S> for Lock {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(text) = Path::<String>::from_request_parts(parts, state)
            .await
            .map_err(|error| Problem::invalid(format!("the path: {error}")))?;
        let name = Name::new(&text).map_err(|error| Problem::invalid(error.to_string()))?;
        Ok(Self(name))
    }
}

/// The query, which stands after the `?`.
pub(crate) struct UrlQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for UrlQuery<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let Query(query) =
            query.map_err(|error| Problem::invalid(format!("the query: {}", error.body_text())))?;
        Ok(Self(query))
    }
}

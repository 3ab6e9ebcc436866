//! The live page on the machine of a node: a socket on loopback that serves the files of the page,
//! and passes the requests of the page on to the Unix socket of the node.
//!
//! A stream of events is passed on as it comes; all other answers are read to their end first.
//!
//! The node knows the user of the command by the Unix socket. Loopback is open to all users of the
//! machine, so every request that is passed on must carry the token of the command.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::stream::unfold;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::files;

/// How long the node may take to answer: longer than the longest recording.
const PATIENCE: Duration = Duration::from_secs(90);

/// How many bytes a request and an answer may have.
const BODY: usize = 1 << 16;
const ANSWER: u64 = 64 << 20;

/// How many bytes the head of an answer may have.
const HEAD: usize = 1 << 14;

/// The route whose answer never ends.
const EVENTS: &str = "/v1/events";

/// Connects to the node.
pub type Dial = Arc<dyn Fn() -> io::Result<UnixStream> + Send + Sync>;

/// The routes of the live page. The guard has let the requests in.
pub(crate) fn router(dial: Dial) -> Router {
    Router::new()
        .route("/v1/{*path}", axum::routing::any(pass_on))
        .route("/page", get(async |headers: HeaderMap| file(&headers, "live.html")))
        .route(
            "/page/{*path}",
            get(async |headers: HeaderMap, Path(path): Path<String>| file(&headers, &path)),
        )
        .with_state(dial)
}

fn file(headers: &HeaderMap, path: &str) -> Response {
    if files::is_live(path) {
        return files::answer(headers, path);
    }
    (StatusCode::NOT_FOUND, "there is no such file\n").into_response()
}

/// Pass a request on to the node, and its answer back.
async fn pass_on(State(dial): State<Dial>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY).await else {
        return problem(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long");
    };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let asked = if parts.method == Method::GET && parts.uri.path() == EVENTS {
        follow(dial, &path).await
    } else {
        let asking = move || ask(&dial, &parts.method, &path, &body);
        let asked = tokio::task::spawn_blocking(asking).await.map_err(io::Error::other);
        asked.and_then(|answer| answer)
    };
    match asked {
        Ok(response) => response,
        Err(error) => {
            let text = format!("The node cannot be asked: {error}. The page asks again.");
            problem(StatusCode::BAD_GATEWAY, &text)
        }
    }
}

/// An error in the words and the form in which nodes tell theirs.
fn problem(status: StatusCode, text: &str) -> Response {
    (status, axum::Json(json!({ "code": "unavailable", "text": text }))).into_response()
}

/// Pass a stream of events on, until the page or the node ends it.
async fn follow(dial: Dial, path: &str) -> io::Result<Response> {
    let stream = tokio::task::spawn_blocking(move || dial()).await.map_err(io::Error::other)??;
    stream.set_nonblocking(true)?;
    let mut stream = tokio::net::UnixStream::from_std(stream)?;
    let question = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n");
    let head = async {
        stream.write_all(question.as_bytes()).await?;
        let mut read = Vec::new();
        loop {
            if let Some(end) = end_of_head(&read) {
                return Ok((read, end));
            }
            if read.len() > HEAD || stream.read_buf(&mut read).await? == 0 {
                return Err(unreadable());
            }
        }
    };
    let (mut read, end) = timeout(PATIENCE, head).await.map_err(io::Error::other)??;
    let first = read.split_off(end);
    let mut response = parse(&read).ok_or_else(unreadable)?;
    let parts = unfold((stream, first), |(mut stream, mut next)| async move {
        if next.is_empty() && stream.read_buf(&mut next).await.is_ok_and(|count| count == 0) {
            return None;
        }
        let part = std::mem::take(&mut next);
        let part = if part.is_empty() { Err(unreadable()) } else { Ok(Bytes::from(part)) };
        Some((part, (stream, next)))
    });
    *response.body_mut() = Body::from_stream(parts);
    Ok(response)
}

fn unreadable() -> io::Error {
    io::Error::other("its answer cannot be read")
}

/// Where the body of an answer begins.
fn end_of_head(answer: &[u8]) -> Option<usize> {
    answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4)
}

/// Ask the node. With HTTP/1.0 the answer ends with the connection.
fn ask(dial: &Dial, method: &Method, path: &str, body: &Bytes) -> io::Result<Response> {
    let mut stream = dial()?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = body.len();
    let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nhost: localhost\r\n{kind}content-length: {length}\r\n\r\n"
    )?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.take(ANSWER).read_to_end(&mut answer)?;
    parse(&answer).ok_or_else(unreadable)
}

fn parse(answer: &[u8]) -> Option<Response> {
    let end = end_of_head(answer)?;
    let head = std::str::from_utf8(&answer[..end - 4]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse::<u16>().ok()?;
    let mut response = Response::new(answer[end..].to_vec().into());
    *response.status_mut() = StatusCode::from_u16(status).ok()?;
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::try_from(name).ok()?;
        if name == header::CONTENT_TYPE || name == "doorway-missing" {
            response.headers_mut().insert(name, HeaderValue::from_str(value.trim()).ok()?);
        }
    }
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_keeps_its_status_and_type_and_nothing_else() {
        let told =
            b"HTTP/1.0 409 Conflict\r\ncontent-type: application/json\r\nset-cookie: a=b\r\n\r\n{}";
        let response = parse(told).expect("an answer");
        assert_eq!(response.status(), 409);
        assert_eq!(response.headers().len(), 1);
        assert!(parse(b"nonsense").is_none());
    }

    #[test]
    fn only_the_files_of_the_live_page_are_below_its_path() {
        let status = |path| file(&HeaderMap::new(), path).status();
        assert_eq!(status("live.html"), 200);
        assert_eq!(status("js/live.js"), 200);
        assert_eq!(status("js/lab.js"), 404);
        assert_eq!(status("index.html"), 404);
    }
}

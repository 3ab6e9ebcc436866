//! Which requests are let in.
//!
//! The page is served on loopback, which every user of the machine and every page in the browser
//! can reach. So every request must name a loopback host, must not come from another site, and must
//! carry the token if it is for the interface. The token comes in the fragment of the address,
//! which no server ever sees.

use std::fmt;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use subtle::ConstantTimeEq as _;

/// The header that carries the token.
pub const TOKEN: &str = "x-doorway-token";

/// What a page may load and who may frame it: only itself, and nobody.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// 128 random bits as text, known to the page and to nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new token.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0u8; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            let flags = rustix::rand::GetRandomFlags::empty();
            filled += rustix::rand::getrandom(&mut bytes[filled..], flags)?;
        }
        Ok(Self(format!("{:032x}", u128::from_be_bytes(bytes))))
    }

    /// The token as it stands in the address.
    pub fn text(&self) -> &str {
        &self.0
    }

    fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(...)")
    }
}

/// What the guard knows: the token, and the port of the server.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The token that requests for the interface must carry.
    pub token: Token,
    /// The port that the `Host` header must name.
    pub port: u16,
}

impl Guard {
    /// Why a request is refused, if it is.
    fn refusal(&self, request: &Request) -> Option<(StatusCode, String)> {
        let headers = request.headers();
        let text = |name| header_text(headers, name);
        let host = text(header::HOST.as_str()).unwrap_or_default();
        let port = self.port;
        let hosts = ["127.0.0.1", "[::1]", "localhost"].map(|name| format!("{name}:{port}"));
        if !hosts.iter().any(|known| known == host) {
            let why = format!("this server answers to 127.0.0.1:{port} alone");
            return Some((StatusCode::MISDIRECTED_REQUEST, why));
        }
        let site = text("sec-fetch-site").unwrap_or("none");
        if !["none", "same-origin"].contains(&site) {
            return Some((StatusCode::FORBIDDEN, "the request comes from another site".to_owned()));
        }
        let path = request.uri().path();
        if !path.starts_with("/api/") && !path.starts_with("/v1/") {
            return None;
        }
        // The live page shows its token as it shows that of a node.
        let bearer = || text(header::AUTHORIZATION.as_str())?.strip_prefix("Bearer ");
        let given = headers.get(TOKEN).map(HeaderValue::as_bytes);
        let given = given.or_else(|| Some(bearer()?.as_bytes())).unwrap_or_default();
        if !self.token.is(given) {
            let why = "the token is missing or wrong: open the address that the command printed";
            return Some((StatusCode::UNAUTHORIZED, why.to_owned()));
        }
        let json = text(header::CONTENT_TYPE.as_str()).is_some_and(|it| it == "application/json");
        if request.method() == Method::POST && !json {
            let why = "the body must be of type application/json".to_owned();
            return Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        None
    }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Refuse what must not get in, and give every response the headers that keep a page safe.
pub async fn pass(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let mut response = match guard.refusal(&request) {
        None => next.run(request).await,
        Some((status, why)) => {
            let body = format!("{{\"error\":\"{why}\"}}");
            (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
    };
    protect(response.headers_mut());
    response
}

/// Add the headers that keep a page safe. They forbid everything that the page does not need, so
/// that a hostile name of a lock stays a text.
pub fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

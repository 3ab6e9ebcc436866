//! Authenticates each request and checks its host, before any route sees it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use data_encoding::BASE64;
use doorway_sessions::principal::Principal;

use super::Connection;
use super::api::Api;
use super::page;
use super::problem::{Kind, Problem};
use crate::listen::Doors;
use crate::members::audit::Operator;
use crate::settings::Settings;

/// The client that sent a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) principal: Arc<Principal>,
    /// Whether it may be on another machine: it came over TCP.
    pub(crate) remote: bool,
    /// Its address, if it came over TCP.
    from: Option<IpAddr>,
}

impl Caller {
    /// The client, as one who does something that is noted.
    pub(crate) fn operator(&self) -> Operator {
        Operator { principal: Arc::clone(&self.principal), from: self.from }
    }
}

/// Decides which requests are let in.
pub(crate) struct Gate {
    doors: Doors,
    /// The names of this host, in lower case.
    hosts: Vec<String>,
    /// Whether the files of the page are served.
    page: bool,
}

impl Gate {
    pub(crate) fn new(settings: &Settings, doors: &Doors) -> Self {
        let node = &settings.node;
        let own = ["localhost".to_owned(), crate::certificate::node_name(&node.me, &node.group)];
        let configured = settings.hosts.iter().map(|host| host.to_ascii_lowercase());
        let hosts = own.into_iter().chain(configured).collect();
        Self { doors: doors.clone(), hosts, page: settings.page }
    }

    fn caller(&self, end: &Connection, headers: &HeaderMap) -> Result<Caller, Problem> {
        if !end.remote {
            let principal = end.principal.clone().ok_or_else(|| {
                Problem::new(Kind::Forbidden, "this node serves only the user who runs it")
            })?;
            return Ok(Caller { principal: Arc::new(principal), remote: false, from: None });
        }
        self.check_host(headers)?;
        let principal = match headers.get(AUTHORIZATION) {
            Some(shown) => shown.to_str().ok().and_then(|shown| self.by_authorization(shown)),
            None => end.principal.clone(),
        };
        let principal = principal.ok_or_else(|| {
            let text = "show a token that this node knows (`authorization: Bearer TOKEN`, or Basic \
                        with the name of the client as the user and the token as the password), \
                        or a client certificate";
            Problem::new(Kind::Unauthorized, text)
        })?;
        let principal = Arc::new(principal);
        end.connected.belongs(&principal)?;
        // The settings may have been reloaded since the connection was made.
        let principal = end.connected.principal().unwrap_or(principal);
        Ok(Caller { principal, remote: true, from: end.from })
    }

    /// The client that shows a token in this header.
    fn by_authorization(&self, shown: &str) -> Option<Principal> {
        if let Some(token) = bearer(shown) {
            return self.doors.by_token(token);
        }
        let (user, token) = basic(shown)?;
        // A token under another name is a mistake in the configuration of the client.
        let named = |it: &Principal| it.name.strip_prefix("client ") == Some(user.as_str());
        self.doors.by_token(&token).filter(named)
    }

    /// Check that the request is for a name of this host. A page of another site can make its own
    /// name point to this address (DNS rebinding), but the browser then sends that name as the
    /// host.
    fn check_host(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Problem::invalid("the request needs one `host` header"));
        };
        let host = host.to_str().map(name_of).unwrap_or_default();
        let known = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
            || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        if known {
            return Ok(());
        }
        let text = format!(
            "this node is not called `{host}`: ask for its address, or add the name to `hosts` \
             under [http] in its settings"
        );
        Err(Problem::new(Kind::Forbidden, text))
    }
}

/// Let a request in, with its client as an extension.
pub(crate) async fn pass(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let end = request.extensions().get::<Arc<Connection>>().cloned();
    let caller = match &end {
        Some(end) => api.gate.caller(end, request.headers()),
        None => Err(Problem::new(Kind::Unauthorized, "the connection is not known")),
    };
    let response = match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            return next.run(request).await;
        }
        // A probe of a load balancer has no identity; it learns only whether the node serves.
        Err(problem) if is_probe(&request, &problem) => next.run(request).await,
        // The files of the page have no secrets.
        Err(problem) if api.gate.page && is_page(&request, &problem) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    // Otherwise a client without identity could occupy a connection for as long as it likes.
    if let Some(end) = end.filter(|end| end.remote) {
        end.connected.outbox.close();
    }
    response
}

/// Whether a request without any identity only asks whether the node serves. A wrong token is still
/// refused.
fn is_probe(request: &Request, problem: &Problem) -> bool {
    request.uri().path() == "/health"
        && problem.status() == StatusCode::UNAUTHORIZED
        && !request.headers().contains_key(AUTHORIZATION)
}

/// Whether a request without any identity asks for a file of the page.
fn is_page(request: &Request, problem: &Problem) -> bool {
    page::is_file(request)
        && problem.status() == StatusCode::UNAUTHORIZED
        && !request.headers().contains_key(AUTHORIZATION)
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    let end = match host.rfind(']') {
        Some(end) => end + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    host[..end].trim_end_matches('.')
}

fn bearer(shown: &str) -> Option<&str> {
    let (scheme, token) = shown.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The user and the password of Basic authentication.
fn basic(shown: &str) -> Option<(String, String)> {
    let (scheme, both) = shown.split_once(' ')?;
    let both = scheme.eq_ignore_ascii_case("basic").then(|| both.trim().as_bytes())?;
    let both = String::from_utf8(BASE64.decode(both).ok()?).ok()?;
    let (user, password) = both.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_taken_out_of_its_header() {
        for (host, name) in [
            ("lock.example:7300", "lock.example"),
            ("lock.example.", "lock.example"),
            ("[::1]:80", "[::1]"),
            ("[::1]", "[::1]"),
            ("127.0.0.1:1", "127.0.0.1"),
            ("", ""),
        ] {
            assert_eq!(name_of(host), name);
        }
    }

    #[test]
    fn a_token_is_taken_out_of_its_header() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc "), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("Bearer"), None);
        let both = |user: &str, token: &str| Some((user.to_owned(), token.to_owned()));
        assert_eq!(basic("Basic Y2k6YWJj"), both("ci", "abc"));
        assert_eq!(basic("basic  Y2k6YTpi "), both("ci", "a:b"));
        for wrong in ["Bearer Y2k6YWJj", "Basic", "Basic Y2k", "Basic Y2lhYmM=", "Basic /zph"] {
            assert_eq!(basic(wrong), None, "{wrong}");
        }
    }
}

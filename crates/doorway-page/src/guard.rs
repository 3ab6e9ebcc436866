//! Which requests are let in.
//!
//! The page is served on loopback, which every user of the machine and every page in the browser
//! can reach. So every request must name a loopback host, must not come from another site, and must
//! carry the token if it is for the interface. The token comes in the fragment of the address,
//! which no server ever sees.
//!
//! Every user of the machine can read the arguments of a program. So the address with which the
//! command starts a browser has a ticket instead of the token. The page exchanges the ticket for
//! the token. A ticket can be used once, and only by a process of the user of the command. A page
//! that has the token gets a new ticket for each place that it opens in another tab.

use std::collections::VecDeque;
use std::fmt;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use subtle::ConstantTimeEq as _;

/// The header that carries the token.
pub const TOKEN: &str = "x-doorway-token";

/// The header that carries the ticket.
pub const TICKET: &str = "x-doorway-ticket";

/// The call that exchanges a ticket for the token.
const EXCHANGE: &str = "/api/token";

/// The call that makes a new ticket.
const NEW_TICKET: &str = "/api/ticket";

/// How many tickets are good at a time. An older one is forgotten.
const TICKETS: usize = 4;

/// What a page may load and who may frame it: only itself, and nobody.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// 128 random bits as text, known to the page and to nobody else.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new token.
    pub fn random() -> io::Result<Self> {
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

/// A port of loopback from which a connection comes.
#[derive(Clone, Copy, Debug)]
pub struct ClientPort(pub u16);

/// A refusal: its status, and why.
type Refusal = (StatusCode, String);

/// What the guard knows: the token, the tickets, and the port of the server.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The token that requests for the interface must carry.
    pub token: Token,
    /// The port that the `Host` header must name.
    pub port: u16,
    /// The tickets that are not used yet, the oldest first.
    tickets: Arc<Mutex<VecDeque<Token>>>,
}

impl Guard {
    /// A guard without tickets.
    pub fn new(token: Token, port: u16) -> Self {
        Self { token, port, tickets: Arc::default() }
    }

    /// A new ticket.
    pub fn ticket(&self) -> io::Result<Token> {
        let ticket = Token::random()?;
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.push_back(ticket.clone());
        if tickets.len() > TICKETS {
            tickets.pop_front();
        }
        Ok(ticket)
    }

    /// Answer a call for a new ticket, which has the token.
    fn give_ticket(&self, request: &Request) -> Result<Response, Refusal> {
        if request.method() != Method::POST {
            return Err((
                StatusCode::METHOD_NOT_ALLOWED,
                "a ticket is asked for by POST".to_owned(),
            ));
        }
        let unavailable = |error: io::Error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string());
        let ticket = self.ticket().map_err(unavailable)?;
        Ok(json(&format!("{{\"ticket\":\"{}\"}}", ticket.text())))
    }

    /// Refuse a request for another host, and one from another site.
    fn check_origin(&self, request: &Request) -> Result<(), Refusal> {
        let text = |name| header_text(request.headers(), name);
        let host = text(header::HOST.as_str()).unwrap_or_default();
        let port = self.port;
        let hosts = ["127.0.0.1", "[::1]", "localhost"].map(|name| format!("{name}:{port}"));
        if !hosts.iter().any(|known| known == host) {
            let why = format!("this server answers to 127.0.0.1:{port} alone");
            return Err((StatusCode::MISDIRECTED_REQUEST, why));
        }
        let site = text("sec-fetch-site").unwrap_or("none");
        if !["none", "same-origin"].contains(&site) {
            return Err((StatusCode::FORBIDDEN, "the request comes from another site".to_owned()));
        }
        Ok(())
    }

    /// Refuse a request for the interface without the token, and a body of another type than JSON.
    fn check_token(&self, request: &Request) -> Result<(), Refusal> {
        let headers = request.headers();
        let text = |name| header_text(headers, name);
        let path = request.uri().path();
        if !path.starts_with("/api/") && !path.starts_with("/v1/") {
            return Ok(());
        }
        // The live page shows its token as it shows that of a node.
        let bearer = || text(header::AUTHORIZATION.as_str())?.strip_prefix("Bearer ");
        let given = headers.get(TOKEN).map(HeaderValue::as_bytes);
        let given = given.or_else(|| Some(bearer()?.as_bytes())).unwrap_or_default();
        if !self.token.is(given) {
            let why = "the token is missing or wrong: open the address that the command printed";
            return Err((StatusCode::UNAUTHORIZED, why.to_owned()));
        }
        let json = text(header::CONTENT_TYPE.as_str()).is_some_and(|it| it == "application/json");
        if request.method() == Method::POST && !json {
            let why = "the body must be of type application/json".to_owned();
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
        }
        Ok(())
    }

    /// Exchange the ticket for the token.
    fn exchange(&self, request: &Request) -> Result<Response, Refusal> {
        let refused = |why: &str| {
            let text = format!("{why}: open the address that the command printed");
            Err((StatusCode::UNAUTHORIZED, text))
        };
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "a ticket is posted".to_owned()));
        }
        let given = request.headers().get(TICKET).map(HeaderValue::as_bytes).unwrap_or_default();
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = tickets.iter().position(|ticket| ticket.is(given)) else {
            return refused("the ticket is wrong, or it was used before");
        };
        let ClientPort(from) = *request.extensions().get().unwrap_or(&ClientPort(0));
        let user = rustix::process::geteuid().as_raw();
        if !TABLES.iter().any(|table| {
            let table = fs::read_to_string(table).unwrap_or_default();
            user_of(&table, from, self.port) == Some(user)
        }) {
            return refused("the browser does not run as the user of the command");
        }
        tickets.remove(place);
        Ok(json(&format!("{{\"token\":\"{}\"}}", self.token.text())))
    }
}

fn json(body: &str) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.to_owned()).into_response()
}

/// Where the kernel lists the connections of this machine.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The user whose process has made the connection between two ports of loopback, if the table of
/// the kernel lists it.
fn user_of(table: &str, from: u16, to: u16) -> Option<u32> {
    // A socket for IPv6 has the same four bytes at the end of its address.
    let loopback = u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets());
    let [from, to] = [from, to].map(|port| format!("{loopback:08X}:{port:04X}"));
    table.lines().find_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let ours = columns.next()?.ends_with(&from) && columns.next()?.ends_with(&to);
        columns.nth(4).filter(|_| ours)?.parse().ok()
    })
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Refuse what must not get in, and give every response the headers that keep a page safe.
pub async fn pass(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let checked = guard.check_origin(&request).and_then(|()| match request.uri().path() {
        EXCHANGE => guard.exchange(&request).map(Some),
        path => {
            guard.check_token(&request)?;
            (path == NEW_TICKET).then(|| guard.give_ticket(&request)).transpose()
        }
    });
    let mut response = match checked {
        Ok(Some(answer)) => answer,
        Ok(None) => next.run(request).await,
        Err((status, why)) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_a_connection_is_found() {
        let row = |from: &str, to: &str, user: u32| {
            let state = "01 00000000:00000000 00:00000000 00000000";
            format!("   1: {from} {to} {state} {user:5} 0 4711\n")
        };
        let (browser, server) = ("0100007F:9C40", "0100007F:0050");
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when uid\n";
        let table = [head, &row(server, browser, 0), &row(browser, server, 1000)].concat();
        let table = table.as_str();
        if cfg!(target_endian = "little") {
            assert_eq!(user_of(table, 40_000, 80), Some(1000), "the end of the client counts");
            assert_eq!(user_of(table, 40_001, 80), None);
            assert_eq!(user_of(&table.replace("0100007F", "0200007F"), 40_000, 80), None);
        }
    }
}

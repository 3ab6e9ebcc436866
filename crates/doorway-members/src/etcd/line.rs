//! Connections to etcd, and requests on them.
//!
//! Each task has a line of its own, which is one connection at a time. All lines go to one server,
//! until it fails one of them; then all go to the next.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorway_node::members::BoxedStream;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::address::EtcdAddress;
use super::wire::{self, Token};

/// The longest answer, in bytes. All holds and the whole audit log, with the longest names and
/// texts, are less than half of it.
const LIMIT: usize = 12 << 20;

/// What all lines to etcd have in common.
pub(super) struct Access {
    pub(super) addresses: Vec<EtcdAddress>,
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// The name and the password of a user of etcd.
    pub(super) login: Option<(String, String)>,
    /// The server in use: the remainder by the number of addresses. Grows when a server fails.
    server: AtomicUsize,
    token: Mutex<Option<HeaderValue>>,
}

/// A connection to etcd, which is made when it is needed.
pub(super) struct Line {
    access: Arc<Access>,
    open: Option<(usize, SendRequest<String>)>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub(super) struct CallError {
    /// etcd has surely not seen the request.
    pub(super) not_sent: bool,
    pub(super) why: String,
}

impl Access {
    pub(super) fn new(
        addresses: Vec<EtcdAddress>,
        tls: Option<Arc<ClientConfig>>,
        login: Option<(String, String)>,
    ) -> Self {
        Self { addresses, tls, login, server: AtomicUsize::new(0), token: Mutex::default() }
    }

    fn current_server(&self) -> usize {
        self.server.load(Ordering::Relaxed)
    }

    fn address(&self, server: usize) -> &EtcdAddress {
        &self.addresses[server % self.addresses.len()]
    }

    /// This server has failed: use the next one.
    fn give_up(&self, server: usize) {
        let next = server.wrapping_add(1);
        // Another line may have given it up already.
        let _ = self.server.compare_exchange(server, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Line {
    pub(super) fn new(access: &Arc<Access>) -> Self {
        Self { access: Arc::clone(access), open: None }
    }

    /// Send a request, and wait for its answer no longer than this. If a server cannot be reached,
    /// the next one is tried.
    pub(super) async fn call<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<T, CallError> {
        let deadline = Instant::now() + limit;
        let mut others = self.access.addresses.len() - 1;
        loop {
            let told = self.exchange(path, body, deadline, async |response, deadline| {
                let body = read_all(response.into_body(), deadline).await?;
                wire::parse(&body)
            });
            match told.await {
                Err(error) if error.not_sent && others > 0 => others -= 1,
                told => return told,
            }
        }
    }

    /// Send a request whose answer has no end, and wait for its beginning no longer than this.
    pub(super) async fn stream(
        &mut self,
        path: &str,
        body: &Value,
        limit: Duration,
    ) -> Result<Lines, CallError> {
        self.exchange(path, body, Instant::now() + limit, async |response, _| {
            Ok(Lines { body: response.into_body(), bytes: Vec::new(), searched: 0 })
        })
        .await
    }

    async fn exchange<T>(
        &mut self,
        path: &str,
        body: &Value,
        deadline: Instant,
        read: impl AsyncFnOnce(Response<Incoming>, Instant) -> Result<T, String>,
    ) -> Result<T, CallError> {
        let server = self.access.current_server();
        let address = self.access.address(server).to_string();
        // If this server hangs, there is time for another one.
        let left = deadline.saturating_duration_since(Instant::now());
        let share = if self.access.addresses.len() > 1 { 2 } else { 1 };
        let told = match self.connect(server, Instant::now() + left / share).await {
            Ok(()) => {
                self.send(server, path, body, deadline, read).await.map_err(|why| (false, why))
            }
            Err(why) => Err((true, why)),
        };
        told.map_err(|(not_sent, why)| {
            self.open = None;
            self.access.give_up(server);
            CallError { not_sent, why: format!("{address}: {why}") }
        })
    }

    async fn send<T>(
        &mut self,
        server: usize,
        path: &str,
        body: &Value,
        deadline: Instant,
        read: impl AsyncFnOnce(Response<Incoming>, Instant) -> Result<T, String>,
    ) -> Result<T, String> {
        let response = self.request(server, path, body, deadline).await?;
        let status = response.status().as_u16();
        if status == 200 {
            return read(response, deadline).await;
        }
        let body = read_all(response.into_body(), deadline).await?;
        if status == 401 || status == 403 {
            *self.access.token.lock() = None;
        }
        Err(wire::failure(status, &body))
    }

    async fn request(
        &mut self,
        server: usize,
        path: &str,
        body: &Value,
        deadline: Instant,
    ) -> Result<Response<Incoming>, String> {
        let Some((_, sender)) = &mut self.open else { return Err("not connected".to_owned()) };
        let mut request = Request::post(path)
            .header(HOST, self.access.address(server).authority())
            .header(CONTENT_TYPE, "application/json");
        if let Some(token) = &*self.access.token.lock() {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(body.to_string()).map_err(|error| error.to_string())?;
        match timeout_at(deadline, sender.send_request(request)).await {
            Ok(response) => response.map_err(|error| plain(&error)),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }

    /// Be connected with this server, and logged in.
    async fn connect(&mut self, server: usize, deadline: Instant) -> Result<(), String> {
        match &mut self.open {
            Some((at, sender)) if *at == server && !sender.is_closed() => {
                if let Ok(Ok(())) = timeout_at(deadline, sender.ready()).await {
                    return self.log_in(server, deadline).await;
                }
            }
            _ => {}
        }
        self.open = None;
        let dialled = timeout_at(deadline, dial(&self.access, server)).await;
        let sender = dialled.map_err(|_| "no connection in time".to_owned())??;
        self.open = Some((server, sender));
        self.log_in(server, deadline).await
    }

    /// Get a token, if one is needed and there is none.
    async fn log_in(&mut self, server: usize, deadline: Instant) -> Result<(), String> {
        let Some((user, password)) = self.access.login.clone() else { return Ok(()) };
        if self.access.token.lock().is_some() {
            return Ok(());
        }
        let body = wire::login(&user, &password);
        let response = self.request(server, "/v3/auth/authenticate", &body, deadline).await?;
        let status = response.status().as_u16();
        let body = read_all(response.into_body(), deadline).await?;
        if status != 200 {
            return Err(format!("user `{user}`: {}", wire::failure(status, &body)));
        }
        let Token { token } = wire::parse(&body)?;
        let mut token = HeaderValue::try_from(token).map_err(|_| "a token that is not a header")?;
        token.set_sensitive(true);
        *self.access.token.lock() = Some(token);
        let Some((_, sender)) = &mut self.open else { return Ok(()) };
        let ready = timeout_at(deadline, sender.ready()).await;
        ready.map_err(|_| "no answer in time".to_owned())?.map_err(|error| plain(&error))
    }
}

async fn dial(access: &Access, server: usize) -> Result<SendRequest<String>, String> {
    let address = access.address(server);
    let connected = TcpStream::connect((address.host.as_str(), address.port)).await;
    let stream = connected.map_err(|error| error.to_string())?;
    let _ = stream.set_nodelay(true);
    if !address.is_https {
        return begin(Box::new(stream)).await;
    }
    let Some(tls) = &access.tls else { return Err("no certificates for https".to_owned()) };
    let name = ServerName::try_from(address.host.clone()).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::clone(tls));
    let stream = connector.connect(name, stream).await.map_err(|error| format!("TLS: {error}"))?;
    begin(Box::new(stream)).await
}

async fn begin(stream: BoxedStream) -> Result<SendRequest<String>, String> {
    let (sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(|error| plain(&error))?;
    // The task ends with the connection, which ends when the line is dropped.
    tokio::spawn(async {
        if let Err(error) = connection.await {
            tracing::debug!("a connection to etcd has ended: {}", plain(&error));
        }
    });
    Ok(sender)
}

/// What an error of hyper means, with its cause.
fn plain(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

async fn read_all(mut body: Incoming, deadline: Instant) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    loop {
        let part = timeout_at(deadline, next_part(&mut body)).await;
        match part.map_err(|_| "the answer does not end in time".to_owned())?? {
            Some(part) if bytes.len() + part.len() > LIMIT => {
                return Err(format!("an answer of more than {LIMIT} bytes; check the address"));
            }
            Some(part) => bytes.extend_from_slice(&part),
            None => return Ok(bytes),
        }
    }
}

/// The next bytes of an answer; none at its end.
async fn next_part(body: &mut Incoming) -> Result<Option<Bytes>, String> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
            Some(Err(error)) => return Err(plain(&error)),
        }
    }
}

/// The lines of an answer that has no end.
pub(super) struct Lines {
    body: Incoming,
    bytes: Vec<u8>,
    /// How many of the bytes have no end of a line among them.
    searched: usize,
}

impl Lines {
    /// The next line. The error says why there is none.
    pub(super) async fn next(&mut self) -> Result<Vec<u8>, String> {
        loop {
            let news = &self.bytes[self.searched..];
            if let Some(place) = news.iter().position(|byte| *byte == b'\n') {
                let rest = self.bytes.split_off(self.searched + place + 1);
                self.searched = 0;
                return Ok(std::mem::replace(&mut self.bytes, rest));
            }
            self.searched = self.bytes.len();
            match next_part(&mut self.body).await? {
                Some(part) if self.bytes.len() + part.len() > LIMIT => {
                    return Err(format!("a line of more than {LIMIT} bytes; check the address"));
                }
                Some(part) => self.bytes.extend_from_slice(&part),
                None => return Err("the watch has ended".to_owned()),
            }
        }
    }
}

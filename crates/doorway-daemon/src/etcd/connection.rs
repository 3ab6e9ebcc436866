//! One connection of an etcd client.
//!
//! A connection that begins as HTTP/2 has calls of gRPC, and any other one requests of the JSON
//! gateway. A client proves who it is by its certificate, or with each call by the token that it
//! got from `Authenticate`; this token is the password itself.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use doorway_sessions::principal::Principal;
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::calls::Calls;
use super::grpc::{Answer, Messages, QUEUE, failed, framed, json, stream, unary};
use super::home::Client;
use super::messages::{
    AuthenticateRequest, AuthenticateResponse, HealthCheckRequest, HealthCheckResponse,
    LeaderRequest, LeaseKeepAliveRequest, ServingStatus,
};
use super::reflection::{self, ServerReflectionRequest};
use super::status::{Code, Status};
use super::wire::{EnumField, Message};
use super::{EtcdContext, gateway};
use crate::http::{self, Problem};
use crate::listen::BufferedStream;
use crate::log_limit::LogLimit;
use crate::native::HELLO;
use crate::service::{OpenConnection, Peer};

/// What a connection of HTTP/2 begins with.
pub(crate) const PREFACE: &[u8] = b"PRI ";

/// How many calls of one connection may run at a time.
const CALLS: u32 = 1000;

/// How many keys one connection may watch at a time.
const WATCHES: usize = 1024;

/// How many heartbeats of one stream may wait for their answers.
const BEATS: usize = 256;

/// How many bytes the headers of a call may have.
const HEADERS: u32 = 16 << 10;

/// How many bytes of one call, and of one connection, may wait to be read.
const CALL_WINDOW: u32 = 64 << 10;
const WINDOW: u32 = 1 << 20;

/// How often an idle connection is probed, and how long the client may take to answer.
const PROBE: Duration = Duration::from_secs(30);
const PROBE_ANSWER: Duration = Duration::from_secs(20);

/// How long a connection may go on writing responses when the service stops.
const LAST_WORDS: Duration = Duration::from_millis(400);

/// How long a client of the gateway may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(30);

static TROUBLE: LogLimit = LogLimit::new();

/// A connection, and the client that it belongs to as far as the connection proves it.
pub(super) struct Connection {
    pub(super) shared: Arc<EtcdContext>,
    principal: Option<Arc<Principal>>,
    remote: bool,
    connected: OpenConnection,
    watches: Arc<Semaphore>,
}

/// Serve a connection.
pub(super) async fn serve(shared: Arc<EtcdContext>, mut stream: BufferedStream, peer: Peer) {
    let connected = match stream.entry() {
        Some(Ok(connected)) => connected,
        // There is no way to tell a client of HTTP/2 why its connection is refused before its call.
        Some(Err(turned)) => return http::refuse(stream, turned.refusal.clone().into()).await,
        None => return,
    };
    let Peer { principal, remote, from: _, process, passed } = peer;
    drop((process, passed)); // They are not needed here, and hold descriptors.
    if !remote && principal.is_none() {
        let text = "this node serves only the user who runs it";
        return http::refuse(stream, Problem::invalid(text)).await;
    }
    let principal = principal.map(Arc::new);
    if let Some(principal) = &principal
        && let Err(refusal) = connected.belongs(principal)
    {
        return http::refuse(stream, refusal.into()).await;
    }
    let outbox = Arc::clone(&connected.outbox);
    let watches = Arc::new(Semaphore::new(WATCHES));
    let connection = Arc::new(Connection { shared, principal, remote, connected, watches });
    let known = Arc::clone(&connection);
    let unknown = async move {
        sleep(HELLO).await;
        if known.connected.principal().is_some() {
            std::future::pending::<()>().await;
        }
    };
    let end = async {
        tokio::select! {
            () = outbox.closed() => {}
            // A client that has not proved who it is may not occupy a connection.
            () = unknown => {}
        }
    };
    let ended = if stream.begins_with(PREFACE) {
        serve_http2(connection, stream, end).await
    } else {
        serve_http1(connection, stream, end).await
    };
    if let Err(error) = ended {
        TROUBLE.then(|| tracing::debug!("a connection of an etcd client ended: {error}"));
    }
}

async fn serve_http2(
    connection: Arc<Connection>,
    stream: BufferedStream,
    end: impl Future<Output = ()>,
) -> hyper::Result<()> {
    let requests = service_fn(move |request| answered(Arc::clone(&connection), request));
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(CALLS)
        .max_header_list_size(HEADERS)
        .initial_stream_window_size(CALL_WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(CALL_WINDOW as usize)
        .keep_alive_interval(PROBE)
        .keep_alive_timeout(PROBE_ANSWER);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), requests));
    tokio::select! {
        ended = &mut serving => ended,
        () = end => {
            serving.as_mut().graceful_shutdown();
            // Some calls never end, and some clients do not read.
            timeout(LAST_WORDS, serving).await.unwrap_or(Ok(()))
        }
    }
}

async fn serve_http1(
    connection: Arc<Connection>,
    stream: BufferedStream,
    end: impl Future<Output = ()>,
) -> hyper::Result<()> {
    let requests = service_fn(move |request| answered(Arc::clone(&connection), request));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), requests));
    tokio::select! {
        ended = &mut serving => ended,
        () = end => {
            serving.as_mut().graceful_shutdown();
            timeout(LAST_WORDS, serving).await.unwrap_or(Ok(()))
        }
    }
}

async fn answered(
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response<Answer>, Infallible> {
    Ok(connection.answer(request).await)
}

impl Connection {
    async fn answer(&self, request: Request<Incoming>) -> Response<Answer> {
        let kind = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
            return gateway::answer(self, request).await;
        }
        if request.method() != Method::POST {
            let mut response = json(StatusCode::METHOD_NOT_ALLOWED.as_u16(), Vec::new());
            response.headers_mut().clear();
            return response;
        }
        let (head, body) = request.into_parts();
        let (path, messages) = (head.uri.path(), Messages::new(body));
        match path {
            // A probe of a load balancer has no identity; it learns only whether the node serves.
            "/grpc.health.v1.Health/Check" => {
                return unary(self.health(messages).await);
            }
            "/etcdserverpb.Auth/Authenticate" => {
                return unary(self.authenticate(messages).await);
            }
            _ => {}
        }
        let calls = match self.calls(&head.headers) {
            Ok(calls) => calls,
            Err(status) => return failed(status),
        };
        call(calls, path, messages).await
    }

    /// The calls of the client that sends these headers.
    pub(super) fn calls(&self, headers: &HeaderMap) -> Result<Calls, Status> {
        let principal = self.identify(headers)?;
        let client = Client { principal, remote: self.remote };
        let routes = Arc::clone(&self.shared.routes);
        let (identity, watches) = (self.shared.identity, Arc::clone(&self.watches));
        Ok(Calls { routes, client, identity, watches })
    }

    fn identify(&self, headers: &HeaderMap) -> Result<Arc<Principal>, Status> {
        let token = headers.get("token").or_else(|| headers.get(AUTHORIZATION));
        let principal = match token.filter(|_| self.remote) {
            Some(token) => {
                let token = token.to_str().unwrap_or_default();
                let token = token.strip_prefix("Bearer ").unwrap_or(token);
                let principal = self.shared.doors.by_token(token).map(Arc::new);
                principal.ok_or_else(|| {
                    // Tokens cannot be tried at leisure.
                    self.connected.outbox.close();
                    Status::new(Code::Unauthenticated, "etcdserver: invalid auth token")
                })?
            }
            None => self.principal.clone().ok_or_else(|| {
                let text = "etcdserver: user name is empty: log in with the name and the token of \
                            a [[client]] (etcdctl --user NAME:TOKEN), or show a client certificate";
                Status::new(Code::Unauthenticated, text)
            })?,
        };
        self.connected.belongs(&principal)?;
        // The settings may have been reloaded since the connection was made.
        let known = self.connected.principal().filter(|known| known.name == principal.name);
        Ok(known.unwrap_or(principal))
    }

    async fn authenticate(&self, messages: Messages) -> Result<AuthenticateResponse, Status> {
        let request = AuthenticateRequest::decode(&messages.one().await?)?;
        self.log_in(&request)
    }

    /// Log in by the name and the token of a client. The token is the proof for the calls that
    /// follow.
    pub(super) fn log_in(
        &self,
        request: &AuthenticateRequest,
    ) -> Result<AuthenticateResponse, Status> {
        let AuthenticateRequest { name, password } = request;
        if self.remote {
            let known = self.shared.doors.by_token(password);
            let named = |it: &Principal| it.name.strip_prefix("client ") == Some(name.as_str());
            let Some(principal) = known.filter(named) else {
                self.connected.outbox.close();
                let text = "etcdserver: authentication failed, invalid user ID or password";
                return Err(Status::invalid(text));
            };
            self.connected.belongs(&Arc::new(principal))?;
        }
        Ok(AuthenticateResponse { header: None, token: password.clone() })
    }

    async fn health(&self, messages: Messages) -> Result<HealthCheckResponse, Status> {
        let _ = HealthCheckRequest::decode(&messages.one().await?)?;
        let service = self.shared.routes.service();
        service.try_disk().await;
        let serving = service.serving().is_ok();
        let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        Ok(HealthCheckResponse { status: EnumField(status) })
    }
}

/// Carry out a call with one message.
async fn one<M: Message, A: Message>(
    messages: Messages,
    answer: impl AsyncFnOnce(M) -> Result<A, Status>,
) -> Response<Answer> {
    let request = match messages.one().await {
        Ok(bytes) => M::decode(&bytes).map_err(Status::from),
        Err(status) => Err(status),
    };
    unary(match request {
        Ok(request) => answer(request).await,
        Err(status) => Err(status),
    })
}

async fn call(calls: Calls, path: &str, messages: Messages) -> Response<Answer> {
    match path {
        "/etcdserverpb.KV/Range" => one(messages, async |it| calls.range(it).await).await,
        "/etcdserverpb.KV/Put" => one(messages, async |it| calls.put(it).await).await,
        "/etcdserverpb.KV/DeleteRange" => {
            one(messages, async |it| calls.delete_range(it).await).await
        }
        "/etcdserverpb.KV/Txn" => one(messages, async |it| calls.txn(it).await).await,
        "/etcdserverpb.Lease/LeaseGrant" => {
            one(messages, async |it| calls.lease_grant(it).await).await
        }
        "/etcdserverpb.Lease/LeaseRevoke" => {
            one(messages, async |it| calls.lease_revoke(it).await).await
        }
        "/etcdserverpb.Lease/LeaseTimeToLive" => {
            one(messages, async |it| calls.lease_time_to_live(it).await).await
        }
        "/etcdserverpb.Lease/LeaseKeepAlive" => keep_alive(calls, messages),
        "/etcdserverpb.Watch/Watch" => {
            let (work, answers) = calls.watch(messages);
            stream(work, answers)
        }
        "/v3lockpb.Lock/Lock" => one(messages, async |it| calls.lock(it).await).await,
        "/v3lockpb.Lock/Unlock" => one(messages, async |it| calls.unlock(it).await).await,
        "/v3electionpb.Election/Campaign" => {
            one(messages, async |it| calls.campaign(it).await).await
        }
        "/v3electionpb.Election/Proclaim" => {
            one(messages, async |it| calls.proclaim(it).await).await
        }
        "/v3electionpb.Election/Leader" => one(messages, async |it| calls.leader(it).await).await,
        "/v3electionpb.Election/Resign" => one(messages, async |it| calls.resign(it).await).await,
        "/v3electionpb.Election/Observe" => {
            let request = match messages.one().await {
                Ok(bytes) => LeaderRequest::decode(&bytes).map_err(Status::from),
                Err(status) => Err(status),
            };
            match request {
                Ok(request) => {
                    let (work, answers) = calls.observe(request);
                    stream(work, answers)
                }
                Err(status) => failed(status),
            }
        }
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
        | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => reflect(messages),
        other => failed(Status::unimplemented(format!(
            "{other} is not served: Doorway serves the locks and elections of etcd, and no other \
             data; docs/etcd.md lists the calls"
        ))),
    }
}

/// Answer questions about the calls.
fn reflect(mut messages: Messages) -> Response<Answer> {
    // A description has many times the bytes of its question, and a client may never read it. So
    // the next question waits until the answer before it has been read.
    let (send, answers) = mpsc::channel(1);
    let work = Box::pin(async move {
        while let Some(bytes) = messages.next().await? {
            let response = reflection::answer(ServerReflectionRequest::decode(&bytes)?);
            // If the client has gone, so has this work.
            let _ = send.send(framed(&response)).await;
        }
        Ok(())
    });
    stream(work, answers)
}

/// Answer the heartbeats of leases. One whose node is away does not hold up the others: it gets no
/// answer, so that its client knows when its time is over.
fn keep_alive(calls: Calls, mut messages: Messages) -> Response<Answer> {
    let (send, answers) = mpsc::channel(QUEUE);
    let work = Box::pin(async move {
        let mut beats = JoinSet::new();
        let mut open = true;
        while open || !beats.is_empty() {
            tokio::select! {
                message = messages.next(), if open && beats.len() < BEATS => match message? {
                    Some(bytes) => {
                        let request = LeaseKeepAliveRequest::decode(&bytes)?;
                        let calls = calls.clone();
                        beats.spawn(async move { calls.lease_keep_alive(request).await });
                    }
                    None => open = false,
                },
                Some(beat) = beats.join_next() => match beat {
                    Ok(Ok(response)) => {
                        // If the client has gone, so has this work.
                        let _ = send.send(framed(&response)).await;
                    }
                    Ok(Err(status)) if status.code != Code::Unavailable => return Err(status),
                    _ => {}
                },
            }
        }
        Ok(())
    });
    stream(work, answers)
}

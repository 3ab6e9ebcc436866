//! A client of gRPC of a few lines, which shows exactly what the service sends.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::Request;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::common::PATIENCE;
use crate::server::{self, Server};

/// A field of a message: its number, and a number or bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Int(u32, i64),
    Bytes(u32, Vec<u8>),
}

pub(crate) fn int(number: u32, value: i64) -> Field {
    Field::Int(number, value)
}

pub(crate) fn bytes(number: u32, value: impl AsRef<[u8]>) -> Field {
    Field::Bytes(number, value.as_ref().to_vec())
}

/// A message inside a message.
pub(crate) fn inside(number: u32, fields: &[Field]) -> Field {
    Field::Bytes(number, message(fields))
}

pub(crate) fn message(fields: &[Field]) -> Vec<u8> {
    let mut all = Vec::new();
    for field in fields {
        match field {
            Field::Int(number, value) => {
                varint(u64::from(*number) << 3, &mut all);
                varint(value.cast_unsigned(), &mut all);
            }
            Field::Bytes(number, value) => {
                varint(u64::from(*number) << 3 | 2, &mut all);
                varint(value.len() as u64, &mut all);
                all.extend(value);
            }
        }
    }
    all
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 127 {
        out.push((number & 127) as u8 | 128);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The fields of a message.
pub(crate) fn fields(mut bytes: &[u8]) -> Vec<Field> {
    fn number(bytes: &mut &[u8]) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().expect("a number");
            *bytes = rest;
            number |= u64::from(first & 127) << shift;
            shift += 7;
            if first & 128 == 0 {
                return number;
            }
        }
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        let field = (key >> 3) as u32;
        if key.trailing_zeros() >= 3 {
            all.push(Field::Int(field, number(&mut bytes).cast_signed()));
        } else {
            let length = number(&mut bytes) as usize;
            let (value, rest) = bytes.split_at(length);
            bytes = rest;
            all.push(Field::Bytes(field, value.to_vec()));
        }
    }
    all
}

/// A message that was received.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedMessage(pub(crate) Vec<u8>);

impl ReceivedMessage {
    /// The number in a field; 0 if it is not there.
    pub(crate) fn int(&self, number: u32) -> i64 {
        let found = fields(&self.0).into_iter().find_map(|field| match field {
            Field::Int(at, value) if at == number => Some(value),
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// The messages in a field.
    pub(crate) fn all(&self, number: u32) -> Vec<Self> {
        let found = fields(&self.0).into_iter().filter_map(|field| match field {
            Field::Bytes(at, value) if at == number => Some(Self(value)),
            _ => None,
        });
        found.collect()
    }

    /// The message in a field; an empty one if it is not there.
    pub(crate) fn at(&self, number: u32) -> Self {
        self.all(number).pop().unwrap_or_default()
    }

    pub(crate) fn text(&self, number: u32) -> String {
        String::from_utf8(self.at(number).0).expect("a text")
    }

    /// The revision of a response.
    pub(crate) fn revision(&self) -> i64 {
        self.at(1).int(3)
    }
}

/// The error of a call: its code and its sentence.
pub(crate) type Failure = (u16, String);

/// A connection.
pub(crate) struct Grpc {
    runtime: Arc<Runtime>,
    send: SendRequest<Bytes>,
}

/// A call that is under way.
pub(crate) struct Stream {
    runtime: Arc<Runtime>,
    send: SendStream<Bytes>,
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    buffer: Vec<u8>,
}

impl Grpc {
    /// A connection to the socket of a service in this process.
    pub(crate) fn of(server: &Server) -> Self {
        Self::at(&server.name)
    }

    /// A connection to this abstract socket.
    pub(crate) fn at(name: &str) -> Self {
        let stream = server::connect(name).expect("somebody listens");
        stream.set_nonblocking(true).expect("it can be set");
        let runtime = Arc::new(server::runtime());
        let stream = runtime.block_on(async { UnixStream::from_std(stream) });
        Self::over(runtime, stream.expect("a socket of tokio"))
    }

    pub(crate) fn over(
        runtime: Arc<Runtime>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        let send = runtime.block_on(async {
            let (send, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
            tokio::spawn(async move { drop(connection.await) });
            send
        });
        Self { runtime, send }
    }

    /// Begin a call.
    pub(crate) fn open(&self, path: &str, headers: &[(&str, &str)]) -> Stream {
        let runtime = Arc::clone(&self.runtime);
        let mut request = Request::post(format!("http://doorway/{path}"));
        for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")] {
            request = request.header(name, value);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        let (response, send) = runtime.block_on(async {
            let mut ready = self.send.clone().ready().await.expect("the connection lives");
            ready.send_request(request, false).expect("the request is sent")
        });
        Stream { runtime, send, response: Some(response), body: None, buffer: Vec::new() }
    }

    /// Make a call with one message.
    pub(crate) fn call(&self, path: &str, fields: &[Field]) -> Result<ReceivedMessage, Failure> {
        self.call_with(path, &[], fields)
    }

    pub(crate) fn call_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        fields: &[Field],
    ) -> Result<ReceivedMessage, Failure> {
        let mut stream = self.open(path, headers);
        stream.send(fields);
        let first = stream.next()?;
        if let Some(message) = first {
            assert!(stream.next()?.is_none(), "there is one message");
            return Ok(message);
        }
        panic!("the call has no message");
    }

    /// A lease with this time to live, in seconds.
    pub(crate) fn lease(&self, ttl: i64) -> i64 {
        let granted = self.call("etcdserverpb.Lease/LeaseGrant", &[int(1, ttl)]).expect("a lease");
        assert_eq!(granted.int(3), ttl);
        granted.int(2)
    }
}

impl Stream {
    /// Send a message.
    pub(crate) fn send(&mut self, fields: &[Field]) {
        self.send_bytes(framed(&message(fields)));
    }

    pub(crate) fn send_bytes(&mut self, bytes: Vec<u8>) {
        let _entered = self.runtime.enter();
        self.send.send_data(bytes.into(), false).expect("the stream is open");
    }

    /// Reset the stream, as a client does that does not want to wait any longer.
    pub(crate) fn reset(mut self) {
        self.send.send_reset(Reason::CANCEL);
    }

    /// The next message; none if the call has ended well.
    pub(crate) fn next(&mut self) -> Result<Option<ReceivedMessage>, Failure> {
        let runtime = Arc::clone(&self.runtime);
        let next = async { timeout(PATIENCE, self.receive()).await };
        runtime.block_on(next).expect("an answer in time")
    }

    /// Whether nothing comes within this time.
    pub(crate) fn is_silent(&mut self, time: std::time::Duration) -> bool {
        let runtime = Arc::clone(&self.runtime);
        runtime.block_on(async { timeout(time, self.receive()).await.is_err() })
    }

    async fn receive(&mut self) -> Result<Option<ReceivedMessage>, Failure> {
        let gone = |error: h2::Error| (0, format!("the stream has ended: {error}"));
        if let Some(response) = &mut self.response {
            let body = response.await.map_err(gone)?.into_body();
            (self.response, self.body) = (None, Some(body));
        }
        let body = self.body.as_mut().expect("a response");
        loop {
            if let Some(head) = self.buffer.first_chunk::<5>() {
                let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                if self.buffer.len() >= 5 + length {
                    let message = self.buffer[5..5 + length].to_vec();
                    self.buffer.drain(..5 + length);
                    return Ok(Some(ReceivedMessage(message)));
                }
            }
            match body.data().await {
                Some(data) => {
                    let data = data.map_err(gone)?;
                    let _ = body.flow_control().release_capacity(data.len());
                    self.buffer.extend(data);
                }
                None => break,
            }
        }
        let trailers = body.trailers().await.map_err(gone)?.expect("the end of a call");
        let text = |name: &str| {
            let value = trailers.get(name).map(|it| it.to_str().expect("a text").to_owned());
            value.unwrap_or_default()
        };
        match text("grpc-status").parse().expect("a status") {
            0 => Ok(None),
            code => Err((code, text("grpc-message"))),
        }
    }
}

/// A message with its length.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_be_bytes();
    [&[0][..], &length, message].concat()
}

/// Check that a call failed with this code, and with all these parts in its sentence.
pub(crate) fn fails(outcome: Result<ReceivedMessage, Failure>, code: u16, parts: &[&str]) {
    let (failed, text) = outcome.expect_err("it fails");
    assert_eq!(failed, code, "{text}");
    for part in parts {
        assert!(text.contains(part), "{text}");
    }
}

/// The fields of a transaction by which a client acquires a bare key, as aetcd sends it.
pub(crate) fn bare_txn(key: &str, value: &str, lease: i64) -> Vec<Field> {
    let compare = inside(1, &[int(2, 1), bytes(3, key), int(5, 0)]);
    let put = inside(2, &[inside(2, &[bytes(1, key), bytes(2, value), int(3, lease)])]);
    vec![compare, put, inside(3, &[inside(1, &[bytes(1, key)])])]
}

/// The fields of a transaction by which a client releases a bare key with this value.
pub(crate) fn release_txn(key: &str, value: &str) -> Vec<Field> {
    let compare = inside(1, &[int(2, 3), bytes(3, key), bytes(7, value)]);
    vec![compare, inside(2, &[inside(3, &[bytes(1, key)])])]
}

/// The fields of a transaction by which a client enters the queue of a lock, as `etcdctl lock`
/// sends it.
pub(crate) fn queue_txn(lock: &str, lease: i64) -> Vec<Field> {
    let key = format!("{lock}/{lease:x}");
    let end = format!("{lock}0");
    let compare = inside(1, &[int(2, 1), bytes(3, &key), int(5, 0)]);
    let put = inside(2, &[inside(2, &[bytes(1, &key), int(3, lease)])]);
    let owner = [bytes(1, format!("{lock}/")), bytes(2, &end), int(3, 1), int(5, 1), int(6, 2)];
    let own = inside(3, &[inside(1, &[bytes(1, &key)])]);
    let first = |number| inside(number, &[inside(1, &owner)]);
    vec![compare, put, first(2), own, first(3)]
}

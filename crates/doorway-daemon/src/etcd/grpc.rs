//! gRPC: how messages stand in the bodies of HTTP/2, and how a call ends.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use doorway_node::members::BoxedFuture;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::status::{Code, Status};
use super::wire::Message;

/// How many bytes a message may have.
pub(super) const MESSAGE: usize = 64 << 10;

/// How long the rest of a message may take to arrive.
const REST: Duration = Duration::from_secs(30);

/// The bytes before a message: whether it is compressed, and its length.
const HEAD: usize = 5;

/// How many messages of a stream wait until the client reads them.
pub(super) const QUEUE: usize = 16;

/// The messages that a client sends.
pub(super) struct Messages {
    body: Incoming,
    buffer: Vec<u8>,
}

impl Messages {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body, buffer: Vec::new() }
    }

    /// The only message of a call.
    pub(super) async fn one(mut self) -> Result<Vec<u8>, Status> {
        let message = timeout(REST, self.next()).await;
        let late = || Status::invalid("the request did not arrive in time");
        message.map_err(|_| late())??.ok_or_else(|| Status::invalid("the request has no message"))
    }

    /// The next message; none after the last one.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Status> {
        loop {
            if let Some(message) = split_message(&mut self.buffer)? {
                return Ok(Some(message));
            }
            match poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await {
                None if self.buffer.is_empty() => return Ok(None),
                None => return Err(Status::invalid("the last message is not complete")),
                Some(Ok(frame)) => {
                    self.buffer.extend(frame.into_data().unwrap_or_default());
                }
                Some(Err(_)) => {
                    return Err(Status::new(Code::Unavailable, "the stream was reset"));
                }
            }
        }
    }
}

/// Take the first message out of a buffer; none if it is not complete.
fn split_message(buffer: &mut Vec<u8>) -> Result<Option<Vec<u8>>, Status> {
    let Some((head, rest)) = buffer.split_first_chunk::<HEAD>() else { return Ok(None) };
    let [compressed, length @ ..] = *head;
    if compressed != 0 {
        return Err(Status::unimplemented("compressed messages are not served"));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > MESSAGE {
        let text = format!("a message has {length} bytes, and may have {MESSAGE} at most");
        return Err(Status::new(Code::ResourceExhausted, text));
    }
    if rest.len() < length {
        return Ok(None);
    }
    let message = rest[..length].to_vec();
    buffer.drain(..HEAD + length);
    Ok(Some(message))
}

/// A message with its length, as it stands in a body.
pub(super) fn framed(message: &impl Message) -> Bytes {
    let bytes = message.bytes();
    let mut all = Vec::with_capacity(HEAD + bytes.len());
    all.push(0);
    all.extend((bytes.len() as u32).to_be_bytes());
    all.extend(bytes);
    all.into()
}

/// What becomes of a call in the end.
type Outcome = Result<(), Status>;

/// The body of a response: messages, and then how the call has ended. While the client reads it,
/// it does the work that makes the messages; if the client resets the stream, the work ends.
pub(super) struct Answer {
    work: Option<BoxedFuture<'static, Outcome>>,
    messages: Option<mpsc::Receiver<Bytes>>,
    /// What is left to be written.
    last: Option<Bytes>,
    outcome: Option<Outcome>,
}

impl Answer {
    /// One message, or why there is none.
    fn ready(answer: Result<Bytes, Status>) -> Self {
        let (last, outcome) = match answer {
            Ok(message) => (Some(message), Ok(())),
            Err(status) => (None, Err(status)),
        };
        Self { work: None, messages: None, last, outcome: Some(outcome) }
    }

    /// Bytes without any end of gRPC.
    pub(super) fn plain(bytes: Vec<u8>) -> Self {
        Self { work: None, messages: None, last: Some(bytes.into()), outcome: None }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if let Some(bytes) = this.last.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if let Some(work) = &mut this.work
            && let Poll::Ready(outcome) = work.as_mut().poll(context)
        {
            this.work = None;
            this.outcome = Some(outcome);
        }
        if let Some(messages) = &mut this.messages {
            match messages.poll_recv(context) {
                Poll::Ready(Some(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Poll::Pending if this.work.is_some() => return Poll::Pending,
                // The work has ended, and nothing is left.
                Poll::Ready(None) | Poll::Pending => this.messages = None,
            }
        }
        if this.work.is_some() {
            return Poll::Pending;
        }
        Poll::Ready(this.outcome.take().map(|outcome| Ok(Frame::trailers(trailers(&outcome)))))
    }

    /// A response with JSON says how long it is.
    fn size_hint(&self) -> SizeHint {
        if self.work.is_some() || self.messages.is_some() || self.outcome.is_some() {
            return SizeHint::default();
        }
        SizeHint::with_exact(self.last.as_ref().map_or(0, Bytes::len) as u64)
    }

    fn is_end_stream(&self) -> bool {
        self.work.is_none()
            && self.messages.is_none()
            && self.last.is_none()
            && self.outcome.is_none()
    }
}

fn trailers(outcome: &Outcome) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    let code = outcome.as_ref().err().map_or(0, |status| status.code as u16);
    trailers.insert("grpc-status", HeaderValue::from(code));
    if let Err(status) = outcome
        && let Ok(text) = HeaderValue::from_str(&status.escaped())
    {
        trailers.insert("grpc-message", text);
    }
    trailers
}

fn response(body: Answer) -> Response<Answer> {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The response to a call with one message.
pub(super) fn unary<M: Message>(answer: Result<M, Status>) -> Response<Answer> {
    response(Answer::ready(answer.map(|message| framed(&message))))
}

/// The response to a call with a stream of messages, which this work sends.
pub(super) fn stream(
    work: BoxedFuture<'static, Outcome>,
    messages: mpsc::Receiver<Bytes>,
) -> Response<Answer> {
    response(Answer { work: Some(work), messages: Some(messages), last: None, outcome: None })
}

/// The response to a call that fails before its message is read.
pub(super) fn failed(status: Status) -> Response<Answer> {
    response(Answer::ready(Err(status)))
}

/// A response without gRPC, with JSON.
pub(super) fn json(status: u16, body: Vec<u8>) -> Response<Answer> {
    let mut response = Response::new(Answer::plain(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_taken_out_one_by_one() {
        let mut buffer = vec![0, 0, 0, 0, 2, 7, 8, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(split_message(&mut buffer), Ok(Some(vec![7, 8])));
        assert_eq!(split_message(&mut buffer), Ok(Some(Vec::new())));
        assert_eq!(split_message(&mut buffer), Ok(None));
        assert_eq!(buffer, [0, 0]);
        let refused = split_message(&mut vec![1, 0, 0, 0, 0]).unwrap_err();
        assert_eq!(refused.code, Code::Unimplemented);
        let refused = split_message(&mut vec![0, 1, 0, 0, 0]).unwrap_err();
        assert_eq!(refused.code, Code::ResourceExhausted);
    }

    proptest! {
        #[test]
        fn random_bytes_are_no_trouble(mut bytes in prop::collection::vec(any::<u8>(), 0..99)) {
            while let Ok(Some(message)) = split_message(&mut bytes) {
                prop_assert!(message.len() <= MESSAGE);
            }
        }
    }
}

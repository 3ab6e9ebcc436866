//! Asking another store.
//!
//! A client is a task with one connection, which it makes when there is something to ask. Each
//! question has a time limit of its own; making the connection has a longer one. Otherwise a
//! connection that takes longer to make than one heartbeat would never be made.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use doorway_node::members::{BoxedStream, Connect};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::frame::{Ask, Frames, Head, IN_FLIGHT, Question, Reply, ReplyBody, encode, pump};
use crate::error::AskError;

/// What all clients of a store have in common.
#[derive(Clone)]
pub(crate) struct Dialer {
    pub(crate) connect: Arc<dyn Connect>,
    pub(crate) runtime: Handle,
    /// How long it may take to make a connection.
    pub(crate) patience: Duration,
}

/// Asks one other store. Its task ends when the client is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) address: String,
    calls: mpsc::Sender<Call>,
    heard: Arc<Mutex<Option<Instant>>>,
}

/// A question that waits to be sent.
#[derive(Debug)]
struct Call {
    head: Head,
    ask: Ask,
    deadline: Instant,
    answer: oneshot::Sender<Result<ReplyBody, AskError>>,
}

impl Client {
    /// A client of the store at this address. The node there must prove this name, if one is given.
    pub(crate) fn new(dialer: Dialer, address: String, name: Option<String>) -> Self {
        let (calls, receiver) = mpsc::channel(IN_FLIGHT);
        let heard = Arc::default();
        let line = Line { address: address.clone(), name, heard: Arc::clone(&heard) };
        dialer.runtime.clone().spawn(line.run(dialer, receiver));
        Self { address, calls, heard }
    }

    /// Ask, and wait for the answer no longer than this.
    pub(crate) async fn ask(
        &self,
        head: Head,
        ask: Ask,
        patience: Duration,
    ) -> Result<ReplyBody, AskError> {
        let (sender, answer) = oneshot::channel();
        let call = Call { head, ask, deadline: Instant::now() + patience, answer: sender };
        let asked = async {
            let gone = || AskError::Unreachable("the connection was closed".to_owned());
            self.calls.send(call).await.map_err(|_| gone())?;
            answer.await.unwrap_or_else(|_| Err(gone()))
        };
        let told = timeout(patience, asked).await;
        match told.unwrap_or(Err(AskError::Timeout(patience.as_millis())))? {
            ReplyBody::Refused(why) => Err(AskError::Refused(why)),
            told => Ok(told),
        }
    }

    /// When the other store has answered for the last time.
    pub(crate) fn heard(&self) -> Option<Instant> {
        *self.heard.lock()
    }
}

/// The task of a client.
struct Line {
    address: String,
    name: Option<String>,
    heard: Arc<Mutex<Option<Instant>>>,
}

impl Line {
    async fn run(self, dialer: Dialer, mut calls: mpsc::Receiver<Call>) {
        while let Some(first) = calls.recv().await {
            let mut waiting = VecDeque::from([first]);
            let why = match self.connect(&dialer).await {
                Ok(stream) => {
                    let sent = BTreeMap::new();
                    let mut session = Session { line: &self, waiting, sent, last: 0 };
                    let why = session.run(stream, &mut calls).await;
                    waiting = session.waiting;
                    why
                }
                Err(why) => why,
            };
            let error = AskError::Unreachable(why);
            // Questions that came meanwhile have waited for this connection, too.
            while let Ok(call) = calls.try_recv() {
                waiting.push_back(call);
            }
            for call in waiting {
                let _ = call.answer.send(Err(error.clone()));
            }
        }
    }

    async fn connect(&self, dialer: &Dialer) -> Result<BoxedStream, String> {
        let connected = timeout(dialer.patience, dialer.connect.connect(&self.address)).await;
        let (stream, other) = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => {
                return Err(format!("no connection within {} ms", dialer.patience.as_millis()));
            }
        };
        match &self.name {
            Some(name) if *name != other.name => {
                let Self { address, .. } = self;
                Err(format!("{address} answers as `{}`, not as `{name}`", other.name))
            }
            _ => Ok(stream),
        }
    }
}

/// One connection.
struct Session<'a> {
    line: &'a Line,
    /// Questions that are to be sent.
    waiting: VecDeque<Call>,
    /// Questions that were sent, and until when the answer is expected.
    sent: BTreeMap<u64, (Instant, oneshot::Sender<Result<ReplyBody, AskError>>)>,
    last: u64,
}

impl Session<'_> {
    /// Ask and listen until the connection ends. Returns why it has ended.
    async fn run(&mut self, stream: BoxedStream, calls: &mut mpsc::Receiver<Call>) -> String {
        let (reader, writer) = tokio::io::split(stream);
        let mut frames = Frames::new(reader);
        let (out, bytes) = mpsc::unbounded_channel();
        let writing = pump(writer, bytes);
        tokio::pin!(writing);
        let why = loop {
            while self.sent.len() < IN_FLIGHT
                && let Some(call) = self.waiting.pop_front()
            {
                self.send(call, &out);
            }
            let late = self.sent.values().map(|(deadline, _)| *deadline).min();
            tokio::select! {
                call = calls.recv(), if self.waiting.is_empty() => match call {
                    Some(call) => self.waiting.push_back(call),
                    None => break "the store has ended".to_owned(),
                },
                reply = frames.next() => if let Err(why) = self.hear(reply) { break why },
                why = &mut writing => break why,
                () = sleep_until(late.unwrap_or_else(Instant::now)), if late.is_some() => {
                    break "no answer in time".to_owned();
                }
            }
        };
        for (_, answer) in std::mem::take(&mut self.sent).into_values() {
            let _ = answer.send(Err(AskError::Unreachable(why.clone())));
        }
        why
    }

    fn send(&mut self, call: Call, out: &mpsc::UnboundedSender<Vec<u8>>) {
        if call.answer.is_closed() || call.deadline <= Instant::now() {
            return; // Nobody waits for the answer any more.
        }
        self.last += 1;
        let question = Question { number: self.last, head: call.head, body: call.ask };
        match encode(&question) {
            Ok(bytes) => {
                self.sent.insert(self.last, (call.deadline, call.answer));
                let _ = out.send(bytes);
            }
            Err(error) => {
                let _ = call.answer.send(Err(error));
            }
        }
    }

    fn hear(&mut self, reply: Result<Option<Reply>, String>) -> Result<(), String> {
        let Reply { number, body } =
            reply?.ok_or_else(|| "the other side has closed the connection".to_owned())?;
        *self.line.heard.lock() = Some(Instant::now());
        if let Some((_, answer)) = self.sent.remove(&number) {
            let _ = answer.send(Ok(body));
        }
        Ok(())
    }
}

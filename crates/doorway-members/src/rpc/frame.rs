//! The messages between stores.
//!
//! A message is the content of a frame with a length prefix, in postcard.

use std::io;

use doorway_node::members::{Answer, Command};
use doorway_protocol::length_prefix::{FrameBuffer, TooLong, append_frame};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::encoding::{Ballot, Line, Picture, Place};
use crate::error::AskError;

/// The longest message, in bytes. A snapshot is one message: it has the record, at most 2,000 holds
/// and at most 1,000 entries of the audit log, which are less than 2 MiB in sum.
pub(crate) const LIMIT: usize = 1 << 21;

/// How many questions on one connection may wait for their answers.
pub(crate) const IN_FLIGHT: usize = 64;

/// A question, with its number and its addressee.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) number: u64,
    pub(crate) head: Head,
    pub(crate) body: Ask,
}

/// From whom a question comes, and for whom it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The group to which the sender belongs.
    pub(crate) cluster: Option<u128>,
    /// The seat of the sender.
    pub(crate) from: u64,
    /// The seat that is meant; none if any seat may answer.
    pub(crate) to: Option<u64>,
}

/// What a store asks another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Who are you? The name is that of the sender's group.
    Hello(String),
    /// Are you there?
    Ping,
    /// Vote for the sender.
    Vote { vote: Ballot, last: Option<Place> },
    /// Append these entries to the log.
    Append { vote: Ballot, previous: Option<Place>, lines: Vec<Line>, committed: Option<Place> },
    /// Replace the state by this snapshot.
    Snapshot { vote: Ballot, picture: Box<Picture> },
    /// Agree on this command.
    Put(Command),
}

/// An answer, with the number of its question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) number: u64,
    pub(crate) body: ReplyBody,
}

/// What a store answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ReplyBody {
    /// The answer to [`Ask::Hello`].
    Hello(Hello),
    /// The answer to [`Ask::Ping`].
    Here,
    /// The answer to [`Ask::Vote`].
    Vote { vote: Ballot, granted: bool, last: Option<Place> },
    /// The entries were appended.
    Appended,
    /// The entries up to this one were appended.
    Partly(Option<Place>),
    /// The log is another one at the place before the entries.
    Conflict,
    /// The sender does not lead any more: there is a higher vote. Also the answer to a snapshot.
    HigherVote(Ballot),
    /// The answer to [`Ask::Put`].
    Answer(Answer),
    /// The command was not even tried, because this store does not lead a majority.
    NotLeader,
    /// The command may be applied, now or later.
    Unsure(String),
    /// The question is not answered, for this reason.
    Refused(String),
}

/// Who a store is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The name of its node.
    pub name: String,
    /// The number of its seat.
    pub seat: u64,
    /// The group to which it belongs; none until it was founded or the node was added.
    pub cluster: Option<u128>,
    /// The address at which its node can be reached.
    pub address: String,
    /// What its data directory shows of a group that is not this one; none once it belongs to one.
    pub former: Option<FormerGroup>,
    /// How its group agrees.
    pub agreement: Agreement,
}

/// How a group agrees on its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Agreement {
    /// By Raft, among its own nodes.
    Raft,
    /// By etcd. The number is that of the cluster of etcd servers; none if it was not reached yet.
    Etcd(Option<u64>),
}

impl Agreement {
    /// Check that two nodes agree in the same way. The error says how the other one differs.
    pub(crate) fn check(self, other: Self) -> Result<(), String> {
        let settings = "give all machines of the group the same settings";
        match (self, other) {
            (Self::Raft, Self::Etcd(_)) => {
                Err(format!("it agrees by etcd, but this node by Raft: {settings}"))
            }
            (Self::Etcd(_), Self::Raft) => {
                Err(format!("it agrees by Raft, but this node by etcd: {settings}"))
            }
            (Self::Etcd(Some(ours)), Self::Etcd(Some(theirs))) if ours != theirs => {
                Err(format!("it uses another etcd than this node: {settings}"))
            }
            _ => Ok(()),
        }
    }
}

/// What a data directory shows of the group to which its node belonged before. Fences of a new
/// group have to be higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerGroup {
    /// The last epoch of the node, in a group with a fixed list of members; 0 if it had none.
    pub epoch: u64,
    /// The highest view of a lock that clients of the node still hold; 0 if they hold none.
    pub view: u64,
    /// How many leases its clients have. The group may have to keep each of them.
    pub leases: u64,
}

/// A message as it is sent.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>, AskError> {
    let mut bytes = Vec::new();
    let length = append_frame(&mut bytes, |to| {
        *to = postcard::to_extend(message, std::mem::take(to)).expect("memory takes every value");
    });
    if length > LIMIT { Err(AskError::TooLong(length)) } else { Ok(bytes) }
}

/// Write what comes, until the stream ends. Returns why it has ended.
pub(crate) async fn pump(
    mut stream: impl AsyncWrite + Unpin,
    mut messages: mpsc::UnboundedReceiver<impl AsRef<[u8]>>,
) -> String {
    while let Some(message) = messages.recv().await {
        let written = async {
            stream.write_all(message.as_ref()).await?;
            stream.flush().await
        };
        if let Err(error) = written.await {
            return error.to_string();
        }
    }
    "the connection was closed".to_owned()
}

/// Cuts messages out of a stream. A future of [`Self::next`] may be dropped at any time.
pub(crate) struct Frames<R> {
    stream: R,
    received: FrameBuffer<LIMIT>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self { stream, received: FrameBuffer::default() }
    }

    /// The next message; none at the end of the stream. The error says what is wrong with it.
    pub(crate) async fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        loop {
            let too_long = |TooLong(length)| format!("a message of {length} bytes is too long");
            if let Some(content) = self.received.frame().map_err(too_long)? {
                return postcard::from_bytes(content).map(Some).map_err(|it| it.to_string());
            }
            match self.stream.read_buf(self.received.space()).await {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                // A node that stops does not end TLS first.
                Err(error) if is_closed(&error) => return Ok(None),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// Whether the other side has closed the connection, in order or not.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

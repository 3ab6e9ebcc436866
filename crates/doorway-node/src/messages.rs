//! The messages that nodes send to each other, inside the frames of a link.

use doorway_core::Mode;
use doorway_protocol::{Fence, Name};
use serde::{Deserialize, Serialize};

use crate::members::Record;

/// A message from one node to another. New variants must be added at the end, because the position
/// of a variant is its number on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Message {
    /// A message of the algorithm of a lock.
    Algorithm(AlgorithmMessage),
    /// What the sender holds as it leaves its old view for a new one.
    Flush(Flush),
    /// The epochs of all members, as far as the sender knows them; 0 for an unknown epoch.
    Epochs(Vec<u64>),
    /// A question, with a number that the sender has chosen.
    Ask(u64, Question),
    /// The answer to the question with this number.
    Tell(u64, Answer),
    /// The newest record that the sender has seen, in a group that agrees on its members.
    Record(Record),
}

/// A message of the algorithm of one lock. Only that algorithm can read the payload.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AlgorithmMessage {
    /// The view in which the message was sent.
    pub view: u64,
    /// The clock of the sender's shard, from which fences are made.
    pub clock: u64,
    /// The lock.
    pub lock: Name,
    /// The message itself, encoded by the algorithm.
    pub payload: Vec<u8>,
}

/// One part of the list of locks that a node held when it stopped for a view. All parts together
/// are one snapshot, which never changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Flush {
    /// The epochs that name the new view.
    pub epochs: Vec<u64>,
    /// Which part this is, from 0.
    pub part: u32,
    /// How many parts there are, at least 1.
    pub parts: u32,
    /// The locks that the node holds, in the order of their names.
    pub held: Vec<HeldLock>,
}

/// A lock that clients of a node hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HeldLock {
    /// The lock.
    pub lock: Name,
    /// In which mode it is held.
    pub mode: Mode,
    /// How many permits the node holds: 1 unless the lock has several.
    pub permits: u32,
}

/// A question that one node asks another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Question {
    /// Which of your clients hold this lock or wait for it, and for which other locks do the
    /// sessions of its holders wait?
    Clients(Name),
    /// A question of the service around the node, which alone can read it. Since version 2 of the
    /// protocol, as are all that follow.
    Service(Vec<u8>),
    /// Record one lock, unless that recording has begun. Members that record also send this to all
    /// others: what one of them has sent before it came before its recording began.
    Record(RecordOrder),
    /// What has been recorded by the order with this number?
    Recorded(u64),
}

/// The order to record one lock for a while.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordOrder {
    /// A random number that names the recording at all members.
    pub id: u64,
    /// The lock.
    pub lock: Name,
    /// For how many milliseconds.
    pub for_ms: u32,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// The clients of the lock, and the waiting requests of its holders' sessions for other locks.
    Clients(Vec<ClientReport>),
    /// The answer of the service; none if it cannot answer.
    Service(Option<Vec<u8>>),
    /// What was recorded; none if this node knows of no such recording.
    Recording(Option<Vec<u8>>),
}

/// The longest description of a session, in bytes, that is sent to other nodes.
pub const CLIENT_BYTES: usize = 200;

/// A client of a node, as the node describes it to other nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClientReport {
    /// The lock.
    pub lock: Name,
    /// The session of the client, by its number at its node; 0 if it has none.
    pub session: u64,
    /// The mode in which it holds the lock, or wants to hold it.
    pub mode: Mode,
    /// Whether it is inside or waits.
    pub status: ClientStatus,
    /// For how many milliseconds it has been inside or has waited.
    pub since_ms: u64,
    /// The description of its session, cut to at most [`CLIENT_BYTES`].
    pub client: Option<String>,
}

/// Whether a client is inside a lock or waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ClientStatus {
    /// Inside, with its fence.
    Inside(Fence),
    /// Waiting, with its place in the queue of its node, counted from 0.
    Waiting(u32),
}

//! What nodes say to each other, inside the frames of a link.

use doorway_core::Mode;
use doorway_protocol::{Fence, Name};
use serde::{Deserialize, Serialize};

/// A message between two nodes. New kinds are added at the end, for their order is their number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// A message of an algorithm.
    Algorithm(AlgorithmMessage),
    /// What a node holds as it leaves its old view for a new one.
    Flush(Flush),
    /// The epochs of all members, as far as the sender knows them.
    Epochs(Vec<u64>),
    /// A question, which its asker has numbered.
    Ask(u64, Question),
    /// The answer to the question of that number.
    Tell(u64, Answer),
}

/// A message of the algorithm of one lock, which only that algorithm can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlgorithmMessage {
    /// The view in which it was sent.
    pub view: u64,
    /// The sender's clock, from which fences are made.
    pub clock: u64,
    /// The lock.
    pub lock: Name,
    /// The message.
    pub payload: Vec<u8>,
}

/// A part of what a node held when it stopped for a view. All parts together are one snapshot,
/// which never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flush {
    /// The epochs that name the new view.
    pub epochs: Vec<u64>,
    /// Which part this is, from 0.
    pub part: u32,
    /// How many there are: at least one.
    pub parts: u32,
    /// What is held.
    pub held: Vec<HeldLock>,
}

/// A lock that clients of a node hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HeldLock {
    /// The lock.
    pub lock: Name,
    /// How it is held.
    pub mode: Mode,
    /// How many permits: 1 unless the lock has several.
    pub permits: u32,
}

/// What a node wants to know of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Who of your clients is inside or waits for this lock, and what do those inside wait for?
    Clients(Name),
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The clients of a lock, and others of the same sessions that wait.
    Clients(Vec<ClientReport>),
}

/// How many bytes of what a session says of itself are told to others.
pub const CLIENT_BYTES: usize = 200;

/// A client of a node, as others hear of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientReport {
    /// The lock.
    pub lock: Name,
    /// The session for which it asks, a number of its node.
    pub session: u64,
    /// How it holds the lock or wants to.
    pub mode: Mode,
    /// Its fence if it is inside, its place in the queue of its node if it waits.
    pub status: ClientStatus,
    /// For how many milliseconds.
    pub since_ms: u64,
    /// What its session says of itself: at most [`CLIENT_BYTES`], or it is cut.
    pub client: Option<String>,
}

/// Where a client stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientStatus {
    /// Inside, with its fence.
    Inside(Fence),
    /// In the queue of its node, with its place from 0.
    Waiting(u32),
}

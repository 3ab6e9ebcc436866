//! The store by which a group agrees on its record, as a node sees it.
//!
//! A node needs six things of a store: the newest record, the newest holds, the newest rules, an
//! answer to a command, a hint whether to propose removals, and facts for people. How the store
//! reaches agreement is its own affair: a replicated log, or a key that is replaced by
//! compare-and-set.
//!
//! Stores of several nodes may have to talk to each other. They use the port and the certificates
//! of the links, but connections of their own: a link keeps everything for an absent peer, and a
//! long message on a link would delay the heartbeats of the store.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::RuleTables;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::command::{Answer, Command};
use super::histogram::TimeCounts;
use super::holds::Holds;
use super::record::{Record, SeatId};

/// A future behind a pointer, as trait objects return it.
///
/// Functions that start much, such as a whole node, return one too. The code of an `async fn` is
/// compiled again in every crate that awaits it, but that of a boxed future only where it is made.
pub type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The store of a group's record.
pub trait ViewStore: Send + Sync + 'static {
    /// The seat of this machine.
    fn seat(&self) -> SeatId;

    /// The newest record that was seen here; none until the group was founded. An old record only
    /// delays.
    fn watch(&self) -> watch::Receiver<Option<Arc<Record>>>;

    /// The newest holds that were seen here. They may be older or newer than the record.
    fn holds(&self) -> watch::Receiver<Arc<Holds>>;

    /// The newest rules that were seen here. They may be older or newer than the record.
    fn rules(&self) -> watch::Receiver<Arc<RuleTables>>;

    /// Agree on a command. The future ends within a bounded time.
    fn put(&self, command: Command) -> BoxedFuture<'_, Result<Answer, UnknownOutcome>>;

    /// Whether this node should propose removals. This is only a hint: several nodes may do so, or
    /// none for a while.
    fn leads(&self) -> bool;

    /// Serve a connection that the store of another member has made, until it ends.
    fn serve(&self, stream: BoxedStream, caller: Caller) -> BoxedFuture<'static, ()>;

    /// The state of the store, for people.
    fn health(&self) -> StoreHealth;
}

/// The store does not know whether a command was applied, or will be applied later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the group has not answered: {0}")]
pub struct UnknownOutcome(pub String);

/// The state of a store, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreHealth {
    /// The seat that leads, as far as this node knows.
    pub leader: Option<SeatId>,
    /// How often another seat was seen to lead than before, since the store was opened. The first
    /// leader counts. Leaders that were followed by another one at once may be missed.
    pub elections: u64,
    /// How many seats vote.
    pub voters: usize,
    /// The seats that vote and can be reached from here, this one included if it votes.
    pub reachable: Vec<SeatId>,
    /// For how long no majority could be reached, if none can.
    pub without_quorum: Option<Duration>,
    /// How long it took to write changes of the store to the disk of this machine.
    pub syncs: TimeCounts,
    /// The state of the service by which the members agree; none if they agree by themselves.
    pub service: Option<ServiceHealth>,
}

/// The state of a service outside the group by which its members agree, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceHealth {
    /// Where the service is.
    pub addresses: Vec<String>,
    /// For how long the service could not be reached, and why, if it cannot.
    pub unreachable: Option<(Duration, String)>,
    /// What an operator should know although the service answers.
    pub warning: Option<String>,
}

/// A connection between two stores.
pub type BoxedStream = Box<dyn Stream>;

/// What a connection between two stores can do.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The other side of a connection between two stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of its node, which its certificate proves.
    pub name: String,
}

/// Makes connections to the stores of other members.
pub trait Connect: Send + Sync + 'static {
    /// Connect to the node that listens at an address. Both sides prove their names by certificates
    /// of the group.
    fn connect<'a>(
        &'a self,
        address: &'a str,
    ) -> BoxedFuture<'a, io::Result<(BoxedStream, Caller)>>;
}

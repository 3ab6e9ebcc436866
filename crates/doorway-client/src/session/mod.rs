//! What the blocking and the async client have in common: a session, its connection, and the
//! callers that wait for answers.

mod connection;
mod grants;
mod handle;
mod loss_notifier;
mod outcome;
mod shared_session;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use doorway_protocol::{Code, Fence, Moment, Name, Refusal, Scope, SessionId};

pub(crate) use self::handle::Handle;
pub(crate) use self::loss_notifier::LossNotifier;
pub(crate) use self::outcome::Outcome;
pub(crate) use self::shared_session::SharedSession;

use crate::endpoint::{Endpoint, Stream, reconnect};
use crate::endpoints::Endpoints;
use crate::error::{Error, LostGrant};
use crate::line::Line;
use crate::machine::{Event, Setup};
use crate::options::Options;
use crate::route::Route;

/// A session, its connection, and the callers that wait for answers.
///
/// No method waits. A *driver*, which is a thread or a task in the background, reads, sends
/// heartbeats and reconnects.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Session {
    pub(crate) line: Line,
    /// Which node to connect to next, and when.
    pub(crate) route: Route,
    /// The connection, while there is one.
    pub(crate) stream: Option<Arc<Stream>>,
    /// The requests that callers wait for, by number.
    pending: BTreeMap<u64, PendingAnswer>,
    /// What to call when a grant is lost.
    pub(crate) on_lost: Option<LossNotifier>,
    /// Why grants were lost, until their owners have been told.
    losses: BTreeMap<(Fence, Name), String>,
    /// Wakes the driver.
    kick: Kick,
    /// The node that last welcomed us.
    pub(crate) node: Option<Node>,
    /// Why the node last refused to talk to us.
    closed: Option<Refusal>,
    /// When the node stops, if it has said so.
    stops: Option<Moment>,
    /// How many answers have come.
    pub(crate) answers: u64,
    /// How many requests callers have made.
    pub(crate) calls: u64,
    /// When the driver next wakes by itself.
    pub(crate) plan: Moment,
    /// Does a caller read from the connection? Only in the blocking client.
    pub(crate) reading: bool,
    /// Does the driver wait for bytes to read? Only in the blocking client.
    pub(crate) watching: bool,
    /// Does the driver sleep until `plan`, relying on the caller that reads?
    pub(crate) relying: bool,
    /// Has the last copy of the client been dropped?
    pub(crate) closing: bool,
}

/// Wakes the driver of a session.
pub(crate) type Kick = Box<dyn Fn() + Send + Sync>;

/// The node that welcomed a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name of the node.
    pub name: String,
    /// Who shares the locks of the node: one user, one machine or a cluster.
    pub scope: Scope,
    /// The number of the session at the node; none for a visit.
    pub session: Option<SessionId>,
}

/// A request that a caller waits for.
#[derive(Default)]
struct PendingAnswer {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl Session {
    pub(crate) fn new(endpoints: &Endpoints, options: &Options, kick: Kick) -> Result<Self, Error> {
        let setup = Setup { nodes: endpoints.count(), ..options.setup() };
        #[cfg_attr(not(feature = "tls"), expect(unused_mut, reason = "only TLS changes it"))]
        let mut line = Line::new(setup, Moment::now());
        if let Some(endpoint) = endpoints.iter().find(|it| matches!(it, Endpoint::Tcp(..))) {
            #[cfg(feature = "tls")]
            let Some(config) = options.tls.clone() else {
                let text = "sessions over TCP need certificates: set Options::tls";
                return Err(cannot_connect(endpoint, text));
            };
            #[cfg(feature = "tls")]
            line.encrypt(config);
            #[cfg(not(feature = "tls"))]
            return Err(cannot_connect(
                endpoint,
                "sessions over TCP need the feature `tls` of doorway-client",
            ));
        }
        Ok(Self {
            line,
            route: Route::new(endpoints.clone(), reconnect()),
            stream: None,
            pending: BTreeMap::new(),
            on_lost: None,
            losses: BTreeMap::new(),
            kick,
            node: None,
            closed: None,
            stops: None,
            answers: 0,
            calls: 0,
            plan: Moment(0),
            reading: false,
            watching: false,
            relying: false,
            closing: false,
        })
    }

    /// Wake the driver.
    pub(crate) fn kick(&self) {
        (self.kick)();
    }

    /// Did the node welcome us on the first connection? If not, why not?
    pub(crate) fn welcomed(&mut self) -> Result<(), Error> {
        if let Some(refusal) = self.closed.take() {
            return Err(Error::Refused(refusal));
        }
        if self.line.is_talking() {
            return Ok(());
        }
        let text = self.line.no_node(Moment::now());
        Err(Error::Refused(Refusal { code: Code::Unavailable, text }))
    }

    /// Is the outcome of the first connection known?
    pub(crate) fn is_greeted(&self) -> bool {
        self.closed.is_some() || self.line.is_talking() || self.stream.is_none()
    }

    /// How long it is until the node stops, if it has said so.
    pub(crate) fn stopping(&self) -> Option<Duration> {
        self.stops.map(|at| at.since(Moment::now()))
    }

    /// Keep the answer to this request for a caller.
    pub(crate) fn expect(&mut self, number: u64) {
        self.pending.insert(number, PendingAnswer::default());
        self.calls += 1;
    }

    /// Take the answer to a request, if it has come.
    pub(crate) fn take(&mut self, number: u64) -> Option<Outcome> {
        let outcome = self.pending.get_mut(&number)?.outcome.take()?;
        self.pending.remove(&number);
        Some(outcome)
    }

    /// Wake this caller when the answer comes.
    pub(crate) fn watch(&mut self, number: u64, waker: &Waker) {
        if let Some(pending) = self.pending.get_mut(&number)
            && !pending.waker.as_ref().is_some_and(|it| it.will_wake(waker))
        {
            pending.waker = Some(waker.clone());
        }
    }

    /// Stop waiting for an answer; returns the answer if it has come already.
    #[cfg(feature = "tokio")]
    pub(crate) fn forget(&mut self, number: u64) -> Option<Outcome> {
        self.pending.remove(&number)?.outcome
    }

    /// Wake one of the waiting callers, so that it reads from the connection. False if none waits.
    pub(crate) fn wake_one(&self) -> bool {
        let mut waiting = self.pending.values().filter(|pending| pending.outcome.is_none());
        let waker = waiting.find_map(|pending| pending.waker.as_ref());
        waker.inspect(|waker| waker.wake_by_ref()).is_some()
    }

    /// Hand out the events of the machine: answers to callers, losses to the notifier.
    fn dispatch(&mut self) {
        while let Some(event) = self.line.event() {
            match event {
                Event::Granted { number, fence, .. } => {
                    self.deliver(number, Outcome::Granted(fence));
                }
                Event::Refused { number, refusal } => {
                    self.deliver(number, Outcome::Refused(refusal));
                }
                Event::Released { number, held } => self.deliver(number, Outcome::Released(held)),
                Event::Answer { number, answer } => self.deliver(number, Outcome::Answer(answer)),
                Event::Unknown { number, refusal } => {
                    self.deliver(number, Outcome::Unknown(refusal));
                }
                Event::Lost { lock, fence, reason } => self.lost(LostGrant { lock, fence, reason }),
                Event::Welcome { node, scope, session, .. } => {
                    (self.closed, self.stops) = (None, None);
                    self.node = Some(Node { name: node, scope, session });
                }
                Event::Closed(refusal) => self.closed = Some(refusal),
                Event::Stopping { within } => self.stops = Some(Moment::now().after(within)),
            }
        }
    }

    fn deliver(&mut self, number: u64, outcome: Outcome) {
        self.answers += 1;
        if let Some(pending) = self.pending.get_mut(&number) {
            pending.outcome = Some(outcome);
            if let Some(waker) = pending.waker.take() {
                waker.wake();
            }
        }
    }
}

/// The error for an endpoint that these options cannot connect to.
fn cannot_connect(endpoint: &Endpoint, text: &str) -> Error {
    let why = std::io::Error::new(std::io::ErrorKind::InvalidInput, text);
    Error::Unreachable { endpoint: endpoint.clone(), why }
}

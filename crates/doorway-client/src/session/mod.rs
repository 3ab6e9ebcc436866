//! What both faces of a client have behind them: a session on a line, and who waits for what.

mod connection;
mod grants;
mod loss_notifier;
mod outcome;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use doorway_protocol::{Code, Fence, Moment, Name, Refusal, Scope, SessionId};

pub(crate) use self::loss_notifier::LossNotifier;
pub(crate) use self::outcome::Outcome;

use crate::endpoint::{Endpoint, Stream};
use crate::error::{Error, Lost};
use crate::line::Line;
use crate::machine::{Event, Setup};
use crate::options::Options;

/// A session on a line, and who waits for which answer.
pub(crate) struct Session {
    pub(crate) line: Line,
    pub(crate) stream: Option<Arc<Stream>>,
    slots: BTreeMap<u64, PendingAnswer>,
    /// Who wants to know what is lost.
    pub(crate) on_lost: Option<LossNotifier>,
    /// Why grants were lost, until nobody has them any more.
    losses: BTreeMap<(Fence, Name), String>,
    /// Lets whoever looks after the session do so.
    kick: Kick,
    /// Who last welcomed us.
    pub(crate) welcome: Option<Node>,
    /// Why the node last did not talk to us.
    pub(crate) closed: Option<Refusal>,
    /// When the node stops, if it said so.
    stops: Option<Moment>,
    /// How many answers came.
    pub(crate) answers: u64,
}

/// How to make someone look.
pub(crate) type Kick = Box<dyn Fn() + Send + Sync>;

/// The node that welcomed a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whom its locks are for.
    pub scope: Scope,
    /// The session that it gave us.
    pub session: Option<SessionId>,
}

#[derive(Default)]
struct PendingAnswer {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl Session {
    pub(crate) fn new(endpoint: &Endpoint, options: &Options, kick: Kick) -> Result<Self, Error> {
        let network = matches!(endpoint, Endpoint::Tcp(..));
        #[cfg_attr(not(feature = "tls"), expect(unused_mut, reason = "it is for TLS"))]
        let mut line = Line::new(Setup { network, ..options.setup() }, Moment::now());
        if network {
            #[cfg(feature = "tls")]
            let Some(config) = options.tls.clone() else {
                return Err(cannot_connect(
                    endpoint,
                    "sessions over TCP need certificates: give Options::tls",
                ));
            };
            #[cfg(feature = "tls")]
            line.encrypt(config);
            #[cfg(not(feature = "tls"))]
            return Err(cannot_connect(
                endpoint,
                "this program was built without TLS (feature `tls`)",
            ));
        }
        Ok(Self {
            line,
            stream: None,
            slots: BTreeMap::new(),
            on_lost: None,
            losses: BTreeMap::new(),
            kick,
            welcome: None,
            closed: None,
            stops: None,
            answers: 0,
        })
    }

    /// Let whoever looks after the session do so.
    pub(crate) fn kick(&self) {
        (self.kick)();
    }

    /// In how long the node stops, if it said so.
    pub(crate) fn stopping(&self) -> Option<Duration> {
        self.stops.map(|at| at.since(Moment::now()))
    }

    /// Someone waits for the answer to this request.
    pub(crate) fn expect(&mut self, number: u64) {
        self.slots.insert(number, PendingAnswer::default());
    }

    /// Take the answer if it is there; else wake this one when it is.
    pub(crate) fn take(&mut self, number: u64) -> Option<Outcome> {
        let outcome = self.slots.get_mut(&number)?.outcome.take()?;
        self.slots.remove(&number);
        Some(outcome)
    }

    /// Whom to wake when the answer is there.
    pub(crate) fn watch(&mut self, number: u64, waker: &Waker) {
        if let Some(slot) = self.slots.get_mut(&number)
            && !slot.waker.as_ref().is_some_and(|it| it.will_wake(waker))
        {
            slot.waker = Some(waker.clone());
        }
    }

    /// Nobody waits for that answer any more.
    #[cfg(feature = "tokio")]
    pub(crate) fn forget(&mut self, number: u64) -> Option<Outcome> {
        self.slots.remove(&number)?.outcome
    }

    /// Wake one of those who wait, so that it looks after the line.
    pub(crate) fn wake_one(&self) -> bool {
        let mut waiting = self.slots.values().filter(|slot| slot.outcome.is_none());
        let waker = waiting.find_map(|slot| slot.waker.as_ref());
        waker.inspect(|waker| waker.wake_by_ref()).is_some()
    }

    /// Hand out what has happened.
    pub(crate) fn dispatch(&mut self) {
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
                Event::Lost { lock, fence, reason } => self.lost(Lost { lock, fence, reason }),
                Event::Welcome { node, scope, session, .. } => {
                    (self.closed, self.stops) = (None, None);
                    self.welcome = Some(Node { name: node, scope, session });
                }
                Event::Closed(refusal) => self.closed = Some(refusal),
                Event::Stopping { within } => self.stops = Some(Moment::now().after(within)),
            }
        }
    }

    fn deliver(&mut self, number: u64, outcome: Outcome) {
        self.answers += 1;
        if let Some(slot) = self.slots.get_mut(&number) {
            slot.outcome = Some(outcome);
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        }
    }
}

/// What a process is told that was forked from the one whose session it is.
pub(crate) fn forked() -> Refusal {
    let text = "this session is that of the process from which this one was forked: connect anew";
    Refusal { code: Code::Invalid, text: text.to_owned() }
}

/// A connection that cannot be made with what was given.
fn cannot_connect(endpoint: &Endpoint, text: &str) -> Error {
    let why = std::io::Error::new(std::io::ErrorKind::InvalidInput, text);
    Error::Unreachable { endpoint: endpoint.clone(), why }
}

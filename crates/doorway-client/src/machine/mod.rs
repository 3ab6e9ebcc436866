//! The client's half of a session, without a socket and without a clock.
//!
//! A [`SessionMachine`] is fed with bytes and the time, and gives bytes and [`Event`]s. Whoever drives it
//! does this, in any order and as often as it likes:
//!
//! - while [`SessionMachine::wants_connection`], connect, and say so with [`SessionMachine::connected`];
//! - send [`SessionMachine::outgoing`], and take away what was sent;
//! - hand over what is read with [`SessionMachine::receive`];
//! - say so with [`SessionMachine::disconnected`] when the connection ends, and also end it when
//!   [`SessionMachine::must_close`] (after sending what is outgoing);
//! - call [`SessionMachine::tick`] when [`SessionMachine::next_due`] has come;
//! - after each of these look at [`SessionMachine::event`]s.
//!
//! Requests may be made at any time, also without a connection: each gets a number, and exactly one
//! event with that number answers it, over however many connections.

mod answers;
mod due;
mod event;
mod lease;
mod pending;
mod requests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use doorway_protocol::{
    Claim, Claims, ClientInfo, Code, Fence, Frames, Hello, Life, MAGIC, Moment, Name, Opening,
    Refusal, Request, VERSIONS, put,
};

pub use self::event::{Answer, Event};
use self::lease::OpenSession;
pub use self::lease::State;
use self::pending::Pending;

/// What a session is to be.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Who we are, for people who ask who holds a lock.
    pub who: ClientInfo,
    /// What proves our rights where the connection does not.
    pub token: Option<String>,
    /// How long the session lives without being heard of, and with what it ends; none if we only
    /// ask questions.
    pub session: Option<(Duration, Life)>,
    /// How long a request waits for a node that cannot be reached.
    pub patience: Duration,
    /// Does the connection cross a network, which may cut it? Then a session outlives it; forked
    /// a connection that ends shows that nobody has it any more, and ends the session.
    pub network: bool,
}

/// The client's half of a session. See the [module](self).
#[derive(Debug)]
pub struct SessionMachine {
    setup: Setup,
    phase: Phase,
    session: Option<OpenSession>,
    /// What we hold.
    grants: BTreeMap<(Fence, Name), Grant>,
    /// Requests without an answer, by their number.
    pending: BTreeMap<u64, Pending>,
    next_number: u64,
    /// Since when nobody talks to us; none while someone does.
    unreachable_since: Option<Moment>,
    /// When the node was last heard of, and when the last sign of life was sent.
    heard: Moment,
    asked: Moment,
    /// No request is overdue before this moment.
    overdue: Moment,
    /// How many requests for locks have no answer.
    acquiring: usize,
    frames: Frames,
    outgoing: Vec<u8>,
    events: VecDeque<Event>,
}

/// Where we are with the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no connection.
    Disconnected,
    /// We said hello at that moment.
    Greeting { said: Moment, resume: bool },
    /// The node talks to us.
    Talking,
    /// The connection is of no more use.
    Broken,
    /// We said goodbye.
    Closed,
}

/// Something that is held, beside its lock and its fence.
#[derive(Clone, Copy, Debug)]
struct Grant {
    mode: doorway_protocol::Mode,
    permits: Option<u32>,
    request: u64,
}

impl Grant {
    fn claim(self, lock: &Name, fence: Fence) -> Claim {
        let Self { mode, permits, request } = self;
        Claim { lock: lock.clone(), mode, permits, fence, request }
    }
}

impl SessionMachine {
    /// How many bytes of a label, a host or the beginning of a name are told.
    const TEXT: usize = 256;

    /// How many bytes of a token are told. The node refuses the rest of a longer one.
    const TOKEN: usize = 4096;

    /// A session that is still to be opened.
    pub fn new(mut setup: Setup, now: Moment) -> Self {
        truncate(&mut setup.who.label, Self::TEXT);
        truncate(&mut setup.who.host, Self::TEXT);
        if let Some(token) = &mut setup.token {
            truncate(token, Self::TOKEN);
        }
        Self {
            setup,
            phase: Phase::Disconnected,
            session: None,
            grants: BTreeMap::new(),
            pending: BTreeMap::new(),
            next_number: 1,
            unreachable_since: Some(now),
            heard: now,
            asked: now,
            overdue: Moment::NEVER,
            acquiring: 0,
            frames: Frames::default(),
            outgoing: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// Is a connection missing? Not after [`SessionMachine::bye`].
    pub fn wants_connection(&self) -> bool {
        self.phase == Phase::Disconnected
    }

    /// Is the connection to be closed, once what is outgoing has been sent?
    pub fn must_close(&self) -> bool {
        matches!(self.phase, Phase::Broken | Phase::Closed)
    }

    /// Has the node greeted us on this connection?
    pub fn is_talking(&self) -> bool {
        self.phase == Phase::Talking
    }

    /// There is a connection.
    pub fn connected(&mut self, now: Moment) {
        if self.phase != Phase::Disconnected {
            return;
        }
        self.expire(now);
        self.outgoing.clear();
        self.outgoing.extend_from_slice(&MAGIC);
        let resume = self.session.is_some();
        self.say_hello();
        self.phase = Phase::Greeting { said: now, resume };
        if !resume {
            self.send_pending(now);
        }
    }

    /// There is no connection any more, because the other side or the network ended it. Who hangs
    /// up without being told to by [`SessionMachine::must_close`] ends the session on a Unix socket, and
    /// with it all that is held, and says [`SessionMachine::bye`] before.
    pub fn disconnected(&mut self, now: Moment) {
        self.frames = Frames::default();
        self.outgoing.clear();
        if self.phase == Phase::Closed {
            return;
        }
        self.phase = Phase::Disconnected;
        self.unreachable_since.get_or_insert(now);
        // What we no longer want is not among what we wait for when we come back, and a welcome
        // says more than the answer to a sign of life.
        self.pending.retain(|_, pending| !(pending.is_withdrawn() || pending.is_heartbeat()));
        self.recount();
        self.expire(now);
    }

    /// What is to be sent. Whoever sends it takes it away.
    pub fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// The next thing that happened.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// How sure we can be of what we hold. Without a session there is nothing to be sure of.
    pub fn state(&self, now: Moment) -> State {
        self.session.as_ref().map_or(State::Lost, |session| session.state(now))
    }

    /// How sure we can be of this grant.
    pub fn grant_state(&self, lock: &Name, fence: Fence, now: Moment) -> State {
        if self.grants.contains_key(&(fence, lock.clone())) { self.state(now) } else { State::Lost }
    }

    /// When all that is held must be taken for lost, if nothing is heard until then; none if there
    /// is no session or if it does not end by itself.
    pub fn deadline(&self) -> Option<Moment> {
        let at = self.session.as_ref()?.lost_at();
        (at != Moment::NEVER).then_some(at)
    }

    /// How long the session lives without being heard of.
    pub fn ttl(&self) -> Option<Duration> {
        self.session.as_ref().map(|session| session.ttl)
    }

    /// What is held: locks, how, and with which fence.
    pub fn held(&self) -> impl Iterator<Item = Claim> {
        self.grants.iter().map(|((fence, lock), grant)| grant.claim(lock, *fence))
    }

    /// Write the greeting, with all that we believe to have.
    fn say_hello(&mut self) {
        let mut pages = VecDeque::new();
        let opening = match (&self.session, self.setup.session) {
            (Some(session), _) => {
                pages = self.claims();
                let first = pages.pop_front().unwrap_or_default();
                Opening::Resume {
                    session: session.id,
                    secret: session.secret,
                    ttl_ms: millis(session.ttl),
                    life: session.life,
                    held: first.held,
                    waiting: first.waiting,
                    more: first.more,
                }
            }
            (None, Some((ttl, life))) => Opening::New { ttl_ms: millis(ttl), life },
            (None, None) => Opening::Visit,
        };
        let (who, token) = (self.setup.who.clone(), self.setup.token.clone());
        put(&Hello { versions: VERSIONS, who, token, opening }, &mut self.outgoing);
        for page in pages {
            put(&page, &mut self.outgoing);
        }
    }

    /// What we hold and wait for, in pages.
    fn claims(&self) -> VecDeque<Claims> {
        // What is to be released and was not yet is still ours, so that nobody can say it was lost.
        // What may have been released already may be someone else's.
        let leaving = self.pending.values().filter(|pending| !pending.sent);
        let leaving = leaving.filter_map(|pending| match (&pending.request, pending.own) {
            (Request::Release(_, lock, fence), Some(grant)) => Some(grant.claim(lock, *fence)),
            _ => None,
        });
        let held: Vec<_> = self.held().chain(leaving).collect();
        let acquires = self.pending.values().filter(|pending| pending.is_acquire());
        let waiting: Vec<_> = acquires.map(Pending::number).collect();
        let (mut held, mut waiting) = (held.chunks(Claims::MAX), waiting.chunks(Claims::MAX));
        let mut pages = VecDeque::new();
        loop {
            let (held, waiting) = (held.next(), waiting.next());
            if held.is_none() && waiting.is_none() {
                break;
            }
            let held = held.unwrap_or_default().to_vec();
            let waiting = waiting.unwrap_or_default().to_vec();
            pages.push_back(Claims { held, waiting, more: true });
        }
        if let Some(last) = pages.back_mut() {
            last.more = false;
        }
        pages
    }

    /// Does the session end when we hang up?
    fn ends_with_connection(&self) -> bool {
        let by_connection = |session: &OpenSession| matches!(session.life, Life::Connection { .. });
        !self.setup.network && self.session.as_ref().is_some_and(by_connection)
    }

    /// The session is no more. What waits is asked again in the next one.
    fn lose_all(&mut self, reason: &str) {
        self.session = None;
        for ((fence, lock), _) in std::mem::take(&mut self.grants) {
            self.events.push_back(Event::Lost { lock, fence, reason: reason.to_owned() });
        }
        let events = &mut self.events;
        let refusal = Refusal { code: Code::Gone, text: reason.to_owned() };
        self.pending.retain(|&number, pending| {
            if pending.own.is_some() && pending.is_reported() {
                events.push_back(if pending.sent {
                    pending.no_answer(&refusal)
                } else {
                    Event::Released { number, held: false }
                });
            }
            !(pending.own.is_some() || pending.is_withdrawn() || pending.is_heartbeat())
        });
        self.recount();
        if matches!(self.phase, Phase::Greeting { .. } | Phase::Talking) {
            self.phase = Phase::Broken;
            self.outgoing.clear();
        }
    }
}

/// A time as it is told to the node.
fn millis(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX)
}

/// Cut a text so that it has at most `max` bytes.
fn truncate(text: &mut String, max: usize) {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
    }
}

//! The client's half of a session as a state machine, without a socket and without a clock.
//!
//! A [`SessionMachine`] takes bytes and the time, and gives bytes and [`Event`]s. Its driver does
//! the following, in any order and as often as it likes:
//!
//! - While [`SessionMachine::wants_connection`] is true, connect, and then call
//!   [`SessionMachine::connected_to`], or [`SessionMachine::cannot_connect`] if that failed. While
//!   [`SessionMachine::is_bound`] is true, connect only to the node of the last connection.
//! - Write [`SessionMachine::outgoing`] to the connection, and remove what was written.
//! - Pass what is read from the connection to [`SessionMachine::receive`].
//! - When the connection ends, call [`SessionMachine::disconnected`]. When
//!   [`SessionMachine::must_close`] is true, write what is outgoing, close the connection, and call
//!   `disconnected`.
//! - When [`SessionMachine::next_due`] has come, call [`SessionMachine::tick`].
//! - After each of these, handle all [`SessionMachine::event`]s.
//!
//! Requests can be made at any time, also without a connection. Each gets a number, and exactly one
//! event with this number answers it, even if the connection breaks in between.
//!
//! ```
//! use std::time::Duration;
//!
//! use doorway_client::machine::{Event, SessionMachine};
//! use doorway_client::{Moment, Options};
//!
//! let options = Options::default().patience(Duration::from_secs(10));
//! let start = Moment(0); // A test needs no clock.
//! let mut machine = SessionMachine::new(options.setup(), start);
//! let number = machine.status(start);
//! assert!(machine.wants_connection());
//!
//! // No node can be reached, and patience ends.
//! assert_eq!(machine.next_due(), start.after(Duration::from_secs(10)));
//! machine.tick(machine.next_due());
//! let Some(Event::Refused { number: refused, .. }) = machine.event() else { panic!() };
//! assert_eq!(refused, number);
//! ```

mod answers;
mod due;
mod event;
mod kept;
mod lease;
mod pending;
mod requests;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use doorway_protocol::text::cut;
use doorway_protocol::{
    Claim, Claims, ClientInfo, Code, Fence, Frames, Hello, Life, MAGIC, Moment, Name, Opening,
    Refusal, Request, VERSIONS, put,
};

pub use self::event::{Answer, Event};
use self::kept::KeptLock;
use self::lease::OpenSession;
pub use self::lease::State;
use self::pending::PendingRequest;

/// The TTL that asks for none: the session lives as long as the processes that have its connection.
/// A lease ([`Life::Lease`]) holds its lock until that is released or broken.
pub const UNLIMITED: Duration = Duration::from_millis(u32::MAX as u64);

/// The TTL over a network, if the client asks for none.
pub(crate) const OVER_NETWORK: Duration = Duration::from_secs(10);

/// How a [`SessionMachine`] opens its session.
#[derive(Clone, Debug)]
pub struct Setup {
    /// A description of the client, shown to people who ask who holds a lock.
    pub who: ClientInfo,
    /// A token that proves the client's rights, if the connection does not.
    pub token: Option<String>,
    /// The TTL of the session, and what else ends it; none for a client that only asks questions.
    /// With [`UNLIMITED`], the session lives as long as the processes that have its connection;
    /// over a network it has a TTL of 10 s all the same. A lease is without end then.
    pub session: Option<(Duration, Life)>,
    /// How long a request without a timeout waits for a node that cannot be reached. A request with
    /// a timeout waits for a node until then.
    pub patience: Duration,
    /// Whether the connection crosses a network, which may cut it. Then the session outlives the
    /// connection. On a Unix socket, the end of the connection ends the session.
    /// [`SessionMachine::connected_to`] changes it.
    pub network: bool,
    /// Whether to keep locks that the program has left until somebody else wants them. Then the
    /// session always has a TTL, 10 s if it asks for none. This concerns exclusive locks of a
    /// session that ends with its connection.
    pub keep: bool,
    /// How many nodes the driver may connect to. If there are several, a node that does not serve
    /// now is not the last word.
    pub nodes: usize,
}

/// The client's half of a session. The [module](self) says how to drive it.
#[derive(Clone, Debug)]
pub struct SessionMachine {
    setup: Setup,
    phase: Phase,
    session: Option<OpenSession>,
    /// A session that our clock has ended, although the node keeps it as long as our processes
    /// exist. It is resumed without claims, so that the node releases what it held.
    given_up: Option<OpenSession>,
    /// Grants that have come while we do not know whether the session is alive, by request. They
    /// count when the node has answered.
    doubtful: BTreeMap<u64, Fence>,
    /// The connection is neither closed nor made before this moment: the node would free at once
    /// what a session held that we have just given up.
    rests_until: Option<Moment>,
    /// The grants that we hold.
    grants: BTreeMap<(Fence, Name), Grant>,
    /// The locks that we keep until somebody else wants them, inside and outside.
    kept: BTreeMap<Name, KeptLock>,
    /// How many of them we are outside of.
    outside: usize,
    /// How many times we have left a lock and kept it.
    turns: u64,
    /// The version of the protocol that the node speaks with us.
    version: u16,
    /// The requests that have no answer yet, by number.
    pending: BTreeMap<u64, PendingRequest>,
    next_number: u64,
    /// Since when no node has welcomed us; none while a node talks to us.
    unreachable_since: Option<Moment>,
    /// When the node last sent something.
    heard: Moment,
    /// When the last heartbeat or greeting was sent.
    asked: Moment,
    /// No request is overdue before this moment.
    overdue: Moment,
    /// How many requests for locks have no answer yet.
    acquiring: usize,
    /// The node has just welcomed a session that needs a holder: see [`Secret::holder`].
    holder_due: bool,
    /// The place of the node that the last connection leads to.
    place: String,
    /// Why no node talks to us, by place.
    troubles: BTreeMap<String, String>,
    /// Whether the last connection has shown that the node does not serve us now.
    turned_away: bool,
    frames: Frames,
    outgoing: Vec<u8>,
    events: VecDeque<Event>,
}

/// The state of the connection to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// There is no connection.
    Disconnected,
    /// We sent our greeting at this moment, and wait for the answer.
    Greeting { said: Moment, resume: bool },
    /// The node has welcomed us.
    Talking,
    /// The connection cannot be used any more, and must be closed.
    Broken,
    /// The session is over, and no connection is wanted.
    Closed,
}

/// What is known of a grant, besides its lock.
#[derive(Clone, Copy, Debug, Hash)]
struct Grant {
    mode: doorway_protocol::Mode,
    permits: Option<u32>,
    request: u64,
    /// The fence by which the node knows the grant.
    base: Fence,
    /// The fence by which the program knows it. It is another one if the lock was kept.
    fence: Fence,
}

/// Machines with the same settings and the same hash have the same future. So a search can compare
/// them.
impl Hash for SessionMachine {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            setup: _,
            phase,
            session,
            given_up,
            doubtful,
            rests_until,
            grants,
            kept,
            outside: _, // This follows from `kept`.
            turns,
            version,
            pending,
            next_number,
            unreachable_since,
            heard,
            asked,
            overdue,
            acquiring,
            holder_due,
            place,
            troubles,
            turned_away,
            frames,
            outgoing,
            events,
        } = self;
        (phase, session, given_up, doubtful, rests_until).hash(state);
        (grants, kept, turns, version, pending, next_number).hash(state);
        (unreachable_since, heard, asked, overdue, acquiring).hash(state);
        (holder_due, place, troubles, turned_away).hash(state);
        (frames, outgoing, events).hash(state);
    }
}

impl Grant {
    fn claim(self, lock: &Name, fence: Fence) -> Claim {
        let Self { mode, permits, request, .. } = self;
        Claim { lock: lock.clone(), mode, permits, fence, request }
    }
}

impl SessionMachine {
    /// The maximum length of a label, a host or a prefix that is sent, in bytes.
    const TEXT: usize = 256;

    /// The maximum length of a token that is sent, in bytes. A longer token is cut, and the node
    /// refuses it.
    const TOKEN: usize = 4096;

    /// The trouble with a node that does not answer our greeting.
    const SILENT: &str = "it accepts connections but does not answer: is it stopped?";

    /// A machine whose session is still to be opened.
    pub fn new(mut setup: Setup, now: Moment) -> Self {
        setup.who.label.truncate(cut(&setup.who.label, Self::TEXT).len());
        setup.who.host.truncate(cut(&setup.who.host, Self::TEXT).len());
        setup.token = setup.token.map(|token| cut(&token, Self::TOKEN).to_owned());
        Self {
            setup,
            phase: Phase::Disconnected,
            session: None,
            given_up: None,
            doubtful: BTreeMap::new(),
            rests_until: None,
            grants: BTreeMap::new(),
            kept: BTreeMap::new(),
            outside: 0,
            turns: 0,
            version: VERSIONS.0,
            pending: BTreeMap::new(),
            next_number: 1,
            unreachable_since: Some(now),
            heard: now,
            asked: now,
            overdue: Moment::NEVER,
            acquiring: 0,
            holder_due: false,
            place: String::new(),
            troubles: BTreeMap::new(),
            turned_away: false,
            frames: Frames::default(),
            outgoing: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// Is a connection wanted? Not after [`SessionMachine::bye`].
    pub fn wants_connection(&self) -> bool {
        self.phase == Phase::Disconnected && self.rests_until.is_none()
    }

    /// Must the connection be closed, after what is outgoing has been written?
    pub fn must_close(&self) -> bool {
        self.phase == Phase::Closed || self.phase == Phase::Broken && self.rests_until.is_none()
    }

    /// Has the node welcomed us on the current connection?
    pub fn is_talking(&self) -> bool {
        self.phase == Phase::Talking
    }

    /// Must the next connection lead to the node of the last one? It must if the session holds
    /// something, because no other node knows of that.
    pub fn is_bound(&self) -> bool {
        let leaving = || self.pending.values().any(|pending| pending.own.is_some());
        self.session.is_some() && (!self.grants.is_empty() || leaving())
    }

    /// Did the last connection end because the node does not serve this client now? Then another
    /// node should be tried.
    pub fn is_turned_away(&self) -> bool {
        self.turned_away
    }

    /// Change how long a request waits for a node that cannot be reached.
    pub fn set_patience(&mut self, patience: Duration) {
        self.setup.patience = patience;
        self.recount();
    }

    /// Tell the machine that no connection could be made to the node at this place, and why.
    pub fn cannot_connect(&mut self, place: &str, why: &str) {
        self.troubles.insert(place.to_owned(), why.to_owned());
    }

    /// Tell the machine that a connection was made to the node at this place, which may be another
    /// node than before, and whether it crosses a network.
    ///
    /// A session exists at one node only. If this is another place, the machine gives up its
    /// session: grants that it still holds are lost, and requests that wait are sent to this node.
    /// If another node is at the same place, it says so: see
    /// [`Code::Elsewhere`].
    pub fn connected_to(&mut self, now: Moment, place: &str, network: bool) {
        if self.phase != Phase::Disconnected {
            return;
        }
        if self.session.as_ref().is_some_and(|session| session.place != place) {
            self.lose_all("the client uses another node now");
        }
        self.given_up.take_if(|session| session.place != place);
        place.clone_into(&mut self.place);
        self.setup.network = network;
        self.connected(now);
    }

    /// Tell the machine that a connection was made to its one node, or to the node of the last
    /// connection.
    pub fn connected(&mut self, now: Moment) {
        if self.phase != Phase::Disconnected {
            return;
        }
        self.turned_away = false;
        self.expire(now);
        self.outgoing.clear();
        self.outgoing.extend_from_slice(&MAGIC);
        let resume = self.session.is_some() || self.given_up.is_some();
        self.say_hello();
        self.phase = Phase::Greeting { said: now, resume };
        if self.may_send() {
            self.send_pending(now);
        }
    }

    /// Tell the machine that the connection has ended, because the node or the network closed it,
    /// or because of [`SessionMachine::must_close`].
    ///
    /// A driver that closes the connection for reasons of its own calls [`SessionMachine::bye`]
    /// before: on a Unix socket, closing the connection ends the session and releases everything
    /// that it holds.
    pub fn disconnected(&mut self, now: Moment) {
        self.frames = Frames::default();
        self.outgoing.clear();
        // The node repeats the grants that it still has.
        self.doubtful.clear();
        self.forget_all_kept();
        if self.phase == Phase::Closed {
            return;
        }
        if matches!(self.phase, Phase::Greeting { .. }) {
            self.turn_away(if self.setup.network {
                "it closed the connection before it greeted: is this the HTTP port, or the port \
                 for members, instead of the one for sessions?"
            } else {
                "it closed the connection before it greeted"
            });
        }
        self.phase = Phase::Disconnected;
        self.unreachable_since.get_or_insert(now);
        // When we resume the session, withdrawn requests are not among those that we wait for, and
        // a welcome proves more than the answer to a heartbeat.
        self.pending.retain(|_, pending| !(pending.is_withdrawn() || pending.is_heartbeat()));
        self.recount();
        self.expire(now);
    }

    /// The bytes that are to be written to the connection. The caller removes what it has written.
    pub fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    /// Take the next event.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether the session is still alive at this moment. Without a session, everything is lost.
    pub fn state(&self, now: Moment) -> State {
        self.session.as_ref().map_or(State::Lost, |session| session.state(now))
    }

    fn lives_with_processes(&self) -> bool {
        self.session.as_ref().is_some_and(OpenSession::lives_with_processes)
    }

    /// Whether this grant is still held at this moment.
    pub fn grant_state(&self, lock: &Name, fence: Fence, now: Moment) -> State {
        if self.grants.contains_key(&(fence, lock.clone())) { self.state(now) } else { State::Lost }
    }

    /// When everything that is held is lost, unless the node answers before; none if there is no
    /// session, or if the session does not expire.
    pub fn deadline(&self) -> Option<Moment> {
        let at = self.session.as_ref()?.lost_at();
        (at != Moment::NEVER).then_some(at)
    }

    /// The TTL of the session: how long it lives without a message from the client.
    pub fn ttl(&self) -> Option<Duration> {
        self.session.as_ref().map(|session| session.ttl)
    }

    /// Since when no node has served this client; none while one does.
    pub fn unreachable_since(&self) -> Option<Moment> {
        self.unreachable_since
    }

    /// The grants that are held, with the fences that the program knows. Locks that are kept while
    /// the program is outside are not among them.
    pub fn held(&self) -> impl Iterator<Item = Claim> {
        self.grants.iter().map(|((fence, lock), grant)| grant.claim(lock, *fence))
    }

    /// The fence by which the node knows a grant that is held. It is another one than the fence of
    /// the grant if the client has kept the lock and entered again.
    pub fn first_fence(&self, lock: &Name, fence: Fence) -> Option<Fence> {
        self.grants.get(&(fence, lock.clone())).map(|grant| grant.base)
    }

    /// Write the greeting. It claims what the client believes it holds, and names its requests.
    fn say_hello(&mut self) {
        let mut pages = VecDeque::new();
        let known = self.session.as_ref().or(self.given_up.as_ref());
        let opening = match (known, self.setup.session) {
            (Some(session), _) => {
                pages = self.claims();
                let first = pages.pop_front().unwrap_or_default();
                Opening::Resume {
                    node: session.node.clone(),
                    session: session.id,
                    secret: session.secret,
                    ttl_ms: millis(if session.lives_with_processes() || session.is_endless() {
                        UNLIMITED
                    } else {
                        session.ttl
                    }),
                    life: session.life,
                    held: first.held,
                    waiting: first.waiting,
                    more: first.more,
                }
            }
            (None, Some((ttl, life))) => {
                let limited = match life {
                    Life::Connection { .. } => self.setup.network || self.setup.keep,
                    Life::Process { .. } => true,
                    Life::Lease => false,
                };
                let ttl = if limited && ttl == UNLIMITED { OVER_NETWORK } else { ttl };
                // A lease of more than 49 days is not one without end.
                let too_long = life == Life::Lease && ttl > UNLIMITED;
                Opening::New { ttl_ms: millis(ttl) - u32::from(too_long), life }
            }
            (None, None) => Opening::Visit,
        };
        let (who, token) = (self.setup.who.clone(), self.setup.token.clone());
        put(&Hello { versions: VERSIONS, who, token, opening }, &mut self.outgoing);
        for page in pages {
            put(&page, &mut self.outgoing);
        }
    }

    /// What we hold and what we wait for, in pages that fit into a frame.
    fn claims(&self) -> VecDeque<Claims> {
        // If a release was not sent yet, we claim its grant: otherwise the node would free the lock
        // now, and its answer to the release would mean that the grant was lost before. If a
        // release was sent, the lock may belong to another client by now.
        let leaving = self.pending.values().filter(|pending| !pending.sent);
        let leaving = leaving.filter_map(|pending| match (&pending.request, pending.own) {
            (Request::Release(_, lock, fence), Some(grant)) => Some(grant.claim(lock, *fence)),
            _ => None,
        });
        let inside = self.grants.iter().map(|((_, lock), grant)| grant.claim(lock, grant.base));
        let held: Vec<_> = inside.chain(leaving).collect();
        let acquires = self.pending.values().filter(|pending| pending.is_acquire());
        let waiting: Vec<_> = acquires.map(PendingRequest::number).collect();
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

    /// The node of this connection does not serve us now, for this reason.
    fn turn_away(&mut self, why: &str) {
        self.turned_away = true;
        self.troubles.insert(self.place.clone(), why.to_owned());
    }

    /// Does the session end when we close the connection?
    fn ends_with_connection(&self) -> bool {
        let by_connection = |session: &OpenSession| matches!(session.life, Life::Connection { .. });
        !self.setup.network && self.session.as_ref().is_some_and(by_connection)
    }

    /// The session is lost, and all its grants with it. Requests that wait are sent again in the
    /// next session.
    fn lose_all(&mut self, reason: &str) {
        (self.session, self.given_up) = (None, None);
        self.doubtful.clear();
        self.forget_all_kept();
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

/// Whole milliseconds, as the protocol counts them.
fn millis(span: Duration) -> u32 {
    u32::try_from(span.as_millis()).unwrap_or(u32::MAX)
}

//! A node, another node to which its address may lead, two clients and what is on its way between
//! them, as a value.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash as _, Hasher as _};
use std::time::Duration;

use doorway_client::machine::{Event, SessionMachine, Setup, State};
use doorway_protocol::{Ask, ClientInfo, Fence, Life, MAGIC, Mode, Moment, Name, Wait};
use doorway_sessions::{Connection, Input};
use parking_lot::Mutex;
use rustc_hash::{FxHashSet, FxHasher};

use super::super::shell::Shell;
use super::copy_on_write::CopyOnWrite;
use super::{Restart, Search, TTL};

/// What must never happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Two clients believe that they hold the lock.
    TwoInside,
    /// A client believes that it holds the lock, and the node has given it to another.
    GivenAway,
    /// A grant was told after one with the same or a higher fence.
    FenceGoesBack,
    /// A grant was lost before its client's own clock said so.
    LostInTime,
    /// A request was answered twice.
    AnsweredTwice,
    /// When nothing goes wrong any more, a client gets no answer, or something is left of it.
    NeverDone,
}

/// One thing that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A client connects.
    Connect(usize),
    /// The node receives what is next on a connection.
    Up(Connection),
    /// The client receives what is next on its connection.
    Down(usize),
    /// The node closes a connection, or learns that it has ended.
    NodeEnds(Connection),
    /// The client learns that its connection has ended.
    ClientEnds(usize),
    /// A client does what is due.
    Tick(usize),
    /// A client that is inside leaves.
    Leave(usize),
    /// A client that has left asks for the lock again.
    Ask(usize),
    /// A client that has asked looks at the answer, and enters.
    Look(usize),
    /// Time passes.
    Pass,
    /// The node is killed, or begins to stop.
    Halt,
    /// The process that was told to stop has ended.
    Exit,
    /// The next process is started.
    Start,
    /// The connection of a client is cut.
    Cut(usize),
    /// A client is killed.
    Kill(usize),
    /// The node learns that the process of a client has ended.
    ProcessEnds(usize),
    /// The address of the node leads a client to another node from now on.
    Stray(usize),
    /// The address leads to the node again.
    Return(usize),
}

/// The state of everything.
#[derive(Clone, Debug, Hash)]
pub(crate) struct World {
    shell: CopyOnWrite<Shell>,
    /// Another node, which grants nothing, but lets clients reclaim what they held. It is there if
    /// the address of the node may lead to it.
    other: Option<CopyOnWrite<Shell>>,
    clients: [CopyOnWrite<Client>; 2],
    links: BTreeMap<Connection, Link>,
    now: Moment,
    spans: u8,
    faults: u8,
    halts: u8,
    detours: u8,
    stopping: bool,
    /// The highest fence that a client was told.
    told: Option<Fence>,
}

#[derive(Clone, Debug, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Client {
    machine: SessionMachine,
    link: Option<Connection>,
    /// How many connections it has made.
    connects: u64,
    /// Whether the address of the node leads this client to another node.
    astray: bool,
    /// How much its clock is late.
    late: Duration,
    /// Whether it asks again if it loses the lock.
    asks_again: bool,
    /// Whether it keeps the lock, and has yet to ask for it.
    is_new: bool,
    /// How often it asks again after it has left.
    rounds: u8,
    /// Whether it has asked, and has yet to look at the answer.
    unread: bool,
    part: Part,
    /// The requests that have no answer.
    open: BTreeSet<u64>,
}

/// How far a client has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Part {
    Waits,
    Inside(Fence),
    Leaves,
    /// It has left, and may keep the lock.
    Outside,
    /// Its process has ended.
    Gone,
}

/// A connection with the frames that are on their way.
#[derive(Clone, Debug, Default, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is read on its own")]
struct Link {
    up: VecDeque<Vec<u8>>,
    down: VecDeque<Vec<u8>>,
    /// Whether it leads to the other node.
    astray: bool,
    /// Whether each side has closed it, or knows that it has ended.
    client_ended: bool,
    node_ended: bool,
    /// Whether frames that are on their way may be lost: the connection was cut, or the node was
    /// killed.
    torn: bool,
}

fn lock() -> Name {
    Name::new("a").expect("a name")
}

fn ask() -> Ask {
    Ask { lock: lock(), mode: Mode::Exclusive, permits: None, wait: Wait::Forever }
}

impl World {
    pub(super) fn new(search: &Search) -> Self {
        let now = Moment(0);
        let client = |who| {
            let keep = search.keep && who == 0;
            let endless = search.endless && who == 0;
            let has_ttl = search.network && !endless;
            let ttl = if has_ttl { TTL } else { Duration::from_millis(u32::MAX.into()) };
            let life = if endless { Life::Lease } else { Life::Connection { inherited: false } };
            let mut machine = SessionMachine::new(
                Setup {
                    who: ClientInfo::default(),
                    token: None,
                    session: Some((ttl, life)),
                    patience: Duration::from_secs(1_000_000),
                    network: search.network,
                    keep,
                    nodes: 1,
                },
                now,
            );
            // Before it is welcomed, a client does not know whether the node lets it keep locks.
            let open = (!keep).then(|| machine.acquire(now, ask())).into_iter().collect();
            Client {
                machine,
                link: None,
                connects: 0,
                astray: false,
                late: Duration::ZERO,
                asks_again: search.member,
                is_new: keep,
                rounds: u8::from(keep),
                unread: false,
                part: Part::Waits,
                open,
            }
        };
        let shell = if search.member {
            Shell::member(now, TTL, TTL * 10 / 7)
        } else {
            Shell::new(now, TTL, search.network, search.mistake)
        };
        Self {
            shell: CopyOnWrite::new(shell),
            other: (search.detours > 0)
                .then(|| CopyOnWrite::new(Shell::bereft(now, TTL, search.mistake))),
            clients: [0, 1].map(|who| CopyOnWrite::new(client(who))),
            links: BTreeMap::new(),
            now,
            spans: search.spans,
            faults: search.faults,
            halts: search.restarts,
            detours: search.detours,
            stopping: false,
            told: None,
        }
    }

    pub(super) fn actions(&self, search: &Search) -> Vec<Action> {
        let mut actions = self.duties();
        for (who, client) in self.clients.iter().enumerate() {
            if client.part == Part::Outside {
                actions.push(Action::Ask(who));
            }
        }
        if self.spans > 0 {
            actions.push(Action::Pass);
        }
        if self.halts > 0 && self.shell.is_up() {
            actions.push(Action::Halt);
        }
        let strays = |client: &Client| self.detours > 0 && !client.astray;
        for (who, client) in self.clients.iter().enumerate() {
            if strays(client) && client.link.is_some() {
                actions.push(Action::Stray(who));
            }
        }
        for (who, client) in self.clients.iter().enumerate().filter(|_| self.faults > 0) {
            match search.network {
                true if client.link.is_some() => actions.push(Action::Cut(who)),
                false if client.part != Part::Gone => actions.push(Action::Kill(who)),
                _ => {}
            }
        }
        actions
    }

    /// What happens some time if nothing goes wrong, except that time passes.
    fn duties(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (who, client) in self.clients.iter().enumerate() {
            if client.astray {
                actions.push(Action::Return(who));
            }
            let listens = client.astray || self.shell.is_up() && !self.stopping;
            if client.machine.wants_connection() && listens {
                actions.push(Action::Connect(who));
            }
            if let Some(link) = client.link.and_then(|link| self.links.get(&link)) {
                if !link.down.is_empty() {
                    actions.push(Action::Down(who));
                }
                if link.torn || link.node_ended && link.down.is_empty() {
                    actions.push(Action::ClientEnds(who));
                }
            }
            if client.machine.next_due() <= self.moment(who) {
                actions.push(Action::Tick(who));
            }
            if matches!(client.part, Part::Inside(_)) {
                actions.push(Action::Leave(who));
            }
            if client.unread {
                actions.push(Action::Look(who));
            }
            let ended = client.part == Part::Gone || self.shell.mistakes_processes();
            if ended && self.shell.watches(pid(who)) {
                actions.push(Action::ProcessEnds(who));
            }
        }
        for (connection, link) in self.links.iter().filter(|(_, link)| !link.node_ended) {
            if !link.up.is_empty() {
                actions.push(Action::Up(*connection));
            }
            let ended = link.torn || link.client_ended && link.up.is_empty();
            let other = self.other.as_deref().filter(|_| link.astray);
            let node = other.unwrap_or(&self.shell);
            if ended || node.is_closing(*connection) {
                actions.push(Action::NodeEnds(*connection));
            }
        }
        if !self.shell.is_up() {
            actions.push(Action::Start);
        }
        if self.stopping {
            actions.push(Action::Exit);
        }
        actions
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each action")]
    pub(super) fn apply(&mut self, search: &Search, action: Action) -> Result<(), Wrong> {
        match action {
            Action::Connect(who) => {
                let client = &mut *self.clients[who];
                client.connects += 1;
                let connection = Connection(2 * client.connects + who as u64);
                client.link = Some(connection);
                let astray = client.astray;
                self.links.insert(connection, Link { astray, ..Link::default() });
                self.node(connection).connect(connection, pid(who));
                let now = self.moment(who);
                let deadline = self.clients[who].machine.deadline();
                self.clients[who].machine.connected(now);
                self.look(who, deadline)?;
                self.client_acted(who)?;
            }
            Action::Up(connection) => {
                let Some(link) = self.links.get_mut(&connection) else { return Ok(()) };
                let bytes = arrive(&mut link.up, search);
                self.node(connection).receive(connection, &bytes);
            }
            Action::Down(who) => {
                let now = self.moment(who);
                let Some(link) = self.link(who) else { return Ok(()) };
                let bytes = arrive(&mut link.down, search);
                let deadline = self.clients[who].machine.deadline();
                self.clients[who].machine.receive(now, &bytes);
                self.look(who, deadline)?;
                self.client_acted(who)?;
            }
            Action::NodeEnds(connection) => {
                self.node(connection).hang_up(connection);
                if let Some(link) = self.links.get_mut(&connection) {
                    link.node_ended = true;
                    link.up.clear();
                }
            }
            Action::ClientEnds(who) => self.close(who)?,
            Action::Tick(who) => {
                let now = self.moment(who);
                let deadline = self.clients[who].machine.deadline();
                self.clients[who].machine.tick(now);
                self.look(who, deadline)?;
                self.client_acted(who)?;
            }
            Action::Leave(who) => self.leave(who)?,
            Action::Ask(who) => {
                let now = self.moment(who);
                let client = &mut *self.clients[who];
                client.part = Part::Waits;
                client.rounds -= 1;
                client.open.insert(client.machine.acquire(now, ask()));
                client.unread = true;
                self.client_acted(who)?;
            }
            Action::Look(who) => {
                let deadline = self.clients[who].machine.deadline();
                self.look(who, deadline)?;
            }
            Action::Pass => {
                self.spans -= 1;
                let first = &mut self.clients[0];
                let concerned = !search.keep || first.part == Part::Outside;
                if search.slow_clock && self.spans + 1 == search.spans && concerned {
                    first.late = search.span;
                }
                self.pass(search.span);
            }
            Action::Halt => {
                self.halts -= 1;
                if search.restart == Restart::Stop {
                    self.stopping = true;
                    self.shell.run(Input::Stop);
                } else {
                    // What the node has written to a Unix socket can be read after its death.
                    self.exit(search.network);
                }
            }
            Action::Exit => self.exit(false),
            Action::Start => self.shell.start(search.restart == Restart::CrashWithOldLedger),
            Action::Cut(who) => {
                self.faults -= 1;
                self.cut(who);
            }
            Action::Stray(who) => {
                self.detours -= 1;
                self.clients[who].astray = true;
                self.cut(who);
            }
            Action::Return(who) => {
                self.clients[who].astray = false;
                self.cut(who);
            }
            Action::Kill(who) => {
                self.faults -= 1;
                self.clients[who].machine.bye();
                self.clients[who].machine.outgoing().clear();
                self.clients[who].open.clear();
                // Nobody looks at an answer that came before.
                while self.clients[who].machine.event().is_some() {}
                self.clients[who].unread = false;
                self.gone(who)?;
            }
            Action::ProcessEnds(who) => self.shell.process_ended(pid(who)),
        }
        self.node_acted();
        self.links.retain(|_, link| !(link.client_ended && link.node_ended));
        Ok(())
    }

    /// The clock of a client.
    fn moment(&self, who: usize) -> Moment {
        Moment(self.now.0 - self.clients[who].late.as_nanos() as u64)
    }

    fn link(&mut self, who: usize) -> Option<&mut Link> {
        self.links.get_mut(&self.clients[who].link?)
    }

    /// The node to which a connection leads.
    fn node(&mut self, connection: Connection) -> &mut Shell {
        let astray = self.links.get(&connection).is_some_and(|link| link.astray);
        self.other.as_deref_mut().filter(|_| astray).unwrap_or(&mut self.shell)
    }

    fn cut(&mut self, who: usize) {
        if let Some(link) = self.link(who) {
            (link.up, link.down) = Default::default();
            link.torn = true;
        }
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now.after(span);
        self.shell.pass(self.now);
        if let Some(other) = &mut self.other {
            other.pass(self.now);
        }
    }

    /// The process of the node has ended.
    fn exit(&mut self, torn: bool) {
        self.stopping = false;
        self.shell.kill();
        for link in self.links.values_mut().filter(|link| !link.astray) {
            link.torn |= torn;
            link.node_ended = true;
            link.up.clear();
        }
    }

    fn leave(&mut self, who: usize) -> Result<(), Wrong> {
        let now = self.moment(who);
        let client = &mut *self.clients[who];
        let Part::Inside(fence) = client.part else { return Ok(()) };
        if who == 0 {
            // The first client releases the lock, and waits for the answer.
            client.part = Part::Leaves;
            let deadline = client.machine.deadline();
            let number = client.machine.release(now, &lock(), fence);
            client.open.insert(number);
            self.look(who, deadline)?;
            self.client_acted(who)
        } else {
            self.clients[who].machine.bye();
            self.gone(who)
        }
    }

    /// A client ends its process, or is killed.
    fn gone(&mut self, who: usize) -> Result<(), Wrong> {
        self.clients[who].part = Part::Gone;
        self.client_acted(who)
    }

    /// Send what a client has to send, and close its connection if it has to be closed.
    fn client_acted(&mut self, who: usize) -> Result<(), Wrong> {
        let bytes = std::mem::take(self.clients[who].machine.outgoing());
        let must_close = self.clients[who].machine.must_close();
        let Some(link) = self.link(who) else { return Ok(()) };
        if !link.torn && !link.node_ended {
            link.up.extend(frames(&bytes));
        }
        if must_close { self.close(who) } else { Ok(()) }
    }

    fn close(&mut self, who: usize) -> Result<(), Wrong> {
        let now = self.moment(who);
        if let Some(link) = self.link(who) {
            link.client_ended = true;
            link.down.clear();
        }
        self.clients[who].link = None;
        let deadline = self.clients[who].machine.deadline();
        self.clients[who].machine.disconnected(now);
        self.look(who, deadline)
    }

    /// Put what the node has written on its way.
    fn node_acted(&mut self) {
        for (connection, link) in &mut self.links {
            let other = self.other.as_mut().filter(|_| link.astray);
            let node = other.unwrap_or(&mut self.shell);
            if node.has_written(*connection)
                && let Some(bytes) = node.outgoing(*connection)
            {
                let bytes = std::mem::take(bytes);
                if !link.torn && !link.client_ended {
                    link.down.extend(frames(&bytes));
                }
            }
        }
    }

    /// Handle the events of a client, whose session was to be lost at this moment before.
    fn look(&mut self, who: usize, deadline: Option<Moment>) -> Result<(), Wrong> {
        let now = self.moment(who);
        let mut done = false;
        let Self { clients, told, .. } = self;
        let client = &mut *clients[who];
        client.unread = false;
        while let Some(event) = client.machine.event() {
            let number = match event {
                Event::Granted { number, fence, .. }
                    if client.machine.grant_state(&lock(), fence, now) == State::Lost =>
                {
                    // The client was stopped before it could enter. A client that has entered
                    // since has a higher fence.
                    if *told == Some(fence) {
                        return Err(Wrong::FenceGoesBack);
                    }
                    done = true;
                    number
                }
                Event::Granted { number, fence, .. } => {
                    if told.is_some_and(|told| told >= fence) {
                        return Err(Wrong::FenceGoesBack);
                    }
                    *told = Some(fence);
                    client.part = Part::Inside(fence);
                    number
                }
                Event::Released { number, held: true } if client.rounds > 0 => {
                    client.part = Part::Outside;
                    number
                }
                Event::Welcome { .. } if std::mem::take(&mut client.is_new) => {
                    client.open.insert(client.machine.acquire(now, ask()));
                    continue;
                }
                Event::Released { number, .. }
                | Event::Refused { number, .. }
                | Event::Unknown { number, .. } => {
                    done = true;
                    number
                }
                Event::Lost { .. } => {
                    if deadline.is_none_or(|deadline| now < deadline) {
                        return Err(Wrong::LostInTime);
                    }
                    if std::mem::take(&mut client.asks_again) && client.part != Part::Leaves {
                        client.part = Part::Waits;
                        client.open.insert(client.machine.acquire(now, ask()));
                    } else {
                        done |= client.part != Part::Leaves;
                    }
                    continue;
                }
                _ => continue,
            };
            if !client.open.remove(&number) {
                return Err(Wrong::AnsweredTwice);
            }
        }
        if done && client.part != Part::Gone {
            client.machine.bye();
            self.gone(who)?;
        }
        Ok(())
    }

    /// Check what clients believe.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let mut inside = 0;
        for (who, client) in self.clients.iter().enumerate() {
            let (now, machine) = (self.moment(who), &client.machine);
            let Some(claim) = machine.held().next() else { continue };
            if machine.grant_state(&claim.lock, claim.fence, now) == State::Lost {
                continue;
            }
            inside += 1;
            let first = machine.first_fence(&claim.lock, claim.fence);
            if self.shell.locks.holder(&claim.lock).is_some_and(|fence| Some(fence) != first) {
                return Err(Wrong::GivenAway);
            }
        }
        if inside > 1 { Err(Wrong::TwoInside) } else { Ok(()) }
    }

    /// Let nothing go wrong any more. Then every client gets in and leaves, and nothing is left.
    pub(super) fn heal(&self, search: &Search, healed: &HealedWorlds) -> Result<(), Wrong> {
        let mut world = self.clone();
        let mut way = Vec::new();
        for _ in 0..20 {
            // A client whose session is over opens a new one, so this ends soon.
            for _ in 0..200 {
                way.push(fingerprint(&world));
                if healed.contains(&way) {
                    return Ok(());
                }
                let duties = world.duties();
                let Some(action) = duties.first() else { break };
                world.apply(search, *action)?;
                world.check()?;
            }
            if world.is_done() {
                healed.insert(way);
                return Ok(());
            }
            // A client that is outside and asks for nothing keeps nobody waiting. It leaves last.
            let idle =
                |client: &CopyOnWrite<Client>| matches!(client.part, Part::Gone | Part::Outside);
            if world.clients.iter().all(idle) {
                for who in 0..world.clients.len() {
                    if world.clients[who].part == Part::Outside {
                        world.clients[who].machine.bye();
                        world.gone(who)?;
                    }
                }
            }
            world.pass(TTL / 5);
            world.node_acted();
        }
        Err(Wrong::NeverDone)
    }

    fn is_done(&self) -> bool {
        let gone =
            |client: &CopyOnWrite<Client>| client.part == Part::Gone && client.open.is_empty();
        self.clients.iter().all(gone)
            && self.links.is_empty()
            && self.shell.sessions.is_clean()
            && self.shell.ledger.is_empty()
            && self.other.as_ref().is_none_or(|other| other.sessions.is_clean())
    }
}

/// The worlds from which every client is known to get in and leave if nothing goes wrong any more.
/// What happens then depends on the world only, so a way that leads to one of them need not be
/// followed to its end.
#[derive(Default)]
pub(super) struct HealedWorlds(Mutex<FxHashSet<u64>>);

impl HealedWorlds {
    /// Does this way end in a known world? Then all worlds on it are known from now on.
    fn contains(&self, way: &[u64]) -> bool {
        let mut known = self.0.lock();
        let contains = way.last().is_some_and(|last| known.contains(last));
        if contains {
            known.extend(way);
        }
        contains
    }

    /// All clients were done at the end of this way.
    fn insert(&self, way: Vec<u64>) {
        self.0.lock().extend(way);
    }
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = FxHasher::default();
    world.hash(&mut hasher);
    hasher.finish()
}

/// The process ID of a client.
fn pid(who: usize) -> u32 {
    100 + who as u32
}

/// Take what arrives next: one frame or, over a network or at a member, all that is on its way.
/// There time makes many more states.
fn arrive(queue: &mut VecDeque<Vec<u8>>, search: &Search) -> Vec<u8> {
    if search.network || search.member {
        queue.drain(..).flatten().collect()
    } else {
        queue.pop_front().unwrap_or_default()
    }
}

/// Split bytes into frames. The first one has the bytes that come before all frames.
fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let before = if bytes.starts_with(&MAGIC) { MAGIC.len() } else { 0 };
        let length = u32::from_le_bytes(bytes[before..before + 4].try_into().expect("4 bytes"));
        let (frame, rest) = bytes.split_at(before + 4 + length as usize);
        frames.push(frame.to_vec());
        bytes = rest;
    }
    frames
}

//! A small model of a node: sessions with a TTL, locks with queues, crashes and reclaiming.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use doorway_client::{Code, Fence, Name, Refusal};
use doorway_protocol::{
    Claim, Claims, Frames, Greeting, Hello, Opening, Reply, Request, Scope, Secret, SessionId,
    Wait, Welcome, put,
};

pub(crate) struct Server {
    pub(crate) now: u64,
    pub(crate) ttl: u64,
    /// Whether clients come over a network. Then a session outlives its connection.
    network: bool,
    sessions: BTreeMap<u64, Session>,
    pub(crate) locks: BTreeMap<Name, Lock>,
    pub(crate) connections: BTreeMap<usize, Connection>,
    pub(crate) next_session: u64,
    pub(crate) fence: u64,
    /// How many heartbeats the node has received.
    pub(crate) heartbeats: usize,
    /// Until this moment former holders may reclaim their locks, and nothing is granted.
    reclaim_until: u64,
}

#[derive(Default)]
struct Session {
    heard: u64,
    connection: Option<usize>,
    held: BTreeMap<u64, (Name, Fence)>,
    /// The locks that the session waits for, and until when.
    waiting: BTreeMap<u64, (Name, u64)>,
}

#[derive(Default)]
pub(crate) struct Lock {
    pub(crate) holder: Option<(u64, u64, Fence)>,
    queue: VecDeque<(u64, u64)>,
}

#[derive(Default)]
pub(crate) struct Connection {
    frames: Frames,
    greeted: bool,
    magic: bool,
    session: Option<u64>,
    /// The locks that the client waits to see free, by the number of the request.
    awaits: BTreeMap<u64, Name>,
    resuming: Option<(Opening, Claims)>,
    pub(crate) out: Vec<u8>,
}

impl Server {
    pub(crate) fn new(ttl: u64, network: bool) -> Self {
        Self {
            now: 0,
            ttl,
            network,
            sessions: BTreeMap::new(),
            locks: BTreeMap::new(),
            connections: BTreeMap::new(),
            next_session: 0,
            fence: 0,
            heartbeats: 0,
            reclaim_until: 0,
        }
    }

    pub(crate) fn connect(&mut self, connection: usize) {
        self.connections.insert(connection, Connection::default());
    }

    pub(crate) fn disconnect(&mut self, connection: usize) {
        self.connections.remove(&connection);
        let mut sessions = self.sessions.iter_mut();
        let Some((&id, session)) = sessions.find(|it| it.1.connection == Some(connection)) else {
            return;
        };
        session.connection = None;
        if !self.network {
            self.end(id);
        }
    }

    /// The number of open sessions.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Forget everything, as a node does that is killed and started again. For one TTL, clients may
    /// reclaim what they held.
    pub(crate) fn crash(&mut self) {
        self.sessions.clear();
        self.connections.clear();
        self.locks.clear();
        self.reclaim_until = self.now + self.ttl;
    }

    /// Let time pass until this moment: sessions expire, and waits time out.
    pub(crate) fn pass(&mut self, now: u64) {
        self.now = now;
        let over = |session: &Session| session.heard + self.ttl <= now;
        let ended: Vec<u64> =
            self.sessions.iter().filter(|(_, it)| over(it)).map(|(id, _)| *id).collect();
        for id in ended {
            self.end(id);
        }
        let late = self.sessions.iter().flat_map(|(id, session)| {
            let late = session.waiting.iter().filter(|(_, (_, until))| *until <= now);
            late.map(|(number, _)| (session.connection, *id, *number))
        });
        for (connection, id, number) in late.collect::<Vec<_>>() {
            self.give_up(connection, id, number, Code::NotFree);
        }
        let names: Vec<Name> = self.locks.keys().cloned().collect();
        for name in &names {
            self.grant(name);
        }
    }

    fn end(&mut self, id: u64) {
        let Some(session) = self.sessions.remove(&id) else { return };
        for (number, (name, _)) in session.waiting {
            self.locks
                .get_mut(&name)
                .expect("the lock is in use")
                .queue
                .retain(|it| *it != (id, number));
        }
        for (_, (name, fence)) in session.held {
            self.free(&name, fence);
        }
        if let Some(connection) = session.connection {
            self.connections.remove(&connection);
        }
    }

    fn free(&mut self, name: &Name, fence: Fence) {
        let lock = self.locks.get_mut(name).expect("the lock is in use");
        assert_eq!(lock.holder.map(|(.., fence)| fence), Some(fence));
        lock.holder = None;
        self.grant(name);
    }

    fn grant(&mut self, name: &Name) {
        if self.now < self.reclaim_until {
            return;
        }
        let lock = self.locks.get_mut(name).expect("the lock is in use");
        if lock.holder.is_some() {
            return;
        }
        let Some((id, number)) = lock.queue.pop_front() else { return self.free_at_last(name) };
        self.fence += 1;
        let fence = Fence::new(1, self.fence);
        lock.holder = Some((id, number, fence));
        let session = self.sessions.get_mut(&id).expect("the session is open");
        session.waiting.remove(&number);
        session.held.insert(number, (name.clone(), fence));
        let connection = session.connection;
        self.say(connection, &Reply::Granted(number, fence));
    }

    /// Answer the clients that wait for this lock to be free.
    fn free_at_last(&mut self, name: &Name) {
        for connection in self.connections.values_mut() {
            let Connection { awaits, out, .. } = connection;
            awaits.retain(|number, lock| lock != name || !put(&Reply::Done(*number), out));
        }
    }

    fn say(&mut self, connection: Option<usize>, reply: &Reply) {
        if let Some(it) = connection.and_then(|it| self.connections.get_mut(&it)) {
            put(reply, &mut it.out);
        }
    }

    pub(crate) fn receive(&mut self, connection: usize, bytes: &[u8]) {
        let Some(it) = self.connections.get_mut(&connection) else { return };
        it.frames.feed(bytes);
        if !it.magic {
            it.magic = it.frames.magic().expect("the client sends MAGIC first");
        }
        while let Some(it) = self.connections.get_mut(&connection).filter(|it| it.magic) {
            if let Some((_, all)) = &mut it.resuming {
                let Some(page) = it.frames.take::<Claims>().expect("the client sends claims")
                else {
                    return;
                };
                all.held.extend(page.held);
                all.waiting.extend(page.waiting);
                if !page.more {
                    let (opening, all) = it.resuming.take().expect("the client resumes a session");
                    self.resume(connection, &opening, &all);
                }
            } else if it.greeted {
                let Some(request) = it.frames.take::<Request>().expect("the client sends requests")
                else {
                    return;
                };
                self.request(connection, request);
            } else {
                let Some(hello) = it.frames.take::<Hello>().expect("the client greets first")
                else {
                    return;
                };
                it.greeted = true;
                self.hello(connection, hello.opening);
            }
        }
    }

    fn hello(&mut self, connection: usize, opening: Opening) {
        match opening {
            Opening::New { .. } => {
                self.next_session += 1;
                self.welcome(connection, self.next_session, vec![]);
            }
            Opening::Resume { ref held, ref waiting, more, .. } => {
                let all = Claims { held: held.clone(), waiting: waiting.clone(), more };
                if more {
                    self.connections
                        .get_mut(&connection)
                        .expect("the connection is open")
                        .resuming = Some((opening, all));
                } else {
                    self.resume(connection, &opening, &all);
                }
            }
            Opening::Visit => self.greet(connection, None, vec![]),
        }
    }

    fn resume(&mut self, connection: usize, opening: &Opening, all: &Claims) {
        let Opening::Resume { session: SessionId(id), secret, .. } = *opening else { panic!() };
        assert_eq!(secret, Secret([id as u8; 16]));
        let mut lost = vec![];
        if !self.sessions.contains_key(&id) {
            if self.now >= self.reclaim_until {
                let refusal = Refusal { code: Code::Gone, text: "no such session".to_owned() };
                let to =
                    &mut self.connections.get_mut(&connection).expect("the connection is open").out;
                put(&Greeting::Err(refusal), to);
                return;
            }
            self.sessions.insert(id, Session { heard: self.now, ..Session::default() });
            all.held.iter().for_each(|claim| self.reclaim(id, claim));
        }
        let session = self.sessions.get_mut(&id).expect("the session is open");
        if let Some(old) = session.connection.take() {
            self.connections.remove(&old);
        }
        let claimed: BTreeSet<u64> = all.held.iter().map(|claim| claim.request).collect();
        lost.extend(all.held.iter().filter(|it| !session.held.contains_key(&it.request)).cloned());
        let wanted: BTreeSet<u64> = all.waiting.iter().copied().collect();
        let drop: Vec<_> = session.held.keys().copied().collect();
        let drop = drop.into_iter().filter(|it| !claimed.contains(it) && !wanted.contains(it));
        let freed: Vec<_> = drop.filter_map(|number| session.held.remove(&number)).collect();
        let gone: Vec<_> = session.waiting.keys().copied().collect();
        for number in gone.into_iter().filter(|number| !wanted.contains(number)) {
            let (name, _) = session.waiting.remove(&number).expect("the request waits");
            self.locks
                .get_mut(&name)
                .expect("the lock is in use")
                .queue
                .retain(|it| *it != (id, number));
        }
        let told: Vec<_> = session.held.iter().map(|(number, it)| (*number, it.1)).collect();
        self.welcome(connection, id, lost);
        for (number, fence) in told.into_iter().filter(|(number, _)| wanted.contains(number)) {
            self.say(Some(connection), &Reply::Granted(number, fence));
        }
        for (name, fence) in &freed {
            self.free(name, *fence);
        }
    }

    fn reclaim(&mut self, id: u64, claim: &Claim) {
        let lock = self.locks.entry(claim.lock.clone()).or_default();
        assert!(lock.holder.is_none(), "two sessions claim {}", claim.lock);
        lock.holder = Some((id, claim.request, claim.fence));
        let held = &mut self.sessions.get_mut(&id).expect("the session is open").held;
        held.insert(claim.request, (claim.lock.clone(), claim.fence));
    }

    fn welcome(&mut self, connection: usize, id: u64, lost: Vec<Claim>) {
        let session = self.sessions.entry(id).or_default();
        session.heard = self.now;
        session.connection = Some(connection);
        self.greet(connection, Some(id), lost);
    }

    fn greet(&mut self, connection: usize, session: Option<u64>, lost: Vec<Claim>) {
        let welcome = Welcome {
            version: 1,
            node: "model".to_owned(),
            scope: Scope::User,
            session: session.map(|id| (SessionId(id), Secret([id as u8; 16]))),
            ttl_ms: (self.ttl / 1_000_000) as u32,
            lost,
        };
        let it = self.connections.get_mut(&connection).expect("the connection is open");
        it.session = session;
        put(&Greeting::Ok(welcome), &mut it.out);
    }

    fn request(&mut self, connection: usize, request: Request) {
        let Some(id) = self.connections[&connection].session else {
            return self.question(connection, request);
        };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.heard = self.now;
        match request {
            Request::Acquire(number, ask) => {
                if let Some((_, fence)) = session.held.get(&number) {
                    let again = Reply::Granted(number, *fence);
                    return self.say(Some(connection), &again);
                }
                if session.waiting.contains_key(&number) {
                    return;
                }
                let until = match ask.wait {
                    Wait::No | Wait::Forever => u64::MAX,
                    Wait::Ms(ms) => self.now.saturating_add(ms.saturating_mul(1_000_000)),
                };
                session.waiting.insert(number, (ask.lock.clone(), until));
                let lock = self.locks.entry(ask.lock.clone()).or_default();
                lock.queue.push_back((id, number));
                self.grant(&ask.lock);
                if ask.wait == Wait::No {
                    self.give_up(Some(connection), id, number, Code::NotFree);
                }
            }
            Request::Withdraw(number) => {
                let held = session.held.remove(&number);
                if let Some((name, fence)) = held {
                    return self.free(&name, fence);
                }
                self.give_up(Some(connection), id, number, Code::Gone);
            }
            Request::Release(number, name, fence) => {
                let found = session.held.iter().find(|(_, it)| **it == (name.clone(), fence));
                let found = found.map(|(number, _)| *number);
                if let Some(grant) = found {
                    session.held.remove(&grant);
                    self.free(&name, fence);
                }
                self.say(Some(connection), &Reply::Released(number, found.is_some()));
            }
            Request::Bye => self.end(id),
            Request::Alive(number) => {
                self.heartbeats += 1;
                self.say(Some(connection), &Reply::Alive(number));
            }
            Request::Break(number, name, fence) => {
                let holder = self.locks.get(&name).and_then(|lock| lock.holder);
                if let Some((id, grant, _)) = holder.filter(|it| it.2 == fence) {
                    let session = self.sessions.get_mut(&id).expect("the session is open");
                    session.held.remove(&grant);
                    let told = session.connection;
                    self.say(told, &Reply::Lost(name.clone(), fence, "broken".to_owned()));
                    self.free(&name, fence);
                }
                self.say(Some(connection), &Reply::Done(number));
            }
            other => panic!("the model does not serve {other:?}"),
        }
    }

    /// Answer a client without a session.
    fn question(&mut self, connection: usize, request: Request) {
        match request {
            Request::Alive(number) => self.say(Some(connection), &Reply::Alive(number)),
            Request::Withdraw(number) => {
                let it = self.connections.get_mut(&connection).expect("the connection is open");
                it.awaits.remove(&number);
            }
            Request::AwaitFree(number, name) => {
                let it = self.connections.get_mut(&connection).expect("the connection is open");
                it.awaits.insert(number, name.clone());
                self.locks.entry(name.clone()).or_default();
                self.grant(&name);
            }
            Request::Bye => {}
            other => panic!("the model does not serve {other:?}"),
        }
    }

    /// Refuse a request, if it still waits.
    fn give_up(&mut self, connection: Option<usize>, id: u64, number: u64, code: Code) {
        let session = self.sessions.get_mut(&id).expect("the session is open");
        if let Some((name, _)) = session.waiting.remove(&number) {
            self.locks
                .get_mut(&name)
                .expect("the lock is in use")
                .queue
                .retain(|it| *it != (id, number));
            let text = "not now".to_owned();
            self.say(connection, &Reply::Refused(number, Refusal { code, text }));
        }
    }
}

//! Clients that are disconnected and suspended, and a node that is killed: no client believes
//! that it holds a lock that another was given, and every request is answered exactly once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorway_client::machine::{Event, SessionMachine, Setup, State};
use doorway_client::{Ask, ClientInfo, Fence, Life, Mode, Moment, Name, Wait};
use doorway_sessions::Connection;
use proptest::prelude::*;

use crate::shell::Shell;

/// The TTL of all sessions, in nanoseconds.
const TTL: u64 = 10_000_000_000;

/// A client with its own clock, and the bytes that are on their way to the node.
struct Client {
    machine: SessionMachine,
    /// Whether the client has no session, and only asks questions.
    visits: bool,
    /// How fast the client's clock runs, in thousandths of the speed of the node's clock.
    rate: u64,
    connection: Option<Connection>,
    /// The node of the last connection.
    at: usize,
    to_node: Vec<u8>,
    /// The requests without an answer, by number; true for those that wait for a lock.
    open: BTreeMap<u64, bool>,
    answered: BTreeSet<u64>,
    held: BTreeSet<(Name, Fence)>,
    /// The grants that the client has released or wants to release.
    left: BTreeSet<(Name, Fence)>,
}

struct World {
    /// Two nodes that have nothing in common.
    shells: [Shell; 2],
    clients: Vec<Client>,
    connections: u64,
    /// Whether nothing goes wrong any more, so that nothing may be lost.
    heals: bool,
    network: bool,
}

impl World {
    fn new(rates: &[u64], network: bool, patience: Duration) -> Self {
        let setup = Setup {
            who: ClientInfo::default(),
            token: None,
            session: Some((Duration::from_nanos(TTL), Life::Connection { inherited: false })),
            patience,
            network,
            keep: false,
            nodes: 2,
        };
        // The last client only asks questions.
        let visit = Setup { session: None, ..setup.clone() };
        let client = |(who, &rate): (usize, &u64)| Client {
            machine: SessionMachine::new(
                if who + 1 < rates.len() { setup.clone() } else { visit.clone() },
                Moment(0),
            ),
            visits: who + 1 == rates.len(),
            rate,
            connection: None,
            at: 0,
            to_node: vec![],
            open: BTreeMap::new(),
            answered: BTreeSet::new(),
            held: BTreeSet::new(),
            left: BTreeSet::new(),
        };
        let clients = rates.iter().enumerate().map(client).collect();
        let new = || Shell::new(Moment(0), Duration::from_nanos(TTL), network, None);
        let mut shells = [new(), new()];
        // The nodes know nothing of each other, so their numbers must not be mistaken.
        for _ in 0..100 {
            shells[1].kill();
            shells[1].start(false);
        }
        Self { shells, clients, connections: 0, heals: false, network }
    }

    fn moment(&self, who: usize) -> Moment {
        Moment(self.shells[0].now().0 / 1000 * self.clients[who].rate)
    }

    /// Connect to the node of the last connection, or to the other one if nothing is held.
    fn connect(&mut self, who: usize, elsewhere: bool) {
        let client = &mut self.clients[who];
        if client.machine.wants_connection() {
            if elsewhere && !client.machine.is_bound() {
                client.at = 1 - client.at;
            }
            self.connect_to(who, self.clients[who].at);
        }
    }

    fn connect_to(&mut self, who: usize, at: usize) {
        let now = self.moment(who);
        self.connections += 1;
        let connection = Connection(self.connections);
        self.shells[at].connect(connection, who as u32);
        let client = &mut self.clients[who];
        (client.connection, client.at) = (Some(connection), at);
        client.machine.connected_to(now, ["one", "two"][at], self.network);
    }

    /// Connect to the other node although the session may hold something here.
    fn desert(&mut self, who: usize) {
        if self.clients[who].machine.wants_connection() {
            self.connect_to(who, 1 - self.clients[who].at);
            assert_eq!(self.clients[who].machine.held().count(), 0, "it holds nothing there");
        }
    }

    fn disconnect(&mut self, who: usize) {
        let now = self.moment(who);
        if let Some(connection) = self.clients[who].connection.take() {
            self.shells[self.clients[who].at].hang_up(connection);
            self.clients[who].to_node.clear();
            self.clients[who].machine.disconnected(now);
        }
    }

    /// Deliver some of the bytes that are on their way.
    fn deliver(&mut self, who: usize, at_most: usize, to_node: bool) {
        let now = self.moment(who);
        let client = &mut self.clients[who];
        let Some(connection) = client.connection else { return };
        if to_node {
            client.to_node.append(client.machine.outgoing());
            let count = client.to_node.len().min(at_most);
            let bytes: Vec<u8> = client.to_node.drain(..count).collect();
            self.shells[client.at].receive(connection, &bytes);
        } else {
            let shell = &mut self.shells[client.at];
            let out = shell.outgoing(connection);
            let bytes: Vec<u8> =
                out.map(|out| out.drain(..out.len().min(at_most)).collect()).unwrap_or_default();
            let ended = bytes.is_empty()
                && (shell.is_closing(connection) || !shell.is_connected(connection));
            self.clients[who].machine.receive(now, &bytes);
            if ended {
                self.disconnect(who);
            }
        }
        self.look(who);
        if self.clients[who].machine.must_close() {
            self.disconnect(who);
        }
    }

    /// Check the events of a client: every request is answered exactly once, and only grants that
    /// the client has are lost.
    fn look(&mut self, who: usize) {
        let heals = self.heals;
        let client = &mut self.clients[who];
        while let Some(event) = client.machine.event() {
            let number = match event {
                Event::Granted { number, lock, fence } => {
                    assert!(client.held.insert((lock, fence)), "granted twice");
                    number
                }
                Event::Released { number, .. }
                | Event::Refused { number, .. }
                | Event::Unknown { number, .. }
                | Event::Answer { number, .. } => number,
                Event::Lost { lock, fence, .. } => {
                    assert!(!heals, "lost although nothing goes wrong");
                    let held = client.held.remove(&(lock.clone(), fence));
                    assert!(held || client.left.contains(&(lock, fence)), "lost what was not held");
                    continue;
                }
                _ => continue,
            };
            assert!(client.open.remove(&number).is_some(), "{number} was not requested");
            assert!(client.answered.insert(number), "{number} was answered twice");
        }
    }

    fn act(&mut self, action: u8, number: u16) {
        let who = usize::from(number) % self.clients.len();
        let choice = usize::from(number / 8);
        let now = self.moment(who);
        let client = &mut self.clients[who];
        match action % 16 {
            0..=2 if client.visits => {
                let lock = Name::new(["a", "b"][choice % 2]).expect("a valid name");
                client.open.insert(client.machine.await_free(now, &lock), true);
            }
            0..=2 => {
                let ms = TTL / 1_000_000 / 64 * choice as u64 % 100;
                let wait = [Wait::No, Wait::Ms(ms), Wait::Forever, Wait::Forever][choice / 2 % 4];
                let lock = Name::new(["a", "b"][choice % 2]).expect("a valid name");
                let ask = Ask { lock, mode: Mode::Exclusive, permits: None, wait };
                client.open.insert(client.machine.acquire(now, ask), true);
            }
            3 | 4 => {
                let one = client.held.iter().nth(choice % client.held.len().max(1)).cloned();
                if let Some((lock, fence)) = one {
                    self.release(who, lock, fence);
                }
            }
            5 => {
                let waits: Vec<u64> =
                    client.open.iter().filter(|it| *it.1).map(|it| *it.0).collect();
                if let Some(number) = waits.get(choice % waits.len().max(1)) {
                    client.machine.withdraw(*number);
                    client.open.remove(number);
                    client.answered.insert(*number);
                }
            }
            6 => self.pass(TTL / 64 * (choice as u64 % 80)),
            7 => client.machine.tick(now),
            8 if self.network => self.disconnect(who),
            8 if choice.is_multiple_of(8) => self.garbage(who),
            9 if choice.is_multiple_of(16) => self.desert(who),
            9 => self.connect(who, choice.is_multiple_of(2)),
            10 | 11 => self.deliver(who, choice, true),
            12 | 13 => self.deliver(who, choice, false),
            14 if choice.is_multiple_of(16) => {
                let shell = &mut self.shells[choice / 16 % 2];
                shell.kill();
                shell.start(false);
            }
            _ => self.round(who),
        }
        self.look(who);
        self.check();
    }

    /// Release a grant. The client may find out at this moment that it has lost the grant.
    fn release(&mut self, who: usize, lock: Name, fence: Fence) {
        let now = self.moment(who);
        let client = &mut self.clients[who];
        client.open.insert(client.machine.release(now, &lock, fence), false);
        self.look(who);
        self.clients[who].held.remove(&(lock.clone(), fence));
        self.clients[who].left.insert((lock, fence));
    }

    /// Let the client receive bytes that cannot be decoded.
    fn garbage(&mut self, who: usize) {
        let now = self.moment(who);
        let machine = &mut self.clients[who].machine;
        machine.receive(now, &[255; 8]);
        self.look(who);
        if self.clients[who].machine.must_close() {
            self.disconnect(who);
        }
    }

    /// Let the client do everything that is due, once.
    fn round(&mut self, who: usize) {
        self.connect(who, false);
        let now = self.moment(who);
        self.clients[who].machine.tick(now);
        self.deliver(who, usize::MAX, true);
        self.deliver(who, usize::MAX, false);
    }

    fn pass(&mut self, span: u64) {
        let now = self.shells[0].now().after(Duration::from_nanos(span));
        self.shells.iter_mut().for_each(|shell| shell.pass(now));
    }

    /// Check that no client believes it holds a lock that another was given.
    fn check(&self) {
        for who in 0..self.clients.len() {
            let now = self.moment(who);
            let machine = &self.clients[who].machine;
            let sure = machine
                .held()
                .filter(|it| machine.grant_state(&it.lock, it.fence, now) != State::Lost);
            for claim in sure {
                // While a client holds something, its session is at the node of its connection.
                let at = self.clients[who].at;
                let given = self.shells[at].locks.holder(&claim.lock);
                assert!(given.is_none_or(|it| it == claim.fence), "{claim:?}, but {given:?}");
                let others = self.clients.iter().enumerate();
                let others = others.filter(|(other, client)| *other != who && client.at == at);
                for (other, client) in others {
                    let sure = client.machine.state(self.moment(other)) != State::Lost;
                    let mut held = client.machine.held();
                    assert!(!(sure && held.any(|it| it.lock == claim.lock)), "two hold {claim:?}");
                }
            }
        }
    }

    /// Let nothing go wrong any more, and check that every request is answered and every lock is
    /// released in the end.
    fn heal(&mut self) {
        for _ in 0..40 {
            for who in 0..self.clients.len() {
                self.round(who);
                while let Some((lock, fence)) = self.clients[who].held.first().cloned() {
                    self.release(who, lock, fence);
                }
            }
            self.pass(TTL / 8);
            self.check();
            self.heals = self.shells[0].now().0 > 3 * TTL;
        }
        for client in &self.clients {
            assert!(client.open.is_empty(), "no answer to {:?}", client.open);
            assert_eq!(client.machine.held().count(), 0);
        }
        let sessions: usize = self.shells.iter().map(|shell| shell.sessions.len()).sum();
        assert!(sessions <= self.clients.len(), "a session without a client is left");
        assert!(self.shells.iter().all(|shell| shell.locks.held() == 0), "a lock is still held");
        for who in 0..self.clients.len() {
            self.clients[who].machine.bye();
            self.deliver(who, usize::MAX, true);
        }
        for shell in &mut self.shells {
            // A session that was deserted ends with its time.
            shell.pass(shell.now().after(Duration::from_nanos(2 * TTL)));
            assert!(shell.sessions.is_clean(), "something is left: {:?}", shell.sessions);
            assert!(shell.ledger.is_empty(), "{:?}", shell.ledger);
        }
    }
}

proptest! {
    #![proptest_config(crate::random())]

    #[test]
    fn no_client_believes_to_hold_a_lock_that_another_was_given(
        network: bool,
        patience in prop_oneof![Just(1_000_000), 1..20_u64],
        rates in prop::collection::vec(960_u64..=1040, 3..=4),
        actions in prop::collection::vec(any::<(u8, u16)>(), 1..300),
    ) {
        let mut world = World::new(&rates, network, Duration::from_secs(patience));
        (0..rates.len()).for_each(|who| world.round(who));
        for (action, number) in actions {
            world.act(action, number);
        }
        world.heal();
    }
}

//! The driver of a session: the shipped machine and route, on simulated connections.

use std::collections::BTreeMap;
use std::time::Duration;

use doorway_client::machine::{SessionMachine, Setup, State};
use doorway_client::{Endpoint, Endpoints, Route};
use doorway_protocol::{Backoff, ClientInfo, Fence, Moment, Name};

use super::program::Call;
use super::{Client, ClientEvent, Process, Report, Way};
use crate::clock::Clock;
use crate::context::Context;
use crate::network::Wire;
use crate::settings::ClientSetting;

/// The session of a program.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) machine: SessionMachine,
    pub(super) wire: Option<Wire>,
    /// When the last connection was made.
    pub(super) connected: u64,
    dialling: bool,
    route: Route,
    /// When the next tick is planned.
    tick: u64,
    /// The requests that have no answer, by number.
    pub(super) asked: BTreeMap<u64, Call>,
}

impl Session {
    pub(super) fn new(
        context: &mut Context,
        setting: &ClientSetting,
        id: usize,
        pid: u32,
        clock: Clock,
    ) -> Self {
        let setup = Setup {
            who: ClientInfo { label: format!("c{id}"), host: String::new(), pid },
            token: None,
            session: Some((setting.ttl, setting.life.life(pid))),
            patience: setting.patience,
            network: !setting.local,
            keep: setting.keep,
            nodes: setting.nodes.len(),
        };
        let endpoint = |node: &usize| {
            let name = node.to_string();
            if setting.local { Endpoint::Abstract(name) } else { Endpoint::Tcp(name, 1) }
        };
        let mut endpoints = Endpoints::from(endpoint(&setting.nodes[0]));
        setting.nodes.iter().for_each(|node| endpoints.push(endpoint(node)));
        let (low, high) = (Duration::from_millis(5), Duration::from_millis(500));
        let backoff = Backoff::with_seed(low, high, context.random.next());
        Self {
            machine: SessionMachine::new(setup, clock.read(context.now)),
            wire: None,
            connected: 0,
            dialling: false,
            route: Route::new(endpoints, backoff),
            tick: u64::MAX,
            asked: BTreeMap::new(),
        }
    }

    /// The node to which the session connects next.
    pub(super) fn target(&self) -> usize {
        let name = match self.route.endpoint() {
            Endpoint::Abstract(name) | Endpoint::Tcp(name, _) => name.as_str(),
            Endpoint::Path(_) => "0",
        };
        name.parse().unwrap_or(0)
    }

    pub(super) fn believes(&self, lock: &Name, fence: Fence, now: Moment) -> bool {
        self.machine.grant_state(lock, fence, now) != State::Lost
    }

    /// The requests that have no answer.
    pub(super) fn unanswered(&self) -> Vec<u64> {
        self.asked.keys().copied().collect()
    }
}

impl Client {
    pub(super) fn session(&mut self) -> Option<&mut Session> {
        match &mut self.process {
            Some(Process { way: Way::Session(session), .. }) => Some(session),
            _ => None,
        }
    }

    pub(super) fn tick(&mut self, context: &Context) {
        let now = self.clock.read(context.now);
        let Some(session) = self.session() else { return };
        session.tick = u64::MAX;
        session.machine.tick(now);
    }

    /// The connection is made, or there is no node.
    pub(super) fn connected(&mut self, context: &Context, wire: Option<Wire>) {
        let now = self.clock.read(context.now);
        let Some(session) = self.session() else { return };
        session.dialling = false;
        let place = session.route.endpoint().to_string();
        let network = matches!(session.route.endpoint(), Endpoint::Tcp(..));
        if let Some(wire) = wire {
            (session.wire, session.connected) = (Some(wire), context.now);
            session.machine.connected_to(now, &place, network);
        } else {
            session.machine.cannot_connect(&place, "it cannot be reached");
            session.route.failed(now, session.machine.is_bound());
        }
    }

    /// Bytes have come over a connection.
    pub(super) fn hear(&mut self, context: &mut Context, wire: Wire, bytes: &[u8]) {
        let now = self.clock.read(context.now);
        let (id, start) = (self.id, self.starts);
        let Some(session) = self.session().filter(|session| session.wire == Some(wire)) else {
            return;
        };
        session.machine.receive(now, bytes);
        if let Some(name) = session.machine.take_holder() {
            // A process holds the socket of its newest session.
            context.holders.retain(|_, owner| *owner != (id, start));
            context.holders.insert(name, (id, start));
            session.machine.show_holder(now);
        }
    }

    pub(super) fn disconnect(&mut self, context: &mut Context) {
        let now = self.clock.read(context.now);
        let Some(session) = self.session() else { return };
        let Some(wire) = session.wire.take() else { return };
        context.close(wire, 0);
        session.machine.disconnected(now);
        let bound = session.machine.is_bound();
        if session.machine.is_turned_away() {
            session.route.failed(now, bound);
        } else {
            session.route.ended(now, bound);
        }
    }

    /// Send what is to be sent, handle events, and plan what is due.
    pub(super) fn settle_session(&mut self, context: &mut Context, reports: &mut Vec<Report>) {
        let now = self.clock.read(context.now);
        loop {
            let Some(session) = self.session() else { return };
            if let Some(wire) = session.wire {
                let bytes = std::mem::take(session.machine.outgoing());
                context.send(wire, 0, bytes);
            }
            let mut events = Vec::new();
            while let Some(event) = session.machine.event() {
                events.push(event);
            }
            if session.machine.is_talking() {
                session.route.serves(now);
            }
            let closes = session.wire.is_some() && session.machine.must_close();
            if events.is_empty() && !closes {
                break;
            }
            for event in events {
                self.event(context, event, reports);
            }
            if closes {
                self.disconnect(context);
            }
        }
        let clock = self.clock;
        let Some(session) = self.session() else { return };
        let due = clock.when(session.machine.next_due());
        let ticks = due < session.tick;
        if ticks {
            session.tick = due.max(context.now);
        }
        let dials = session.machine.wants_connection() && !session.dialling;
        session.dialling |= dials;
        let retry = clock.when(session.route.due());
        if ticks {
            self.later(context, due, ClientEvent::Tick);
        }
        if dials {
            let takes =
                context.network.latency(context.now, self.setting.local, &mut context.random);
            self.later(context, retry.max(context.now) + takes, ClientEvent::Dialled);
        }
    }
}

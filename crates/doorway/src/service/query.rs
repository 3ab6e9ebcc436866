//! Questions to a node: each is asked, and answered before the command goes on.

use std::time::Duration;

use doorway_client::{Answer, Code, Endpoint, Event, Moment, SessionMachine};
use doorway_protocol::Scope;
use nix::sys::signal::Signal;

use super::event_loop::EventLoop;
use super::exit::{self, Exit};
use super::identity;
use super::link::{Link, Persistence};
use super::options::{AddressArgs, NodeArgs, Start};
use super::signals::react;

/// A connection for questions to a node.
pub(crate) struct Query {
    link: Link,
    event_loop: EventLoop,
    /// Who shares the locks of the node, once it has answered.
    scope: Option<Scope>,
    /// The version of the protocol that the node speaks; 0 before it has answered.
    version: u16,
}

/// What a node says to a question.
pub(crate) enum Reply {
    /// The answer.
    Answer(Answer),
    /// No grant with that fence is held any more. True if it was held until now.
    Released(bool),
}

impl Query {
    /// Connect, and start a node if none runs and the options allow it.
    pub(crate) fn new(node: &NodeArgs) -> Result<Self, Exit> {
        let event_loop = EventLoop::new()?;
        let setup = identity::setup(identity::label(), None);
        Self::open(node.link(setup, false, Persistence::Once)?, event_loop)
    }

    /// Close the connection and return the endpoint of the node. Signals have their usual effect
    /// again, also in threads that are started from now on.
    pub(crate) fn into_endpoint(self) -> Result<Endpoint, Exit> {
        let Self { link, event_loop, .. } = self;
        let endpoint = link.endpoint().clone();
        drop(link);
        event_loop.signals.hand_back().map_err(|error| {
            Exit::new(exit::SYSTEM, format!("cannot unblock the signals of this process: {error}"))
        })?;
        Ok(endpoint)
    }

    /// Connect to a node that runs. Looking at locks is not a reason to start one.
    pub(crate) fn look(node: &AddressArgs) -> Result<Self, Exit> {
        let event_loop = EventLoop::new()?;
        let setup = identity::setup(identity::label(), None);
        Self::open(node.link(setup, Start::Never, Persistence::Once)?, event_loop)
    }

    fn open(mut link: Link, event_loop: EventLoop) -> Result<Self, Exit> {
        link.open()?;
        Ok(Self { link, event_loop, scope: None, version: 0 })
    }

    /// Who shares the locks of the node; none before it has answered.
    pub(crate) fn scope(&self) -> Option<Scope> {
        self.scope
    }

    /// Whether the node knows the question about members. Only after it has answered another one.
    pub(crate) fn knows_members(&self) -> bool {
        self.version >= 2
    }

    /// Whether the node knows the question about windows. Only after it has answered another one.
    pub(crate) fn knows_windows(&self) -> bool {
        self.version >= 4
    }

    /// Whether the node knows the questions about its ledger and about the last known holders of a
    /// lock. Only after it has answered another one.
    pub(crate) fn knows_trouble(&self) -> bool {
        self.version >= 6
    }

    /// If the node cannot be reached from now on, give it more time.
    pub(crate) fn be_patient(&mut self) {
        self.link.be_patient();
    }

    /// Have [`Self::wait`] also return when there is something to read on standard input.
    pub(crate) fn wake_on_input(&mut self, wakes: bool) {
        self.event_loop.wakes_on_input = wakes;
    }

    /// Ask a question and wait for the answer. Returns none if there is no answer at `until`.
    pub(crate) fn ask(
        &mut self,
        until: Moment,
        question: impl FnOnce(&mut SessionMachine, Moment) -> u64,
    ) -> Result<Option<Reply>, Exit> {
        let asked = question(&mut self.link.machine, Moment::now());
        self.link.flush();
        loop {
            self.pause(until)?;
            if let Some(exit) = self.link.hopeless() {
                return Err(exit);
            }
            while let Some(event) = self.link.event() {
                match event {
                    Event::Answer { number, answer } if number == asked => {
                        return Ok(Some(Reply::Answer(answer)));
                    }
                    Event::Released { number, held } if number == asked => {
                        return Ok(Some(Reply::Released(held)));
                    }
                    Event::Refused { number, refusal } if number == asked => {
                        return Err(Exit::refusal(&refusal, 1));
                    }
                    Event::Unknown { number, refusal } if number == asked => {
                        let text = format!("{refusal}; whether the request was done is unknown");
                        return Err(Exit::new(exit::UNAVAILABLE, text));
                    }
                    Event::Closed(refusal) => return Err(Exit::refusal(&refusal, 1)),
                    Event::Welcome { scope, version, .. } => {
                        (self.scope, self.version) = (Some(scope), version);
                    }
                    _ => {}
                }
            }
            if Moment::now() >= until {
                self.link.machine.withdraw(asked);
                self.link.flush();
                return Ok(None);
            }
        }
    }

    /// Ask a question and wait for the answer as long as it takes.
    pub(crate) fn answer(
        &mut self,
        question: impl FnOnce(&mut SessionMachine, Moment) -> u64,
    ) -> Result<Answer, Exit> {
        match self.ask(Moment::NEVER, question)? {
            Some(Reply::Answer(answer)) => Ok(answer),
            _ => Err(unexpected_answer()),
        }
    }

    /// Ask for a change of a grant and wait until it is done. Returns false if there is no such
    /// grant.
    pub(crate) fn ask_of_grant(
        &mut self,
        question: impl FnOnce(&mut SessionMachine, Moment) -> u64,
    ) -> Result<bool, Exit> {
        match self.ask(Moment::NEVER, question) {
            Ok(Some(Reply::Released(held))) => Ok(held),
            Ok(Some(Reply::Answer(_))) => Ok(true),
            Ok(None) => Err(unexpected_answer()),
            Err(Exit { refused: Some(Code::Gone), .. }) => Ok(false),
            Err(exit) => Err(exit),
        }
    }

    /// Wait until the node has closed the connection, but for at most this long. Returns whether it
    /// has.
    pub(crate) fn wait_for_end(&mut self, most: Duration) -> Result<bool, Exit> {
        let until = Moment::now().after(most);
        while self.link.is_connected() {
            if Moment::now() >= until {
                return Ok(false);
            }
            self.pause(until)?;
            while self.link.event().is_some() {}
        }
        Ok(true)
    }

    /// Wait until something happens, or until this moment. A signal stops or ends the command.
    pub(crate) fn pause(&mut self, until: Moment) -> Result<(), Exit> {
        match self.wait(until) {
            Some(signal) if react(signal) => Err(Exit::signal(signal as i32)),
            _ => Ok(()),
        }
    }

    /// Wait until something happens, or until this moment. Returns a signal that came.
    pub(crate) fn wait(&mut self, until: Moment) -> Option<Signal> {
        self.event_loop.wait(&mut self.link, until)
    }
}

/// The error for an answer to another question.
pub(crate) fn unexpected_answer() -> Exit {
    Exit::new(
        exit::UNAVAILABLE,
        "the node's answer does not fit the question: is it another version?",
    )
}

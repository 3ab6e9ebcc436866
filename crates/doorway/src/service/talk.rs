//! Questions to a node: asked, and answered before we go on.

use doorway_client::{Answer, Code, Event, Moment, SessionMachine};

use super::exit::{self, Exit};
use super::link::Link;
use super::options::NodeArgs;
use super::signals::react;
use super::turn::Turns;
use super::who;

/// A visit at a node.
pub(crate) struct Talk {
    link: Link,
    turns: Turns,
}

/// The answer to a question.
pub(crate) enum Said {
    /// What was asked for.
    Answer(Answer),
    /// Nothing with that fence is held any more; was it until now?
    Released(bool),
}

impl Talk {
    /// Go there, and start a node if there is none and `may_start`.
    pub(crate) fn new(node: &NodeArgs) -> Result<Self, Exit> {
        let turns = Turns::new()?;
        let mut link = node.link(who::setup(who::label(), None))?;
        link.open()?;
        Ok(Self { link, turns })
    }

    /// Ask, and wait for the answer, until this moment at the latest.
    pub(crate) fn ask(
        &mut self,
        until: Moment,
        question: impl FnOnce(&mut SessionMachine, Moment) -> u64,
    ) -> Result<Option<Said>, Exit> {
        let asked = question(&mut self.link.machine, Moment::now());
        self.link.flush();
        loop {
            self.pause(until)?;
            if let Some(exit) = self.link.cannot_start() {
                return Err(exit);
            }
            while let Some(event) = self.link.event() {
                match event {
                    Event::Answer { number, answer } if number == asked => {
                        return Ok(Some(Said::Answer(answer)));
                    }
                    Event::Released { number, held } if number == asked => {
                        return Ok(Some(Said::Released(held)));
                    }
                    Event::Refused { number, refusal } if number == asked => {
                        return Err(Exit::refusal(&refusal, 1));
                    }
                    Event::Unknown { number, refusal } if number == asked => {
                        let text = format!("{refusal}; it may have been done or not");
                        return Err(Exit::new(exit::UNAVAILABLE, text));
                    }
                    Event::Closed(refusal) => return Err(Exit::refusal(&refusal, 1)),
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

    /// Ask, and wait for the answer as long as it takes.
    pub(crate) fn answer(
        &mut self,
        question: impl FnOnce(&mut SessionMachine, Moment) -> u64,
    ) -> Result<Answer, Exit> {
        match self.ask(Moment::NEVER, question)? {
            Some(Said::Answer(answer)) => Ok(answer),
            _ => Err(odd()),
        }
    }

    /// Ask for something about a grant, and wait until it is done. False if there is no such grant.
    pub(crate) fn ask_of_grant(
        &mut self,
        question: impl FnOnce(&mut SessionMachine, Moment) -> u64,
    ) -> Result<bool, Exit> {
        match self.ask(Moment::NEVER, question) {
            Ok(Some(Said::Released(held))) => Ok(held),
            Ok(Some(Said::Answer(_))) => Ok(true),
            Ok(None) => Err(odd()),
            Err(Exit { refused: Some(Code::Gone), .. }) => Ok(false),
            Err(exit) => Err(exit),
        }
    }

    /// Wait until something happens, or until this moment.
    pub(crate) fn pause(&mut self, until: Moment) -> Result<(), Exit> {
        match self.turns.turn(&mut self.link, until) {
            Some(signal) if react(signal) => Err(Exit::signal(signal as i32)),
            _ => Ok(()),
        }
    }
}

/// The end of a program that was answered something else.
pub(crate) fn odd() -> Exit {
    Exit::new(exit::UNAVAILABLE, "the node answered what was not asked")
}

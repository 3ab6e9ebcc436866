//! Processes that exchange messages over channels with faults: searched, walked and drawn.
//!
//! An [`Exchange`] says what its processes can do and what a message does on arrival. An
//! [`ExchangeSystem`] is an exchange as a [`System`]: every order of actions, arrivals and faults
//! is one path of the search.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;

use doorway_core::NodeId;
use doorway_search::System;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use crate::trace::EventKind;
use crate::{Trace, Violation};

/// What the channels may do to messages, and what processes do about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each fault can happen or not")]
pub struct Faults {
    /// Messages from one process to another may overtake each other.
    pub overtake: bool,
    /// A message may be lost.
    pub lose: bool,
    /// A message may arrive again and again.
    pub double: bool,
    /// Processes send again what may have been lost. A message may then arrive more than once.
    pub again: bool,
    /// Processes may crash and start again, any number of times.
    pub crash: bool,
}

impl Faults {
    /// Every message arrives once, in order.
    pub const NONE: Self =
        Self { overtake: false, lose: false, double: false, again: false, crash: false };

    /// Every fault of the channels, and processes that send again.
    pub const ALL: Self =
        Self { overtake: true, lose: true, double: true, again: true, crash: false };
}

/// A message under way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Envelope<B> {
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// The message.
    pub body: B,
}

/// What a process may do by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocalAction {
    /// Produce the next item.
    Produce,
    /// Consume the next item of this lane. There is one lane, unless each producer has its own.
    Consume(usize),
    /// Send again what may have been lost.
    SendAgain,
    /// Pass the token on.
    Pass,
    /// Ask for the lock.
    Acquire,
    /// Give the lock back.
    Release,
    /// Crash, and start again.
    Crash,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A process does something by itself.
    Act(usize, LocalAction),
    /// The message at this position arrives.
    Deliver(usize),
    /// A copy of the message at this position arrives.
    DeliverCopy(usize),
    /// The message at this position is lost.
    Lose(usize),
}

/// What a step sends.
#[derive(Debug)]
pub struct Outgoing<B> {
    /// The messages, in order.
    pub mail: Vec<Envelope<B>>,
    /// Whether everything that was under way before is gone, because a connection is new.
    pub cut: bool,
}

/// Processes that solve a problem by messages.
pub trait Exchange {
    /// The state of all processes.
    type State: Clone + Hash + Debug;
    /// A message.
    type Body: Clone + Ord + Hash + Debug;

    /// The names of the processes.
    fn names(&self) -> Vec<String>;

    /// What the channels may do.
    fn faults(&self) -> Faults;

    /// The state in the beginning, and the messages that are under way.
    fn first(&self) -> (Self::State, Vec<Envelope<Self::Body>>);

    /// What the processes can do.
    fn local_actions(&self, state: &Self::State) -> Vec<(usize, LocalAction)>;

    /// Let a process do something. The answer describes it in words, for diagrams; an error says
    /// what must never happen.
    fn act(
        &self,
        state: &mut Self::State,
        process: usize,
        action: LocalAction,
        out: &mut Outgoing<Self::Body>,
    ) -> Result<String, String>;

    /// A message arrives.
    fn receive(
        &self,
        state: &mut Self::State,
        envelope: Envelope<Self::Body>,
        out: &mut Outgoing<Self::Body>,
    ) -> Result<(), String>;

    /// Whether the channels may lose and double this message.
    fn endures(&self, _body: &Self::Body) -> bool {
        true
    }

    /// Whether the action happens some time if it remains possible.
    fn is_expected(&self, action: LocalAction) -> bool {
        matches!(
            action,
            LocalAction::Consume(_)
                | LocalAction::SendAgain
                | LocalAction::Pass
                | LocalAction::Release
        )
    }

    /// What must be true of every state.
    fn check(&self, state: &Self::State) -> Result<(), String>;

    /// Whether every item that was produced has been consumed, and its producer knows.
    fn is_done(&self, state: &Self::State) -> bool;

    /// Replace a state by a simpler one that behaves the same, and drop messages that would do
    /// nothing. With `rebase`, also make the counters small: they grow for ever, so otherwise no
    /// search would end. This must not change the order of messages.
    fn settle(&self, state: &mut Self::State, mail: &mut Vec<Envelope<Self::Body>>, rebase: bool);
}

/// All processes and all messages under way.
#[derive(Clone, Debug, Hash)]
pub struct Whole<S, B> {
    /// The processes.
    pub processes: S,
    /// The messages. Those of a channel that keeps the order are in that order.
    pub mail: Vec<Envelope<B>>,
}

/// An exchange as a system to be searched.
#[derive(Clone, Debug)]
pub struct ExchangeSystem<X>(pub X);

type WholeOf<X> = Whole<<X as Exchange>::State, <X as Exchange>::Body>;

/// What a process said as it acted, and what it sent.
type SaidAndSent<X> = (Option<String>, Vec<Envelope<<X as Exchange>::Body>>);

impl<X: Exchange> ExchangeSystem<X> {
    /// Apply an action without settling. The answer says in words what a process did by itself, and
    /// whether everything that was under way is gone.
    fn happen(
        &self,
        whole: &mut WholeOf<X>,
        action: Action,
    ) -> Result<(Option<String>, bool), String> {
        let mut out = Outgoing { mail: Vec::new(), cut: false };
        let said = match action {
            Action::Act(process, action) => {
                Some(self.0.act(&mut whole.processes, process, action, &mut out)?)
            }
            Action::Deliver(at) => {
                let envelope = whole.mail.remove(at);
                self.0.receive(&mut whole.processes, envelope, &mut out)?;
                None
            }
            Action::DeliverCopy(at) => {
                let envelope = whole.mail[at].clone();
                self.0.receive(&mut whole.processes, envelope, &mut out)?;
                None
            }
            Action::Lose(at) => {
                whole.mail.remove(at);
                None
            }
        };
        if out.cut {
            whole.mail.clear();
        }
        whole.mail.append(&mut out.mail);
        self.0.check(&whole.processes)?;
        Ok((said, out.cut))
    }

    /// The canonical form of the messages under way.
    fn sort(&self, mail: &mut Vec<Envelope<X::Body>>) {
        if self.0.faults().overtake {
            mail.sort();
        } else {
            mail.sort_by_key(|envelope| (envelope.from, envelope.to)); // Stable.
        }
        // A copy of a message that may arrive again and again anyway makes no difference.
        if self.copies() {
            mail.dedup_by(|a, b| a == b && self.0.endures(&a.body));
        }
    }

    fn copies(&self) -> bool {
        let Faults { double, again, .. } = self.0.faults();
        double || again
    }

    /// What the network can do.
    fn fates(&self, mail: &[Envelope<X::Body>]) -> Vec<Action> {
        let Faults { overtake, lose, .. } = self.0.faults();
        let mut fates = Vec::new();
        for (at, envelope) in mail.iter().enumerate() {
            let channel =
                |other: &Envelope<X::Body>| (other.from, other.to) == (envelope.from, envelope.to);
            let same = at > 0 && mail[at - 1] == *envelope;
            if same || (!overtake && mail[..at].iter().any(channel)) {
                continue;
            }
            fates.push(Action::Deliver(at));
            if self.0.endures(&envelope.body) {
                fates.extend(self.copies().then_some(Action::DeliverCopy(at)));
                fates.extend(lose.then_some(Action::Lose(at)));
            }
        }
        fates
    }

    /// The action with which a walk goes on that is to end: something expected, and something other
    /// than a repetition if there is anything. Repetitions take turns.
    fn finish(&self, whole: &WholeOf<X>, turn: usize) -> Option<Action> {
        let mut actions = self.actions(whole);
        actions.retain(|action| self.is_expected(action));
        let repeats = |action: &Action| {
            matches!(action, Action::Act(_, LocalAction::SendAgain | LocalAction::Pass))
        };
        let first = actions.iter().find(|action| !repeats(action));
        first.or_else(|| actions.get(turn % actions.len().max(1))).copied()
    }

    /// Walk at random, and then let everything arrive. Returns the actions.
    pub fn walk(&self, seed: u64, steps: usize) -> Vec<Action> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut whole = self.first();
        let mut actions = Vec::new();
        while actions.len() < 2 * steps {
            let choices = self.actions(&whole);
            let next = if actions.len() < steps {
                let count = choices.len().max(1) as u64;
                choices.get((rng.next_u64() % count) as usize).copied()
            } else if self.0.is_done(&whole.processes) {
                None
            } else {
                self.finish(&whole, actions.len())
            };
            let Some(action) = next else { break };
            actions.push(action);
            if self.apply(&mut whole, action).is_err() {
                break;
            }
        }
        actions
    }

    /// What happens if these actions are taken, as a trace to be drawn. If they end in a violation,
    /// the trace does too.
    pub fn trace(&self, title: impl Into<String>, actions: &[Action]) -> Trace {
        let names = self.0.names();
        let mut trace = Trace::new(title, names.len() as u32);
        trace.names = names;
        let mut whole = self.first();
        // The number of the last message that was sent with this text on this channel.
        let mut ids: BTreeMap<(usize, usize, String), u64> = BTreeMap::new();
        let (mut at, mut last) = (0.0, 0);
        let mut sent =
            |trace: &mut Trace, at, mail: &[Envelope<X::Body>], ids: &mut BTreeMap<_, _>| {
                for Envelope { from, to, body } in mail {
                    last += 1;
                    let message = format!("{body:?}");
                    ids.insert((*from, *to, message.clone()), last);
                    trace.push(
                        at,
                        NodeId::at(*from),
                        EventKind::Send { id: last, to: NodeId::at(*to), message },
                    );
                }
            };
        sent(&mut trace, at, &whole.mail, &mut ids);
        for action in actions {
            at += 1.0;
            let before = whole.mail.clone();
            let id = |position: usize| {
                let Envelope { from, to, body } = &before[position];
                (ids.get(&(*from, *to, format!("{body:?}"))).copied().unwrap_or(0), *to)
            };
            let process = match *action {
                Action::Act(process, _) => process,
                Action::Deliver(position) | Action::DeliverCopy(position) => {
                    let (id, to) = id(position);
                    trace.push(at, NodeId::at(to), EventKind::Receive { id });
                    to
                }
                Action::Lose(position) => {
                    let (id, to) = id(position);
                    trace.push(at, NodeId::at(to), EventKind::Lose { id });
                    to
                }
            };
            match self.outgoing(&mut whole, *action) {
                Ok((said, mail)) => {
                    let acted = said.map(EventKind::Act);
                    if let Some(what) = acted {
                        trace.push(at, NodeId::at(process), what);
                    }
                    sent(&mut trace, at, &mail, &mut ids);
                }
                Err(wrong) => {
                    trace.push(
                        at,
                        NodeId::at(process),
                        EventKind::Violate(Violation::Claim(wrong)),
                    );
                    break;
                }
            }
        }
        trace
    }

    /// Apply an action for a drawing: what a search does, except that the counters keep their
    /// values. The answer is what was said and sent.
    fn outgoing(&self, whole: &mut WholeOf<X>, action: Action) -> Result<SaidAndSent<X>, String> {
        let taken = usize::from(matches!(action, Action::Deliver(_) | Action::Lose(_)));
        let before = whole.mail.len() - taken;
        let (said, cut) = self.happen(whole, action)?;
        let mail = whole.mail.iter().skip(if cut { 0 } else { before }).cloned().collect();
        self.settle(whole, false);
        Ok((said, mail))
    }

    fn settle(&self, whole: &mut WholeOf<X>, rebase: bool) {
        self.0.settle(&mut whole.processes, &mut whole.mail, rebase);
        self.sort(&mut whole.mail);
    }
}

impl<X: Exchange> System for ExchangeSystem<X> {
    type State = WholeOf<X>;
    type Action = Action;
    type Violation = String;

    fn first(&self) -> Self::State {
        let (processes, mail) = self.0.first();
        Whole { processes, mail }
    }

    fn actions(&self, whole: &Self::State) -> Vec<Action> {
        let actions = self.0.local_actions(&whole.processes).into_iter();
        let actions = actions.map(|(process, action)| Action::Act(process, action));
        actions.chain(self.fates(&whole.mail)).collect()
    }

    fn apply(&self, whole: &mut Self::State, action: Action) -> Result<(), String> {
        self.happen(whole, action)?;
        self.settle(whole, true);
        Ok(())
    }

    fn is_goal(&self, whole: &Self::State) -> bool {
        self.0.is_done(&whole.processes)
    }

    fn is_expected(&self, action: &Action) -> bool {
        match action {
            Action::Act(_, action) => self.0.is_expected(*action),
            Action::Deliver(_) => true,
            Action::DeliverCopy(_) | Action::Lose(_) => false,
        }
    }
}

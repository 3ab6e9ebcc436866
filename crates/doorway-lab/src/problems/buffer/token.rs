//! Several producers, second repair: a token goes round among them and carries the number of items
//! produced by all. Only the producer that has the token produces, and there the number is exact;
//! its image of the number consumed may be late, which makes its guard stricter. So the number of
//! free places is never too large. All items are in one order.

use std::collections::BTreeMap;

use doorway_core::buffer::Consumer;

use super::pair::{consume, contents, is_stale, period};
use crate::problems::exchange::{Envelope, Exchange, Faults, LocalAction, Outgoing};

/// Producers that pass a token on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) producers: usize,
    pub(super) capacity: u64,
    pub(super) faults: Faults,
}

/// The messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Body {
    /// To the consumer: the n-th item of all.
    Item(u64, u8),
    /// To all producers: this number of items have been consumed.
    Credit(u64),
    /// To the next producer: the right to produce, and the number of items produced by all. It is
    /// neither lost nor doubled.
    Token(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    /// The image of the number of items consumed.
    consumed: u64,
    /// The number of items produced by all, while the token is here.
    token: Option<u64>,
    /// Our items that are not known to be consumed.
    unconfirmed: BTreeMap<u64, u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    members: Vec<Member>,
    consumer: Consumer<u8>,
    /// The number of items produced by all. No process reads this: the check does.
    produced: u64,
}

impl Token {
    fn credit(&self, state: &State, out: &mut Outgoing<Body>) {
        let body = Body::Credit(state.consumer.consumed());
        let to_all =
            (0..self.producers).map(|to| Envelope { from: self.producers, to, body: body.clone() });
        out.mail.extend(to_all);
    }
}

impl Exchange for Token {
    type State = State;
    type Body = Body;

    fn names(&self) -> Vec<String> {
        super::names(self.producers)
    }

    fn faults(&self) -> Faults {
        self.faults
    }

    fn endures(&self, body: &Body) -> bool {
        !matches!(body, Body::Token(_))
    }

    fn first(&self) -> (State, Vec<Envelope<Body>>) {
        let member = |number| Member {
            consumed: 0,
            token: (number == 0).then_some(0),
            unconfirmed: BTreeMap::new(),
        };
        let members = (0..self.producers).map(member).collect();
        (State { members, consumer: Consumer::new(self.capacity), produced: 0 }, Vec::new())
    }

    fn local_actions(&self, state: &State) -> Vec<(usize, LocalAction)> {
        let mut actions = Vec::new();
        for (number, member) in state.members.iter().enumerate() {
            let free = member.token.is_some_and(|made| made < member.consumed + self.capacity);
            actions.extend(free.then_some((number, LocalAction::Produce)));
            let passes = member.token.is_some() && self.producers > 1;
            actions.extend(passes.then_some((number, LocalAction::Pass)));
            let again = self.faults.again && !member.unconfirmed.is_empty();
            actions.extend(again.then_some((number, LocalAction::SendAgain)));
        }
        let there = state.consumer.known_produced() > state.consumer.consumed();
        actions.extend(there.then_some((self.producers, LocalAction::Consume(0))));
        actions.extend(self.faults.again.then_some((self.producers, LocalAction::SendAgain)));
        actions
    }

    fn act(
        &self,
        state: &mut State,
        process: usize,
        action: LocalAction,
        out: &mut Outgoing<Body>,
    ) -> Result<String, String> {
        let item = |number, item| Envelope {
            from: process,
            to: self.producers,
            body: Body::Item(number, item),
        };
        match (action, state.members.get_mut(process)) {
            (LocalAction::Produce, Some(Member { token: Some(made), unconfirmed, .. })) => {
                *made += 1;
                state.produced = *made;
                unconfirmed.insert(*made, contents(*made, self.capacity));
                out.mail.push(item(*made, contents(*made, self.capacity)));
                Ok(format!("produces item {made}"))
            }
            (LocalAction::Pass, Some(member)) => {
                let made = member.token.take().ok_or("a token that is not there was passed")?;
                let to = (process + 1) % self.producers;
                out.mail.push(Envelope { from: process, to, body: Body::Token(made) });
                Ok("passes the token on".into())
            }
            (LocalAction::SendAgain, Some(member)) => {
                out.mail.extend(member.unconfirmed.iter().map(|(number, it)| item(*number, *it)));
                Ok("sends again what is not known to be consumed".into())
            }
            (LocalAction::SendAgain, None) => {
                self.credit(state, out);
                Ok("sends its credit again".into())
            }
            (LocalAction::Consume(_), None) => {
                let number = consume(&mut state.consumer, self.capacity)?;
                self.credit(state, out);
                Ok(format!("consumes item {number}"))
            }
            _ => Err("a process did what it cannot do".into()),
        }
    }

    fn receive(
        &self,
        state: &mut State,
        Envelope { to, body, .. }: Envelope<Body>,
        _out: &mut Outgoing<Body>,
    ) -> Result<(), String> {
        match body {
            Body::Item(number, item) => {
                let taken = state.consumer.item(number, item);
                taken.map_err(|why| format!("the consumer refused {why}"))?;
            }
            Body::Credit(consumed) => {
                let member = &mut state.members[to];
                member.consumed = member.consumed.max(consumed);
                member.unconfirmed.retain(|number, _| *number > member.consumed);
            }
            Body::Token(made) => {
                if state.members.iter().any(|member| member.token.is_some()) {
                    return Err("there are two tokens".into());
                }
                state.members[to].token = Some(made);
            }
        }
        Ok(())
    }

    fn check(&self, state: &State) -> Result<(), String> {
        super::fits(state.produced - state.consumer.consumed(), self.capacity)
    }

    fn is_done(&self, state: &State) -> bool {
        state.members.iter().all(|member| member.unconfirmed.is_empty())
    }

    fn settle(&self, state: &mut State, mail: &mut Vec<Envelope<Body>>, rebase: bool) {
        // With an image that is late by the whole capacity, a producer cannot produce. It makes no
        // difference whether the image is later still, and items up to there were consumed.
        let late = state.produced.saturating_sub(self.capacity);
        for member in &mut state.members {
            member.consumed = member.consumed.max(late);
            member.unconfirmed.retain(|number, _| *number > member.consumed);
        }
        mail.retain(|Envelope { to, body, .. }| match *body {
            Body::Item(number, _) => !is_stale(&state.consumer, number),
            Body::Credit(consumed) => consumed > state.members[*to].consumed,
            Body::Token(_) => true,
        });
        let least = state.members.iter().map(|member| member.consumed).min().unwrap_or(0);
        let base = least - least % period(self.capacity);
        if !rebase || base == 0 {
            return;
        }
        state.produced -= base;
        state.consumer.rebase(base);
        for Member { consumed, token, unconfirmed } in &mut state.members {
            *consumed -= base;
            for made in token.iter_mut() {
                *made -= base;
            }
            let items = std::mem::take(unconfirmed);
            unconfirmed.extend(items.into_iter().map(|(number, item)| (number - base, item)));
        }
        for envelope in mail {
            match &mut envelope.body {
                Body::Item(number, _) | Body::Credit(number) | Body::Token(number) => {
                    *number -= base;
                }
            }
        }
    }
}

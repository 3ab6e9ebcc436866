//! What the sessions of a node want done.

use std::collections::BTreeSet;
use std::time::Duration;

use doorway_node::locks::LockRequest;
use doorway_protocol::{Fence, Reply};
use doorway_sessions::{EventKind, Input, News, Output};

use super::{Node, NodeEvent, core_mode};
use crate::clock::MS;
use crate::context::{Context, log};
use crate::story::{Lane, State};

/// The longest time between the end of a drain and the stop of the process.
const LAST_ANSWER: u64 = 200 * MS;

impl Node {
    /// Pass on to the sessions what happened, and do what they say.
    pub(super) fn input(&mut self, context: &mut Context, input: Input) {
        if let Some(process) = &mut self.process {
            process.inputs.push_back(input);
            self.inputs(context);
        }
    }

    /// Pass on everything that happened. The lease of the node runs by another clock than the
    /// sessions, so it is looked at anew before.
    pub(super) fn inputs(&mut self, context: &mut Context) {
        let now = self.clock.read(context.now);
        let lease = self.lease_input(context);
        let Some(process) = &mut self.process else { return };
        if let Some(lease) = lease {
            process.inputs.push_front(lease);
        }
        let mut outputs = Vec::new();
        let mut serves = false;
        while let Some(process) = &mut self.process
            && let Some(input) = process.inputs.pop_front()
        {
            process.sessions.step(now, input, &mut outputs);
            for output in outputs.drain(..) {
                serves |= matches!(output, Output::Serve);
                self.perform(context, output);
            }
        }
        // By now the node has got back what former holders have not claimed.
        if serves
            && let Some(process) = &mut self.process
            && !std::mem::replace(&mut process.serving, true)
        {
            log!(context, "n{} serves", self.id);
            self.serve(context);
        }
    }

    /// Check that the ledger has the grants of the sessions, those of all or of some fences. It may
    /// lack one that was claimed and could not be written, if it says so: then the next process
    /// believes the claim.
    pub(crate) fn check_ledger(&self, context: &mut Context, of: impl Fn(Fence) -> bool) {
        let Some(process) = &self.process else { return };
        let contents = self.ledger();
        let written: BTreeSet<_> = contents.grants().collect();
        let claimed: BTreeSet<_> = process.sessions.unwritten().collect();
        let lacks = |grant: &_| !written.contains(grant);
        let excused = |grant: &_| contents.lacking && claimed.contains(grant);
        let mut grants = process.sessions.grants().filter(|(_, _, fence)| of(*fence));
        if let Some((session, lock, fence)) = grants.find(|it| lacks(it) && !excused(it)) {
            let id = self.id;
            let what = format!("the ledger of n{id} lacks {lock} {fence:?} of session {session}");
            context.violate_lock(lock, what);
        }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each case")]
    fn perform(&mut self, context: &mut Context, output: Output) {
        let id = self.id;
        let Some(process) = &mut self.process else { return };
        match output {
            Output::Tell(connection, reply) => {
                log!(context, "n{id} tells {}: {reply:?}", connection.0);
                if let Reply::Granted(_, fence) | Reply::Kept { fence, .. } = reply {
                    self.check_ledger(context, |told| told == fence);
                }
                let Some(process) = &mut self.process else { return };
                if let Some(door) = process.doors.get_mut(&connection) {
                    door.tell(&reply);
                }
            }
            Output::Greet(connection, greeting, then) => {
                log!(context, "n{id} greets {}: {greeting:?} {then:?}", connection.0);
                if let Some(door) = process.doors.get_mut(&connection) {
                    door.greet(&greeting, &then);
                }
            }
            Output::Close(connection) => {
                if let Some(door) = process.doors.get_mut(&connection) {
                    door.close();
                }
            }
            Output::TurnAway(connection, refusal) => {
                if let Some(door) = process.doors.get_mut(&connection) {
                    door.greet(&Err(refusal), &[]);
                    door.close();
                }
            }
            Output::Acquire { ask, session, name, mode, wait, numbers } => {
                let (mode, now) = (core_mode(mode), Duration::ZERO);
                let request = LockRequest { mode, session, reserve: numbers, now };
                self.acquire(context, ask, &name, request, wait);
            }
            Output::Reclaim { ask, session, name, mode, fence } => {
                self.reclaim(context, ask, session, &name, core_mode(mode), fence);
            }
            Output::Hold { ask, name, fence, length } => {
                self.hold(context, ask, name, fence, length);
            }
            Output::DropHold { name, fence } => self.drop_hold(context, name, fence),
            Output::Abandon(ask) => self.abandon(context, ask),
            Output::Release(ask) => self.release(context, ask),
            Output::Write(ask, records) => {
                let ledger = &process.ledger;
                let written = records.iter().map(|(place, record)| ledger.write(*place, record));
                let written = written.collect::<Result<(), _>>().map_err(|error| error.to_string());
                log!(context, "n{id} writes {:?}: {written:?}", ask);
                process.inputs.push_back(Input::Written(ask, written));
            }
            Output::Rewrite(session, place, record) => {
                let written = process.ledger.write(place, &record);
                let written = written.map_err(|error| error.to_string());
                process.inputs.push_back(Input::Rewritten(session, written));
            }
            Output::Erase(place) => {
                let erased = process.ledger.erase(place).map_err(|error| error.to_string());
                process.inputs.push_back(Input::Erased(place, erased));
            }
            Output::Probe => {
                let erased = process.ledger.catch_up();
                if erased.is_ok() {
                    process.inputs.push_back(Input::AllErased);
                }
                let probed = erased.and_then(|()| process.ledger.probe());
                let probed = probed.map_err(|error| error.to_string());
                process.inputs.push_back(Input::Probed(probed));
            }
            Output::LedgerTrouble(trouble) => log!(context, "n{id} ledger: {trouble:?}"),
            Output::Settled => process.ledger.settled(),
            Output::Watch(session, evidence) => {
                process.watched.insert(session, evidence);
                let after = context.random.between(0, 100_000);
                self.later(context, after, NodeEvent::Look(session));
            }
            Output::Unwatch(session) => drop(process.watched.remove(&session)),
            Output::Announce(news) => {
                self.watch_leases(context, &news);
                if news.why.as_ref().is_some_and(|why| why.starts_with("broken by ")) {
                    let client = client_of(&news);
                    self.taken(context, (news.lock.clone(), news.fence, client));
                } else if context.settings.endless {
                    let grant = (news.lock.clone(), news.fence, client_of(&news));
                    let silent = news.why.as_ref().is_some_and(|why| why.contains("silent"));
                    match news.kind {
                        EventKind::Granted => context.granted.push(grant),
                        _ if silent => context.expired.push(grant),
                        _ => {}
                    }
                }
                if let Some(story) = &mut context.story {
                    let state = State::Holds(news.lock.clone(), news.fence);
                    match news.kind {
                        EventKind::Granted => story.begin(context.now, Lane::Node(id), state),
                        _ => story.end(context.now, Lane::Node(id), &state),
                    }
                }
                log!(
                    context,
                    "n{id} {:?} {} {:?} session {}",
                    news.kind,
                    news.lock,
                    news.fence,
                    news.session
                );
            }
            Output::Answer(connection, answer) => {
                log!(context, "n{id} answers {}: {answer:?}", connection.0);
                if !self.break_answered(context, connection, &answer) {
                    self.answer_call(connection, answer);
                }
            }
            Output::AnnounceWait(_) | Output::Opened(..) | Output::Ended(..) | Output::Serve => {}
            Output::Drained => {
                log!(context, "n{id} is drained");
                if process.stays {
                    return;
                }
                let after = context.random.between(MS, LAST_ANSWER);
                self.later(context, after, NodeEvent::Stop);
            }
        }
    }
}

/// The number of the client of a grant, which begins the description of the client.
fn client_of(news: &News) -> usize {
    let text = news.client.strip_prefix("http ").unwrap_or(&news.client);
    let text = text.strip_prefix('c').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().expect("the description of every client begins with its number")
}

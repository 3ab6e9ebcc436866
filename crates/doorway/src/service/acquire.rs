//! Acquiring locks, one after the other in the order of their names, until all of them are held.

use std::time::Duration;

use doorway_client::machine::UNLIMITED;
use doorway_client::{Answer, Ask, Code, Event, Fence, Moment, Name, Wait};
use doorway_protocol::{Backoff, Refusal, Scope, SessionId};
use nix::sys::signal::Signal;

use super::event_loop::EventLoop;
use super::exit::Exit;
use super::link::{Link, QUICK};
use super::lock_request::LockRequest;
use super::signals::{self, Effect, effect};
use super::stderr::print_line;
use super::terminal::Terminal;
use super::wait_line::{WaitLine, describe_holder};

/// The locks that were granted, and the session that holds them.
#[derive(Default)]
pub(crate) struct Grants {
    /// The locks with their fences, in the order of names.
    pub(crate) locks: Vec<(Name, Fence)>,
    /// The name of the node.
    pub(crate) node: String,
    /// Who shares the locks of the node.
    pub(crate) scope: Option<Scope>,
    /// The session.
    pub(crate) session: Option<SessionId>,
    /// The TTL of the session: the node ends it if it hears nothing for that long.
    pub(crate) ttl: Duration,
}

impl Grants {
    /// The names of the locks, for a message.
    pub(crate) fn names(&self) -> String {
        let locks = self.locks.iter().map(|(lock, _)| lock.as_str());
        locks.collect::<Vec<_>>().join(", ")
    }

    /// The variables for the command's environment. A variable has one line for each lock.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let lines = |text: &dyn Fn(&(Name, Fence)) -> String| {
            self.locks.iter().map(text).collect::<Vec<_>>().join("\n")
        };
        let session = self.session.map_or(0, |session| session.0);
        let mut variables = vec![
            ("DOORWAY_LOCK", lines(&|(lock, _)| lock.to_string())),
            ("DOORWAY_FENCE", lines(&|(_, fence)| fence.to_string())),
            ("DOORWAY_HOLDER", format!("{}/{session}", self.node)),
            ("DOORWAY_VIEW", lines(&|(_, fence)| fence.view().to_string())),
        ];
        if self.ttl != UNLIMITED {
            variables.push(("DOORWAY_TTL_MS", self.ttl.as_millis().to_string()));
        }
        variables
    }
}

/// How long to retry from the first refusal, if the node of this user is just stopping, until the
/// next one serves.
const PATIENCE: Duration = Duration::from_secs(5);

/// The unit in which a node is told how long a request may wait. A request that has less left is
/// not worth sending.
const TICK: Duration = Duration::from_millis(1);

/// How long to wait for the node to say who holds a lock that was not free.
const ANSWER: Duration = Duration::from_millis(200);

/// How long a wait may take before it is worth a warning that it may never end.
const NESTED: Duration = Duration::from_secs(1);

/// How long to wait before asking again, at first and at most.
const DELAYS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Does the node refuse the request only because others use the lock with another number of
/// permits? Nodes have no code of its own for that, but their text says that waiting helps.
fn is_used_otherwise(refusal: &Refusal) -> bool {
    refusal.code == Code::NotServed && refusal.text.ends_with(", or wait")
}

/// Does the node refuse the request only for now, because it stops or is not a member of its group?
/// As with permits, its text says so.
fn says_to_wait(refusal: &Refusal) -> bool {
    refusal.code == Code::Unavailable && refusal.text.contains("ask again")
}

/// The state of acquiring locks.
struct Acquisition<'a> {
    wanted: &'a LockRequest<'a>,
    link: &'a mut Link,
    event_loop: &'a mut EventLoop,
    line: WaitLine,
    begin: Moment,
    /// When to warn that an enclosing `doorway run` holds a lock that this one waits for.
    warn_at: Moment,
    grants: Grants,
    /// The number of the request for the next lock, and when it was made.
    request: u64,
    asked: Moment,
    /// When to ask for the next lock again.
    retry_at: Moment,
    backoff: Backoff,
    /// Why the node has not served this client yet, for as long as that is so.
    declined: Option<Refusal>,
    /// When the node began to refuse the request, and when it last did.
    refusals: Option<(Moment, Moment)>,
    /// The number of the last question of who holds that lock.
    question: Option<u64>,
}

/// The locks of the `doorway run` that started this process, one in a line.
fn outer_locks() -> String {
    std::env::var("DOORWAY_LOCK").unwrap_or_default()
}

/// True if an enclosing `doorway run` has taken one of these locks.
fn is_nested(wanted: &LockRequest<'_>) -> bool {
    let outer = outer_locks();
    outer.lines().any(|outer| wanted.locks.iter().any(|lock| lock.as_str() == outer))
}

/// Connect, and wait until all of the locks are held.
pub(crate) fn acquire(
    wanted: &LockRequest<'_>,
    link: &mut Link,
    event_loop: &mut EventLoop,
) -> Result<Grants, Exit> {
    let begin = Moment::now();
    let mut acquisition = Acquisition {
        wanted,
        link,
        event_loop,
        line: WaitLine::new(begin),
        begin,
        warn_at: if is_nested(wanted) { begin.after(NESTED) } else { Moment::NEVER },
        grants: Grants::default(),
        request: 0,
        asked: begin,
        retry_at: Moment::NEVER,
        backoff: Backoff::new(DELAYS.0, DELAYS.1),
        declined: None,
        refusals: None,
        question: None,
    };
    // The first request is queued before there is a connection: it is sent with the greeting.
    acquisition.ask();
    acquisition.link.open()?;
    let done = acquisition.all();
    if done.is_err() {
        acquisition.link.machine.bye();
        acquisition.link.flush();
    }
    let Acquisition { grants, .. } = acquisition;
    done.map(|()| grants)
}

impl Acquisition<'_> {
    fn all(&mut self) -> Result<(), Exit> {
        while self.grants.locks.len() < self.wanted.locks.len() {
            let until = self.line.next().min(self.warn_at).min(self.retry_at);
            if let Some(signal) = self.event_loop.wait(self.link, until) {
                self.signal(signal)?;
            }
            self.warn_if_nested();
            if let Some(exit) = self.link.hopeless() {
                return Err(exit);
            }
            let now = Moment::now();
            if now >= self.retry_at {
                self.ask();
            }
            if self.line.is_due(now) {
                let lock = &self.wanted.locks[self.grants.locks.len()];
                self.question = Some(self.link.machine.inspect(now, lock));
                self.link.flush();
            }
            while let Some(event) = self.link.event() {
                self.event(now, event)?;
            }
        }
        Ok(())
    }

    /// Warn, once, if this wait may be for a lock that an enclosing command holds: then neither
    /// would ever end.
    fn warn_if_nested(&mut self) {
        if Moment::now() < self.warn_at {
            return;
        }
        self.warn_at = Moment::NEVER;
        let lock = &self.wanted.locks[self.grants.locks.len()];
        if outer_locks().lines().any(|outer| outer == lock.as_str()) {
            self.line.erase();
            print_line(&format!(
                "waiting for {lock}, which an enclosing `doorway run` holds (DOORWAY_LOCK): \
                 this wait may never end"
            ));
        }
    }

    /// Ask for the next lock.
    fn ask(&mut self) {
        self.retry_at = Moment::NEVER;
        let now = Moment::now();
        let left = self.wanted.within.map(|within| within.saturating_sub(now.since(self.begin)));
        let wait = match (self.wanted.within, left) {
            (None, _) => Wait::Forever,
            (Some(Duration::ZERO), _) => Wait::No,
            (Some(_), left) => Wait::Ms(left.unwrap_or_default().as_millis() as u64),
        };
        let lock = self.wanted.locks[self.grants.locks.len()].clone();
        let LockRequest { mode, permits, .. } = *self.wanted;
        self.request = self.link.machine.acquire(now, Ask { lock, mode, permits, wait });
        self.asked = now;
        self.link.flush();
    }

    fn event(&mut self, now: Moment, event: Event) -> Result<(), Exit> {
        match event {
            Event::Welcome { node, scope, session, ttl, .. } => {
                self.declined = None;
                let locks = std::mem::take(&mut self.grants.locks);
                self.grants = Grants { locks, node, scope: Some(scope), session, ttl };
            }
            Event::Granted { number, lock, fence } if number == self.request => {
                self.grants.locks.push((lock, fence));
                if self.grants.locks.len() < self.wanted.locks.len() {
                    self.ask();
                }
            }
            Event::Refused { number, refusal } if number == self.request => {
                if self.is_worth_another_try(now, &refusal) {
                    if says_to_wait(&refusal) {
                        self.declined = Some(refusal);
                    }
                    self.again(now);
                } else if is_used_otherwise(&refusal) {
                    let refusal = Refusal { code: Code::NotFree, text: refusal.text };
                    return Err(Exit::refusal(&refusal, self.wanted.conflict));
                } else {
                    // The last attempt may have been too short for an answer.
                    let first = self.declined.take().filter(|_| refusal.code == Code::Unavailable);
                    return Err(self.refused(&first.unwrap_or(refusal)));
                }
            }
            Event::Closed(refusal) if !matches!(refusal.code, Code::Unavailable) => {
                return Err(Exit::refusal(&refusal, self.wanted.conflict));
            }
            // A lock was lost during the wait for the next one. All or none: begin again.
            Event::Lost { .. } => self.again(now),
            Event::Answer { number, answer: Answer::Lock(report) }
                if self.question == Some(number) =>
            {
                self.line.show(now, &report);
            }
            _ => {}
        }
        Ok(())
    }

    /// Should the command ask again? If the lock is used with another number of permits, it may be
    /// free later. If the node of this user is just stopping, the next one serves soon. Any other
    /// node may be stopping too, or may not be a member of its group at the moment. If no node has
    /// served this client since it asked, another request would wait in vain as well.
    fn is_worth_another_try(&mut self, now: Moment, refusal: &Refusal) -> bool {
        let within = self.wanted.within;
        let is_late = |within: Duration| now.after(TICK) >= self.begin.after(within);
        if within.is_some_and(|within| !within.is_zero() && is_late(within)) {
            return false;
        }
        let recent = self.refusals.filter(|(_, last)| now < last.after(PATIENCE));
        let since = recent.map_or(now, |(first, _)| first);
        self.refusals = Some((since, now));
        if is_used_otherwise(refusal) {
            return within.is_none_or(|within| now < self.begin.after(within));
        }
        let stops = matches!(refusal.code, Code::Unavailable | Code::Gone);
        if self.wanted.persists && stops && self.link.outlasts_nodes() {
            return true;
        }
        let end = match within {
            None => since.after(PATIENCE),
            // After this time the machine gives up a node that does not answer.
            Some(Duration::ZERO) => self.begin.after(QUICK),
            Some(within) => self.begin.after(within),
        };
        let is_away =
            self.link.machine.unreachable_since().is_some_and(|since| since <= self.asked);
        let may_pass = self.link.endpoint().is_own() && stops && !is_away
            || within != Some(Duration::ZERO)
                && (says_to_wait(refusal)
                    || self.declined.is_some() && refusal.code == Code::Unavailable);
        may_pass && now < end
    }

    /// The exit after a refusal. If the lock is not free, the message also says who holds it,
    /// provided that the node answers at once.
    fn refused(&mut self, refusal: &Refusal) -> Exit {
        let mut exit = Exit::refusal(refusal, self.wanted.conflict);
        let Some(lock) = self.wanted.locks.get(self.grants.locks.len()) else { return exit };
        if refusal.code != Code::NotFree {
            return exit;
        }
        let now = Moment::now();
        let (asked, until) = (self.link.machine.inspect(now, lock), now.after(ANSWER));
        self.link.flush();
        while Moment::now() < until {
            let signal = self.event_loop.wait(self.link, until);
            if signal.is_some_and(signals::react) {
                return exit;
            }
            while let Some(event) = self.link.event() {
                match event {
                    Event::Answer { number, answer: Answer::Lock(report) } if number == asked => {
                        let who = describe_holder(&report).map(|who| format!(": {who}"));
                        exit.text.iter_mut().for_each(|text| text.extend(who.clone()));
                        return exit;
                    }
                    Event::Refused { number, .. } if number == asked => return exit,
                    _ => {}
                }
            }
        }
        exit
    }

    /// Release the locks that are held, and begin again after a short pause.
    fn again(&mut self, now: Moment) {
        self.link.machine.withdraw(self.request);
        for (lock, fence) in std::mem::take(&mut self.grants.locks) {
            let number = self.link.machine.release(now, &lock, fence);
            self.link.machine.quiet(number);
        }
        self.link.flush();
        // The deadline is no later because of the pause.
        let deadline = self.wanted.within.map_or(Moment::NEVER, |within| self.begin.after(within));
        self.retry_at = now.after(self.backoff.next_delay()).min(deadline);
    }

    /// Handle a signal during the wait: it stops the process, or ends the wait and withdraws the
    /// request.
    fn signal(&mut self, signal: Signal) -> Result<(), Exit> {
        if effect(signal) != Effect::Nothing {
            self.line.erase();
        }
        if !signals::react(signal) {
            return Ok(());
        }
        self.link.machine.bye();
        self.link.flush();
        let terminal = Terminal::ours();
        if signal == Signal::SIGINT && terminal.is_some_and(|it| it.is_ours()) {
            // A shell ends its script only if it sees that the signal ended this process.
            signals::take(signal);
        }
        Err(Exit::signal(signal as i32))
    }
}

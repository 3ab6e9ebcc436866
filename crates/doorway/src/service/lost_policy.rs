//! What happens to the command when its lock is lost or about to be lost.
//!
//! The command has ended before the lease expires: it is signalled some time before the deadline,
//! and what is left of it is killed shortly before the deadline, by the clock of this process.

use std::str::FromStr;
use std::time::Duration;

use doorway_client::Moment;
use doorway_client::machine::UNLIMITED;
use nix::sys::signal::Signal;

/// The value of `--on-lost`: what to do to the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OnLost {
    /// Send this signal, and later SIGKILL.
    Signal(Signal),
    /// Send SIGKILL at once.
    Kill,
    /// Run this line with a shell, and later send SIGKILL.
    Exec(String),
    /// Nothing: the command goes on without the lock.
    Ignore,
}

impl FromStr for OnLost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}': give term, kill, signal:N, exec:COMMAND or ignore");
        match text.split_once(':') {
            None => match text {
                "term" => Ok(Self::Signal(Signal::SIGTERM)),
                "kill" => Ok(Self::Kill),
                "ignore" => Ok(Self::Ignore),
                _ => Err(wrong()),
            },
            Some(("signal", which)) => match signal(which) {
                Some(Signal::SIGKILL) => Ok(Self::Kill),
                Some(signal) => Ok(Self::Signal(signal)),
                None => Err(format!("there is no signal '{which}': give its number or its name")),
            },
            Some(("exec", line)) if !line.trim().is_empty() => Ok(Self::Exec(line.to_owned())),
            Some(_) => Err(wrong()),
        }
    }
}

/// Parses a signal: its number, or its name with or without `SIG`.
fn signal(text: &str) -> Option<Signal> {
    if let Ok(number) = text.parse::<i32>() {
        return Signal::try_from(number).ok();
    }
    let upper = text.to_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    Signal::from_str(&format!("SIG{name}")).ok()
}

/// How long a command whose session has no TTL has to end by itself.
const GRACE: Duration = Duration::from_millis(2500);

/// A step of ending the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownStep {
    /// Do what `--on-lost` says.
    Tell,
    /// Kill what is left of the command.
    Kill,
}

/// The times at which to end the command.
#[derive(Debug)]
pub(crate) struct Shutdown {
    /// How long the command shall have to end by itself, if the command line says so.
    asked: Option<Duration>,
    /// How long the command has to end by itself.
    grace: Duration,
    /// How long before the lease expires the command is killed.
    margin: Duration,
    /// The last step that was taken.
    done: Option<ShutdownStep>,
    /// When to kill the command, once that does not depend on the lease any more.
    kill_at: Option<Moment>,
}

impl Shutdown {
    /// The times for a lease of this length and a command with this much time to end by itself.
    ///
    /// A heartbeat renews the lease every quarter of its length. A grace of more than half of the
    /// lease would end a command whose lease is renewed as it should be.
    pub(crate) fn new(ttl: Duration, asked: Option<Duration>) -> Self {
        if ttl == UNLIMITED {
            // The lease does not expire, so only an operator can take the lock away.
            let grace = asked.unwrap_or(GRACE);
            return Self { asked, grace, margin: Duration::ZERO, done: None, kill_at: None };
        }
        let grace = asked.unwrap_or(ttl / 4).min(Self::longest_grace(ttl));
        Self { asked, grace, margin: ttl / 40, done: None, kill_at: None }
    }

    /// The lease has this length from now on: the node may give another one when the session is
    /// resumed.
    pub(crate) fn set_ttl(&mut self, ttl: Duration) {
        if !self.has_begun() {
            let Self { grace, margin, .. } = Self::new(ttl, self.asked);
            (self.grace, self.margin) = (grace, margin);
        }
    }

    /// The most time that a command can have to end by itself.
    pub(crate) fn longest_grace(ttl: Duration) -> Duration {
        ttl / 2
    }

    /// True if the first step has been taken.
    pub(crate) fn has_begun(&self) -> bool {
        self.done.is_some()
    }

    /// True if the command has been killed.
    pub(crate) fn is_done(&self) -> bool {
        self.done == Some(ShutdownStep::Kill)
    }

    /// The lock is lost. If the lease has expired, the command has no time left. If the node took
    /// the lock away, the command is told at once and has its time to end.
    pub(crate) fn lose(&mut self, now: Moment, expired: bool) {
        self.at_latest(if expired { now } else { now.after(self.grace) });
    }

    fn at_latest(&mut self, moment: Moment) {
        self.kill_at = Some(self.kill_at.map_or(moment, |at| at.min(moment)));
    }

    /// The step to take now, if the lease expires at `deadline`. Each step is returned once.
    pub(crate) fn due(&mut self, now: Moment, deadline: Moment) -> Option<ShutdownStep> {
        let kill_at = self.kill_at(deadline);
        let due = match self.done {
            Some(ShutdownStep::Kill) => None,
            _ if now >= kill_at => Some(ShutdownStep::Kill),
            None if self.kill_at.is_some() || now >= before(kill_at, self.grace) => {
                // From here on a late answer of the node does not change the end of the command.
                self.at_latest(kill_at);
                Some(ShutdownStep::Tell)
            }
            _ => None,
        };
        self.done = due.or(self.done);
        due
    }

    /// When the next step is due.
    pub(crate) fn next(&self, deadline: Moment) -> Moment {
        match self.done {
            None => before(self.kill_at(deadline), self.grace),
            Some(ShutdownStep::Tell) => self.kill_at(deadline),
            Some(ShutdownStep::Kill) => Moment::NEVER,
        }
    }

    fn kill_at(&self, deadline: Moment) -> Moment {
        self.kill_at.unwrap_or_else(|| before(deadline, self.margin))
    }
}

/// The moment that is this much earlier.
fn before(moment: Moment, span: Duration) -> Moment {
    let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    Moment(moment.0.saturating_sub(span))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);
    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: u32) -> Moment {
        Moment(0).after(SECOND * seconds)
    }

    #[test]
    fn the_command_is_signalled_and_then_killed_before_the_deadline() {
        let (mut shutdown, deadline) = (Shutdown::new(TTL, Some(SECOND * 2)), at(100));
        assert_eq!(shutdown.next(deadline), before(at(98), TTL / 40));
        assert_eq!(shutdown.due(at(97), deadline), None);
        assert_eq!(shutdown.due(at(98), deadline), Some(ShutdownStep::Tell));
        assert_eq!(shutdown.due(at(99), deadline), None, "once");
        let kill = shutdown.next(deadline);
        assert!(kill < deadline && kill > at(99), "{kill:?}");
        assert!(!shutdown.is_done());
        assert_eq!(shutdown.due(kill, deadline), Some(ShutdownStep::Kill));
        assert_eq!(shutdown.due(at(200), deadline), None, "once");
        assert!(shutdown.is_done());
    }

    #[test]
    fn a_lease_that_is_renewed_in_time_ends_no_command() {
        let mut shutdown = Shutdown::new(TTL, Some(TTL * 3));
        // The last heartbeat that was answered is a quarter of the lease old.
        let deadline = at(30).after(TTL * 14 / 20);
        assert_eq!(shutdown.due(at(30), deadline), None);
        assert_eq!(Shutdown::new(TTL, Some(TTL * 3)).grace, TTL / 2);
    }

    #[test]
    fn a_renewal_in_time_saves_the_command_and_a_late_one_does_not() {
        let mut shutdown = Shutdown::new(TTL, None);
        assert_eq!(shutdown.due(at(1), at(10)), None);
        assert_eq!(shutdown.due(at(10), at(20)), None, "renewed");
        assert_eq!(shutdown.due(at(19), at(20)), Some(ShutdownStep::Tell));
        assert_eq!(shutdown.due(at(20), at(40)), Some(ShutdownStep::Kill), "renewed too late");
    }

    #[test]
    fn a_command_whose_lease_has_expired_is_killed_at_once() {
        let mut shutdown = Shutdown::new(TTL, None);
        assert_eq!(shutdown.due(at(50), at(20)), Some(ShutdownStep::Kill));
        assert!(shutdown.has_begun());
        let mut shutdown = Shutdown::new(TTL, None);
        shutdown.lose(at(1), true);
        assert_eq!(shutdown.due(at(1), Moment::NEVER), Some(ShutdownStep::Kill));
    }

    #[test]
    fn a_command_whose_lock_was_broken_is_signalled_at_once() {
        let mut shutdown = Shutdown::new(TTL, Some(SECOND));
        shutdown.lose(at(1), false);
        assert_eq!(shutdown.due(at(1), at(10)), Some(ShutdownStep::Tell));
        assert_eq!(shutdown.due(at(2), at(10)), Some(ShutdownStep::Kill));
    }

    #[test]
    fn on_lost_has_five_forms() {
        let read = |text: &str| text.parse::<OnLost>();
        assert_eq!(read("term"), Ok(OnLost::Signal(Signal::SIGTERM)));
        assert_eq!(read("signal:10"), Ok(OnLost::Signal(Signal::SIGUSR1)));
        assert_eq!(read("signal:sigusr1"), Ok(OnLost::Signal(Signal::SIGUSR1)));
        assert_eq!(read("signal:HUP"), Ok(OnLost::Signal(Signal::SIGHUP)));
        assert_eq!(read("signal:9"), Ok(OnLost::Kill));
        assert_eq!(read("exec:logger a:b"), Ok(OnLost::Exec("logger a:b".into())));
        assert_eq!(read("ignore"), Ok(OnLost::Ignore));
        for wrong in ["", "exec:", "signal:0", "signal:x", "signal", "TERM ", "exec"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}

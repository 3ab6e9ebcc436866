//! What happens to the command when its lock is lost, or is about to be.
//!
//! All is over before the lease can end: the command hears of it a while before the deadline, and
//! what is left of it is killed before the deadline, by our own clock.

use std::str::FromStr;
use std::time::Duration;

use doorway_client::Moment;
use nix::sys::signal::Signal;

/// What `--on-lost` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OnLost {
    /// This signal, and then the one that kills.
    Signal(Signal),
    /// The one that kills, at once.
    Kill,
    /// This line of a shell, and then the signal that kills.
    Exec(String),
    /// Nothing: the command goes on without the lock.
    Ignore,
}

impl FromStr for OnLost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is none of term, kill, signal:N, exec:COMMAND and ignore");
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
                None => Err(format!("no signal is called '{which}': say its number or its name")),
            },
            Some(("exec", line)) if !line.trim().is_empty() => Ok(Self::Exec(line.to_owned())),
            Some(_) => Err(wrong()),
        }
    }
}

/// A signal by its number or its name, with or without `SIG`.
fn signal(text: &str) -> Option<Signal> {
    if let Ok(number) = text.parse::<i32>() {
        return Signal::try_from(number).ok();
    }
    let upper = text.to_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    Signal::from_str(&format!("SIG{name}")).ok()
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Tell the command.
    Tell,
    /// Kill what is left of it.
    Kill,
}

/// When the command is told and when it is killed.
#[derive(Debug)]
pub(crate) struct Shutdown {
    /// How long it has between the two.
    grace: Duration,
    /// How long before the deadline it is killed.
    margin: Duration,
    /// What was done.
    done: Option<Due>,
    /// When it is to be killed, once that does not depend on the lease any more.
    kill_at: Option<Moment>,
}

impl Shutdown {
    /// For a lease of this length and with this much time for the command to end by itself.
    ///
    /// A sign of life is given every quarter of the lease, so more than half of it would end a
    /// command whose lease is as good as it can be.
    pub(crate) fn new(ttl: Duration, grace: Option<Duration>) -> Self {
        let grace = grace.unwrap_or(ttl / 4).min(Self::longest_grace(ttl));
        Self { grace, margin: ttl / 40, done: None, kill_at: None }
    }

    /// How much time a command can have to end by itself.
    pub(crate) fn longest_grace(ttl: Duration) -> Duration {
        ttl / 2
    }

    /// Has the command been told?
    pub(crate) fn has_begun(&self) -> bool {
        self.done.is_some()
    }

    /// Has it been killed?
    pub(crate) fn is_done(&self) -> bool {
        self.done == Some(Due::Kill)
    }

    /// The lock is gone. If the lease is over, there is no time left; if the node took it away,
    /// the command is told at once, and its time runs.
    pub(crate) fn gone(&mut self, now: Moment, over: bool) {
        self.at_latest(if over { now } else { now.after(self.grace) });
    }

    fn at_latest(&mut self, moment: Moment) {
        self.kill_at = Some(self.kill_at.map_or(moment, |at| at.min(moment)));
    }

    /// What to do now, if the lease lasts until `deadline`. Each is said once.
    pub(crate) fn due(&mut self, now: Moment, deadline: Moment) -> Option<Due> {
        let kill_at = self.kill_at(deadline);
        let due = match self.done {
            Some(Due::Kill) => None,
            _ if now >= kill_at => Some(Due::Kill),
            None if self.kill_at.is_some() || now >= before(kill_at, self.grace) => {
                // From here on there is no way back, even if the node answers after all.
                self.at_latest(kill_at);
                Some(Due::Tell)
            }
            _ => None,
        };
        self.done = due.or(self.done);
        due
    }

    /// When to look again.
    pub(crate) fn next(&self, deadline: Moment) -> Moment {
        match self.done {
            None => before(self.kill_at(deadline), self.grace),
            Some(Due::Tell) => self.kill_at(deadline),
            Some(Due::Kill) => Moment::NEVER,
        }
    }

    fn kill_at(&self, deadline: Moment) -> Moment {
        self.kill_at.unwrap_or_else(|| before(deadline, self.margin))
    }
}

/// So much earlier.
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
    fn the_command_is_told_and_then_killed_before_the_deadline() {
        let (mut shutdown, deadline) = (Shutdown::new(TTL, Some(SECOND * 2)), at(100));
        assert_eq!(shutdown.next(deadline), before(at(98), TTL / 40));
        assert_eq!(shutdown.due(at(97), deadline), None);
        assert_eq!(shutdown.due(at(98), deadline), Some(Due::Tell));
        assert_eq!(shutdown.due(at(99), deadline), None, "once");
        let kill = shutdown.next(deadline);
        assert!(kill < deadline && kill > at(99), "{kill:?}");
        assert!(!shutdown.is_done());
        assert_eq!(shutdown.due(kill, deadline), Some(Due::Kill));
        assert_eq!(shutdown.due(at(200), deadline), None, "once");
        assert!(shutdown.is_done());
    }

    #[test]
    fn a_lease_as_good_as_it_can_be_ends_nothing() {
        let mut shutdown = Shutdown::new(TTL, Some(TTL * 3));
        // The last sign of life that was answered is a quarter old.
        let deadline = at(30).after(TTL * 14 / 20);
        assert_eq!(shutdown.due(at(30), deadline), None);
        assert_eq!(Shutdown::new(TTL, Some(TTL * 3)).grace, TTL / 2);
    }

    #[test]
    fn an_answer_in_time_changes_all_and_one_that_is_late_nothing() {
        let mut shutdown = Shutdown::new(TTL, None);
        assert_eq!(shutdown.due(at(1), at(10)), None);
        assert_eq!(shutdown.due(at(10), at(20)), None, "renewed");
        assert_eq!(shutdown.due(at(19), at(20)), Some(Due::Tell));
        assert_eq!(shutdown.due(at(20), at(40)), Some(Due::Kill), "renewed too late");
    }

    #[test]
    fn who_slept_beyond_the_deadline_is_killed_at_once() {
        let mut shutdown = Shutdown::new(TTL, None);
        assert_eq!(shutdown.due(at(50), at(20)), Some(Due::Kill));
        assert!(shutdown.has_begun());
        let mut shutdown = Shutdown::new(TTL, None);
        shutdown.gone(at(1), true);
        assert_eq!(shutdown.due(at(1), Moment::NEVER), Some(Due::Kill));
    }

    #[test]
    fn what_the_node_took_away_is_told_at_once() {
        let mut shutdown = Shutdown::new(TTL, Some(SECOND));
        shutdown.gone(at(1), false);
        assert_eq!(shutdown.due(at(1), at(10)), Some(Due::Tell));
        assert_eq!(shutdown.due(at(2), at(10)), Some(Due::Kill));
    }

    #[test]
    fn what_to_do_is_written_in_five_ways() {
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

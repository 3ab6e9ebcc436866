//! A line on the terminal during a long wait that says who holds the lock. It is erased afterwards.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use doorway_client::Moment;
use doorway_protocol::LockReport;
use rustix::process::getpgrp;
use rustix::termios::{tcgetpgrp, tcgetwinsize};

use super::stderr;

/// How long a wait may take before the line is shown.
const AFTER: Duration = Duration::from_secs(2);

/// How often the line changes.
const EVERY: Duration = Duration::from_secs(1);

/// The line that a wait shows.
pub(crate) struct WaitLine {
    begin: Moment,
    next: Moment,
    shown: bool,
}

impl WaitLine {
    /// A line for a wait that begins now. It is shown only if standard error is a terminal.
    pub(crate) fn new(now: Moment) -> Self {
        let next = if io::stderr().is_terminal() { now.after(AFTER) } else { Moment::NEVER };
        Self { begin: now, next, shown: false }
    }

    /// When to ask the node who holds the lock.
    pub(crate) fn next(&self) -> Moment {
        self.next
    }

    /// True if it is time to ask the node; then the next time is later. It is never time in the
    /// background, where the line would overwrite what another job shows.
    pub(crate) fn is_due(&mut self, now: Moment) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now.after(EVERY);
        }
        due && is_in_front()
    }

    /// Show what the node answered.
    pub(crate) fn show(&mut self, now: Moment, report: &LockReport) {
        self.shown = true;
        let waited = now.since(self.begin).as_secs();
        // A line that wraps could not be erased.
        let width = tcgetwinsize(io::stderr()).map(|size| size.ws_col);
        let width = width.ok().filter(|width| *width > 0).unwrap_or(80);
        let mut line =
            format!("doorway: waiting {waited} s for {}: {}", report.lock, holder(report));
        if let Some((at, _)) = line.char_indices().nth(usize::from(width.max(20)) - 1) {
            line.truncate(at);
        }
        stderr::print(&format!("\r\x1b[K{line}"));
    }

    /// Erase the line, because the wait is over or another message comes.
    pub(crate) fn erase(&mut self) {
        if std::mem::take(&mut self.shown) && is_in_front() {
            stderr::print("\r\x1b[K");
        }
    }
}

impl Drop for WaitLine {
    fn drop(&mut self) {
        self.erase();
    }
}

/// True if this process is in the foreground of its terminal.
fn is_in_front() -> bool {
    tcgetpgrp(io::stderr()).is_ok_and(|group| group == getpgrp())
}

/// Who holds the lock and with which fence; none if it is free.
pub(crate) fn describe_holder(report: &LockReport) -> Option<String> {
    let longest = report.holders.iter().max_by_key(|holder| holder.held_ms)?;
    Some(format!("{}, fence {}", holder(report), longest.fence))
}

/// Who holds the lock, in a few words.
fn holder(report: &LockReport) -> String {
    let Some(holder) = report.holders.iter().max_by_key(|holder| holder.held_ms) else {
        return match (report.away.first(), report.waiters.len()) {
            (Some(absent), _) => format!("{} cannot be reached", absent.node),
            (None, 0 | 1) => "nobody holds it".to_owned(),
            (None, count) => format!("nobody holds it, {count} wait"),
        };
    };
    let others = match report.holders.len() - 1 {
        0 => String::new(),
        1 => " and another".to_owned(),
        count => format!(" and {count} others"),
    };
    let how = if holder.shared { "shared by" } else { "held by" };
    format!("{how} {}{others} for {}", printable(&holder.client), time(holder.held_ms))
}

/// A text from another client, without control characters that would disturb the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A time in the largest unit that fits.
pub(crate) fn time(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..10 => format!("{}.{} s", seconds, milliseconds % 1000 / 100),
        10..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorway_protocol::{Fence, Holder};

    #[test]
    fn times_are_shown_in_the_largest_unit_that_fits() {
        let said = [0, 1_250, 59_000, 125_000, 7_300_000, 900_000_000].map(time);
        assert_eq!(said, ["0.0 s", "1.2 s", "59 s", "2 min", "2 h", "10 days"]);
    }

    #[test]
    fn the_line_names_the_client_that_has_held_the_lock_longest() {
        let mut report = LockReport {
            lock: "x".into(),
            algorithm: "readers-writers".into(),
            permits: 1,
            view: Some(1),
            holders: Vec::new(),
            waiters: Vec::new(),
            away: Vec::new(),
            silent: Vec::new(),
        };
        assert_eq!(holder(&report), "nobody holds it");
        for (client, held_ms) in [("a", 10_000), ("b\x1b[2J", 20_000)] {
            report.holders.push(Holder {
                node: "n".into(),
                session: None,
                client: client.into(),
                shared: true,
                fence: Fence::new(1, 1),
                held_ms,
            });
        }
        assert_eq!(holder(&report), "shared by b [2J and another for 20 s");
        let fence = Fence::new(1, 1);
        assert!(
            describe_holder(&report).is_some_and(|who| who.ends_with(&format!("s, fence {fence}")))
        );
    }
}

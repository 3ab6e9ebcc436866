//! What came of all faults, as a table in Markdown.
//!
//! It shares no printer with the benchmarks: each of its columns is a sum or the worst of
//! something, none is left out, and a row is one line.

use std::fmt;
use std::time::Duration;

use crate::judge::Account;

/// All accounts of one kind of fault.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) times: usize,
    /// How often the machine was too busy for figures. Then only double entries and requests that
    /// hang count.
    pub(crate) busy: usize,
    /// The longest of all, or their sum.
    pub(crate) worst: Account,
}

/// If a machine stands still for this long, leases of 2 s may end without a fault.
const STILL: Duration = Duration::from_millis(200);

impl Row {
    pub(crate) fn new(what: &str) -> Self {
        Self { what: what.to_owned(), ..Self::default() }
    }

    pub(crate) fn add(&mut self, account: Account) {
        let worst = &mut self.worst;
        self.times += 1;
        worst.stood_still = worst.stood_still.max(account.stood_still);
        worst.double += account.double;
        worst.hung += account.hung;
        if account.stood_still > STILL {
            self.busy += 1;
            return;
        }
        worst.next_in = worst.next_in.max(account.next_in);
        worst.pause = worst.pause.max(account.pause);
        worst.lost_there += account.lost_there;
        worst.lost_elsewhere += account.lost_elsewhere;
        worst.refused += account.refused;
    }

    /// The heading of the table.
    pub(crate) const HEADING: &str = "\
        | what | times | next client in, at most | pause elsewhere, at most | grants lost there | \
        grants lost elsewhere | late writes refused | double entries | hung clients |\n\
        |---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| format!("{} ms", time.as_millis());
        let Self { what, times, worst, .. } = self;
        let next_in = worst.next_in.map_or("–".to_owned(), ms);
        let Account { lost_there, lost_elsewhere, refused, double, hung, .. } = worst;
        write!(
            f,
            "| {what} | {times} | {next_in} | {} | {lost_there} | {lost_elsewhere} | {refused} | \
             {double} | {hung} |",
            ms(worst.pause)
        )
    }
}

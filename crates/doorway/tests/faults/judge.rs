//! The judge reads the log of the referee, line by line, and says what was wrong.
//!
//! All times are nanoseconds of `CLOCK_BOOTTIME`, which all processes of a machine share.

use std::collections::BTreeMap;
use std::time::Duration;

/// A client that gets no answer for this long hangs, unless others enter the lock. No fault lasts
/// longer than three leases of two seconds. A long lease of a dead machine closes its lock for six
/// seconds, and before a waiting client are at most four others.
pub(crate) const HANGS: Duration = Duration::from_secs(40);

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Did the referee refuse a write, because it has seen a higher fence?
    pub(crate) refused: bool,
    /// The node of the client and what the client does, such as `a/job`.
    pub(crate) client: String,
    pub(crate) verb: Verb,
    pub(crate) lock: String,
    pub(crate) fence: u64,
    /// When it happened, by the client.
    pub(crate) at: u64,
}

/// What a client tells the referee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    /// It asks for the lock.
    Asks,
    /// Its request failed, and it was told so.
    Told,
    /// It has entered.
    Enters,
    /// It writes. At the time of the line it was sure of the lock.
    Writes,
    /// It is about to release the lock. At the time of the line it was sure of the lock.
    Leaves,
    /// It was told that the lock is lost.
    Loses,
    /// Its process was killed by the harness.
    Dies,
}

impl Verb {
    const WORDS: [(&'static str, Self); 7] = [
        ("asks", Self::Asks),
        ("told", Self::Told),
        ("enters", Self::Enters),
        ("writes", Self::Writes),
        ("leaves", Self::Leaves),
        ("loses", Self::Loses),
        ("dies", Self::Dies),
    ];

    pub(crate) fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, verb)| *verb == self).map_or("", |(word, _)| word)
    }
}

impl Line {
    /// What a client says.
    pub(crate) fn said(client: &str, verb: Verb, lock: &str, fence: u64, at: u64) -> Self {
        Self { refused: false, client: client.to_owned(), verb, lock: lock.to_owned(), fence, at }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let [verdict, client, verb, lock, fence, at] = text.split(' ').collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let (_, verb) = Verb::WORDS.into_iter().find(|(word, _)| *word == verb)?;
        Some(Self {
            refused: verdict == "refused",
            client: client.to_owned(),
            verb,
            lock: lock.to_owned(),
            fence: fence.parse().ok()?,
            at: at.parse().ok()?,
        })
    }

    pub(crate) fn text(&self) -> String {
        let Self { refused, client, verb, lock, fence, at } = self;
        let verdict = if *refused { "refused" } else { "ok" };
        format!("{verdict} {client} {} {lock} {fence} {at}", verb.word())
    }

    /// The node of the client.
    pub(crate) fn node(&self) -> &str {
        node(&self.client)
    }
}

/// The node of a client.
fn node(client: &str) -> &str {
    client.split('/').next().unwrap_or_default()
}

/// A client inside a lock.
#[derive(Clone, Debug)]
struct Visit {
    client: String,
    /// When the client knew of its grant, and until when it was sure of it.
    from: u64,
    until: u64,
    /// Has it left, or was it told that the lock is lost, or was it killed?
    over: bool,
}

/// What came of a fault, from when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// From the fault to the first entry at another node, into the lock that is always wanted.
    pub(crate) next_in: Option<Duration>,
    /// The longest wait for a lock that only clients of one node want, at another node.
    pub(crate) pause: Duration,
    /// How many grants were lost at the node with the fault, and at others.
    pub(crate) lost_there: usize,
    pub(crate) lost_elsewhere: usize,
    /// How many writes of holders that did not know of their loss were refused by their fence.
    pub(crate) refused: usize,
    /// How many clients entered while another one was sure of the lock, or with a fence that does
    /// not grow.
    pub(crate) double: usize,
    /// How many requests had no answer for too long.
    pub(crate) hung: usize,
    /// For how long the machine stood still meanwhile.
    pub(crate) stood_still: Duration,
}

/// Reads the log.
#[derive(Default)]
pub(crate) struct Judge {
    /// By lock and by fence.
    visits: BTreeMap<String, BTreeMap<u64, Visit>>,
    /// By client: what it asked for, and when.
    asked: BTreeMap<String, (String, u64)>,
    /// By client: when it last entered.
    entered: BTreeMap<String, u64>,
    /// What is wrong, in words. It only grows.
    pub(crate) wrong: Vec<String>,
    /// Fences that were given twice.
    twice: usize,
    /// The longest that a client has waited for an answer, and which client.
    pub(crate) longest: (Duration, String),
    /// Double entries that belong to accounts that are closed.
    settled: usize,
    fault: Fault,
    account: Account,
}

/// The fault that is going on.
#[derive(Default)]
struct Fault {
    /// The node; empty if all have it.
    node: String,
    begun: u64,
    /// The lock whose next entry is awaited.
    wanted: String,
}

impl Judge {
    /// A fault of a node begins, or of all nodes if `node` is empty.
    pub(crate) fn begin(&mut self, node: &str, wanted: &str, now: u64) {
        self.fault = Fault { node: node.to_owned(), begun: now, wanted: wanted.to_owned() };
        self.account = Account::default();
    }

    /// The fault is over. Returns what came of it.
    pub(crate) fn end(&mut self, now: u64) -> Account {
        let overdue = self.asked.iter().filter(|(_, (lock, at))| self.hangs(lock, *at, now));
        let overdue: Vec<String> =
            overdue.map(|(client, (lock, _))| format!("{client} waits for {lock}")).collect();
        self.account.hung += overdue.len();
        self.wrong.extend(overdue);
        let double = self.twice + self.overlaps().len();
        self.account.double = double - self.settled;
        self.settled = double;
        self.account
    }

    /// Every pair of visits of which both were sure of the lock at one time, and every fence that
    /// does not grow.
    pub(crate) fn overlaps(&self) -> Vec<String> {
        let mut overlaps = Vec::new();
        for (lock, visits) in &self.visits {
            let mut last: Option<(&u64, &Visit)> = None;
            for (fence, visit) in visits {
                if let Some((before, sure)) = last
                    && visit.from < sure.until
                {
                    overlaps.push(format!(
                        "{lock}: {} entered with fence {fence} at {}, and {} was sure of {before} \
                         until {}",
                        visit.client, visit.from, sure.client, sure.until
                    ));
                }
                if last.is_none_or(|(_, sure)| visit.until > sure.until) {
                    last = Some((fence, visit));
                }
            }
        }
        overlaps
    }

    /// Clients that were inside, and were neither told that the lock is lost nor left, although
    /// another client entered later.
    pub(crate) fn untold(&self) -> Vec<String> {
        let mut untold = Vec::new();
        for (lock, visits) in &self.visits {
            let newest = visits.keys().next_back();
            let open = visits.iter().filter(|(fence, it)| !it.over && Some(*fence) != newest);
            untold.extend(open.map(|(fence, it)| format!("{lock}: {} with {fence}", it.client)));
        }
        untold
    }

    /// The node of the client that is inside a lock, and since when.
    pub(crate) fn inside(&self, lock: &str) -> Option<(&str, u64)> {
        let (_, visit) = self.visits.get(lock)?.last_key_value()?;
        (!visit.over).then(|| (node(&visit.client), visit.from))
    }

    /// When a client last entered.
    pub(crate) fn entered(&self, client: &str) -> u64 {
        self.entered.get(client).copied().unwrap_or_default()
    }

    /// What came of the fault until now, except double entries and requests that hang.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// How often clients entered any lock.
    pub(crate) fn entries(&self) -> usize {
        self.visits.values().map(BTreeMap::len).sum()
    }

    /// Read a line.
    pub(crate) fn read(&mut self, line: &Line) {
        let is_there = self.fault.node.is_empty() || self.fault.node == line.node();
        match line.verb {
            Verb::Asks => {
                self.asked.insert(line.client.clone(), (line.lock.clone(), line.at));
            }
            Verb::Told => drop(self.answered(line)),
            Verb::Enters => {
                if let Some(asked) = self.answered(line)
                    && line.lock.starts_with("own/")
                    && !is_there
                    && line.at > self.fault.begun
                {
                    let waited = Duration::from_nanos(line.at.saturating_sub(asked));
                    self.account.pause = self.account.pause.max(waited);
                }
                let elsewhere = self.fault.node != line.node() && line.at > self.fault.begun;
                if elsewhere && line.lock == self.fault.wanted && self.account.next_in.is_none() {
                    let after = Duration::from_nanos(line.at - self.fault.begun);
                    self.account.next_in = Some(after);
                }
                self.entered.insert(line.client.clone(), line.at);
                let client = line.client.clone();
                // It may have been stopped before it could look whether it still has the lock.
                let visit = Visit { client, from: line.at, until: 0, over: false };
                let visits = self.visits.entry(line.lock.clone()).or_default();
                if visits.insert(line.fence, visit).is_some() {
                    self.twice += 1;
                    self.wrong.push(format!("{}: fence {} twice", line.lock, line.fence));
                }
            }
            Verb::Writes => {
                self.account.refused += usize::from(line.refused);
                self.sure(line, false);
            }
            Verb::Leaves => self.sure(line, true),
            Verb::Loses => {
                if is_there {
                    self.account.lost_there += 1;
                } else {
                    self.account.lost_elsewhere += 1;
                    let (client, lock) = (&line.client, &line.lock);
                    let after = Duration::from_nanos(line.at.saturating_sub(self.fault.begun));
                    println!("{client} lost {lock} elsewhere, {after:?} after the fault began");
                }
                if let Some(visit) = self.visit(line) {
                    visit.over = true;
                }
            }
            Verb::Dies => {
                self.asked.remove(&line.client);
                let visits = self.visits.values_mut().flat_map(BTreeMap::values_mut);
                visits.filter(|visit| visit.client == line.client).for_each(|it| it.over = true);
            }
        }
    }

    fn visit(&mut self, line: &Line) -> Option<&mut Visit> {
        self.visits.get_mut(&line.lock)?.get_mut(&line.fence)
    }

    /// The client was sure of its lock.
    fn sure(&mut self, line: &Line, leaves: bool) {
        let Some(visit) = self.visit(line) else {
            self.wrong.push(format!("{} was never inside: {}", line.client, line.text()));
            return;
        };
        visit.until = visit.until.max(line.at);
        visit.over |= leaves;
    }

    /// A request has its answer. Returns when it was made.
    fn answered(&mut self, line: &Line) -> Option<u64> {
        let (lock, asked) = self.asked.remove(&line.client)?;
        let waited = Duration::from_nanos(line.at.saturating_sub(asked));
        self.longest = self.longest.clone().max((waited, line.client.clone()));
        if self.hangs(&lock, asked, line.at) {
            self.account.hung += 1;
            self.wrong.push(format!("{} waited too long: {}", line.client, line.text()));
        }
        Some(asked)
    }

    /// Did a request wait for longer than any should, while nobody entered its lock?
    ///
    /// Requests that wait are asked again in every view, in the order of its members. If views
    /// change every second, others may enter for longer than that before a client does.
    fn hangs(&self, lock: &str, asked: u64, now: u64) -> bool {
        let since = now.saturating_sub(HANGS.as_nanos() as u64);
        let mut visits = self.visits.get(lock).into_iter().flat_map(BTreeMap::values);
        asked < since && !visits.any(|visit| visit.from > since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A judge that has read these lines, after a fault at `a` at 100 ms.
    fn judge(lines: &[(&str, Verb, &str, u64, u64)]) -> Judge {
        let mut judge = Judge::default();
        judge.begin("a", "job", 100 * MS);
        for (client, verb, lock, fence, at) in lines {
            let line = Line::said(client, *verb, lock, *fence, at * MS);
            assert_eq!(Line::parse(&line.text()), Some(line.clone()));
            judge.read(&line);
        }
        judge
    }

    #[test]
    fn two_clients_inside_at_a_time_are_found() {
        let mut judge = judge(&[
            ("a/job", Verb::Enters, "job", 5, 50),
            ("a/job", Verb::Writes, "job", 5, 210),
            ("b/job", Verb::Enters, "job", 6, 200),
        ]);
        assert_eq!(judge.end(0).double, 1);
        assert_eq!(judge.end(0).double, 0, "it is counted once");
        assert!(judge.overlaps()[0].contains("b/job entered with fence 6"));
    }

    #[test]
    fn a_client_that_was_stopped_before_it_could_look_was_never_sure() {
        let mut judge = judge(&[
            ("b/job", Verb::Enters, "job", 6, 200),
            ("b/job", Verb::Leaves, "job", 6, 210),
            ("a/job", Verb::Enters, "job", 5, 300),
            ("a/job", Verb::Loses, "job", 5, 301),
        ]);
        assert_eq!(judge.end(0).double, 0);
    }

    #[test]
    fn a_fence_that_does_not_grow_is_found() {
        let lines = [
            ("a/job", Verb::Enters, "job", 6, 50),
            ("a/job", Verb::Leaves, "job", 6, 60),
            ("b/job", Verb::Enters, "job", 5, 200),
            ("b/job", Verb::Leaves, "job", 5, 210),
        ];
        assert_eq!(judge(&lines).end(0).double, 1);
        let twice = [("a/job", Verb::Enters, "job", 6, 50), ("b/job", Verb::Enters, "job", 6, 70)];
        assert_eq!(judge(&twice).end(0).double, 1);
    }

    #[test]
    fn a_loss_in_time_is_no_double_entry_but_the_client_must_be_told() {
        let lines = [
            ("a/job", Verb::Enters, "job", 5, 50),
            ("a/job", Verb::Writes, "job", 5, 150),
            ("a/job", Verb::Loses, "job", 5, 160),
            ("b/job", Verb::Enters, "job", 6, 300),
            ("b/job", Verb::Leaves, "job", 6, 310),
        ];
        let mut told = judge(&lines);
        let account = told.end(0);
        assert_eq!((account.double, account.lost_there, account.lost_elsewhere), (0, 1, 0));
        assert_eq!(account.next_in, Some(Duration::from_millis(200)));
        assert!(told.untold().is_empty());
        let lines: Vec<_> =
            lines.into_iter().filter(|(_, verb, ..)| *verb != Verb::Loses).collect();
        assert_eq!(judge(&lines).untold(), ["job: a/job with 5"]);
        let killed = [lines[0], ("a/job", Verb::Dies, "-", 0, 155), lines[2]];
        assert!(judge(&killed).untold().is_empty());
    }

    #[test]
    fn pauses_count_elsewhere_and_hung_clients_everywhere() {
        let long = 100 + HANGS.as_millis() as u64 + 1;
        let mut judge = judge(&[
            ("a/own", Verb::Asks, "own/a", 0, 90),
            ("b/own", Verb::Asks, "own/b", 0, 95),
            ("b/own", Verb::Enters, "own/b", 7, 130),
            ("b/job", Verb::Asks, "job", 0, 99),
            ("b/job", Verb::Told, "job", 0, long),
        ]);
        let account = judge.end(long * MS);
        assert_eq!((account.pause, account.hung), (Duration::from_millis(35), 2));
    }
}

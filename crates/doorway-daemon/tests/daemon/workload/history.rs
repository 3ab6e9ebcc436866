//! The log of the clients, and what must be true of it.

#![expect(clippy::unwrap_used, reason = "a history that cannot be read proves nothing")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

/// The log of all clients.
#[derive(Default)]
pub(crate) struct History {
    /// By fence: the client, the latest time of its grant, and when it was last sure of the lock.
    visits: BTreeMap<u64, Visit>,
    /// What was written, as far as the writer survived to log it.
    written: Vec<u64>,
    /// The content of the file.
    last: u64,
    /// How often a client found the lock lost, and how often the resource refused a fence.
    lost: usize,
    stale: usize,
}

struct Visit {
    client: String,
    from: u64,
    /// `None` if it was never sure: it may have been paused before it could check.
    until: u64,
}

impl History {
    pub(crate) fn read(directory: &Path) -> Self {
        let mut history =
            Self { last: value(&directory.join("value")).unwrap(), ..Self::default() };
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let client = path.file_stem().unwrap().to_string_lossy().into_owned();
                for line in fs::read_to_string(&path).unwrap().lines() {
                    history.add(&client, line);
                }
            }
        }
        history
    }

    fn add(&mut self, client: &str, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| words[index].parse::<u64>().unwrap();
        match words[0] {
            "e" => {
                let (from, client) = (number(2), client.to_owned());
                let visit = Visit { client, from, until: 0 };
                let before = self.visits.insert(number(1), visit);
                assert!(before.is_none(), "fence {} was given twice", words[1]);
            }
            "h" => self.visits.get_mut(&number(1)).unwrap().until = number(2),
            "w" => self.written.push(number(2)),
            "l" => self.lost += 1,
            "s" => self.stale += 1,
            other => panic!("nobody writes {other}"),
        }
    }

    /// Assert that no client enters while another one is still sure of the lock, and that fences
    /// grow.
    pub(crate) fn assert_exclusive(&self) {
        let mut last: Option<(&u64, &Visit)> = None;
        for (fence, visit) in &self.visits {
            if let Some((before, sure)) = last {
                assert!(
                    visit.from >= sure.until,
                    "client {} entered with fence {fence} at {}, and {} was sure of {before} \
                     until {}",
                    visit.client,
                    visit.from,
                    sure.client,
                    sure.until
                );
            }
            if last.is_none_or(|(_, sure)| visit.until > sure.until) {
                last = Some((fence, visit));
            }
        }
    }

    /// How many writes replaced one that their writer had not read.
    pub(crate) fn lost_updates(&self) -> u64 {
        let distinct: BTreeSet<u64> = self.written.iter().copied().collect();
        let twice = self.written.len() - distinct.len();
        let highest = distinct.last().copied().unwrap_or_default();
        // If many updates were lost at once, values repeat that often.
        twice as u64 + highest.saturating_sub(self.last)
    }

    /// The number of updates that their writer survived to log.
    pub(crate) fn updates(&self) -> usize {
        self.written.len()
    }
}

/// The content of the file.
pub(crate) fn value(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.parse().ok()
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entries, updates, last) = (self.visits.len(), self.updates(), self.last);
        let lost_updates = self.lost_updates();
        write!(
            f,
            "{entries} entries, {updates} updates told and {last} in the file, {} locks found \
             lost, {} fences refused, {lost_updates} updates lost",
            self.lost, self.stale
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[(&str, &str)], last: u64) -> History {
        let mut history = History { last, ..History::default() };
        for (client, line) in lines {
            history.add(client, line);
        }
        history
    }

    #[test]
    fn a_worker_paused_before_it_could_ask_was_never_sure() {
        let lines = [("1", "e 5 90"), ("2", "e 6 40"), ("2", "h 6 50"), ("1", "l 5 95")];
        of(&lines, 0).assert_exclusive();
    }

    #[test]
    #[should_panic(expected = "client 2 entered with fence 7 at 40, and 1 was sure of 5 until 50")]
    fn two_who_are_sure_at_a_time_are_found() {
        let lines = [("1", "e 5 10"), ("1", "h 5 50"), ("3", "e 6 60"), ("2", "e 7 40")];
        of(&lines, 0).assert_exclusive();
    }

    #[test]
    fn lost_updates_are_counted() {
        assert_eq!(of(&[("1", "w 5 1"), ("2", "w 6 2")], 2).lost_updates(), 0);
        assert_eq!(of(&[("1", "w 5 1"), ("2", "w 6 1")], 1).lost_updates(), 1);
        assert_eq!(of(&[("1", "w 5 1"), ("2", "w 6 2"), ("2", "w 7 3")], 2).lost_updates(), 1);
    }
}

//! What the clients wrote down, and what must be true of it.

#![expect(clippy::unwrap_used, reason = "a history that cannot be read proves nothing")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

/// What all clients wrote down.
#[derive(Default)]
pub(crate) struct History {
    /// By fence: who, since when at the latest, and when it was last sure of the lock.
    visits: BTreeMap<u64, Visit>,
    /// What was written, as far as its writer lived to tell.
    written: Vec<u64>,
    /// What is in the file.
    last: u64,
    /// How often a client found the lock lost, and how often the resource refused a fence.
    lost: usize,
    stale: usize,
}

struct Visit {
    client: String,
    from: u64,
    /// Nothing if it was never sure: it may have been paused before it could ask.
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

    /// Nobody enters while another one is still sure of the lock, and fences grow from each to the
    /// next.
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
        // Where many were lost at once, values come again as often.
        twice as u64 + highest.saturating_sub(self.last)
    }

    /// How many updates there were of which their writer lived to tell.
    pub(crate) fn updates(&self) -> usize {
        self.written.len()
    }
}

/// What is in the file.
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

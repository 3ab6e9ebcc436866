//! The referee: every process of a group reports each entry and exit to it, and it checks what the
//! locks promise.

#![expect(clippy::unwrap_used, reason = "a process that cannot be talked to ends the test")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::book::Book;

/// How many clients may be inside a lock, given its name.
pub(crate) type Permits = fn(&str) -> usize;

/// Sees all entries of all processes.
pub(crate) struct Referee {
    seen: Arc<Mutex<RefereeState>>,
}

#[derive(Default)]
struct RefereeState {
    book: Book,
    /// How many clients of each node still report.
    reporting: BTreeMap<String, usize>,
}

impl Referee {
    pub(crate) fn listen(path: &Path, permits: Permits) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let seen: Arc<Mutex<RefereeState>> = Arc::default();
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming()) {
                let seen = Arc::clone(&shared);
                thread::spawn(move || follow(number, stream.unwrap(), &seen, permits));
            }
        });
        Self { seen }
    }

    /// How many entries there were so far.
    pub(crate) fn entries(&self) -> u64 {
        self.seen.lock().unwrap().book.entries
    }

    /// Wait until there were this many entries: work must go on.
    pub(crate) fn await_entries(&self, count: u64) {
        let goal = format!("{count} entries");
        until(&goal, || self.entries() >= count);
    }

    /// Wait until everything that a killed node has reported is recorded. Otherwise its last
    /// reports could come after what the others did when it was gone.
    pub(crate) fn await_end(&self, node: &str) {
        let reporting = || self.seen.lock().unwrap().reporting.get(node).copied();
        until("the end of the reports", || reporting().unwrap_or(0) == 0);
    }

    /// Check that no promise was broken so far.
    pub(crate) fn assert_fair(&self) {
        let book = &self.seen.lock().unwrap().book;
        assert!(book.faults.is_empty(), "{} faults: {:#?}", book.faults.len(), book.faults.first());
    }

    /// Check that no client is inside any more.
    pub(crate) fn assert_free(&self) {
        let book = &self.seen.lock().unwrap().book;
        assert!(book.held().is_empty(), "still held: {:?}", book.held());
    }
}

fn until(goal: &str, reached: impl Fn() -> bool) {
    let begin = Instant::now();
    while !reached() {
        assert!(begin.elapsed() < Duration::from_mins(2), "stuck on the way to {goal}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Record what one client reports, until it ends. Its entries end with it.
fn follow(number: u64, stream: UnixStream, seen: &Mutex<RefereeState>, permits: Permits) {
    let mut write = stream.try_clone().unwrap();
    let mut node = None;
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        let mut seen = seen.lock().unwrap();
        match line.strip_prefix("of ") {
            Some(name) => {
                node = Some(name.to_owned());
                *seen.reporting.entry(name.to_owned()).or_default() += 1;
            }
            None => note(&mut seen.book, number, &line, permits),
        }
        drop(seen);
        if write.write_all(b"ok\n").is_err() {
            break;
        }
    }
    let mut seen = seen.lock().unwrap();
    seen.book.gone(number);
    if let Some(count) = node.and_then(|node| seen.reporting.get_mut(&node)) {
        *count -= 1;
    }
}

/// Record one report.
fn note(book: &mut Book, number: u64, line: &str, permits: Permits) {
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["enter", name, mode, fence] => {
            book.enter(number, name, mode == "Shared", fence.parse().unwrap(), permits(name));
        }
        ["leave", name] => book.leave(number, name),
        _ => book.faults.push(format!("a report that makes no sense: {line}")),
    }
}

//! The referee: every process of a group reports to it whoever enters and leaves, and it checks all
//! that was promised.

#![expect(clippy::unwrap_used, reason = "a process that cannot be talked to ends the test")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How many may be inside a lock, by its name.
pub(crate) type Permits = fn(&str) -> usize;

/// Sees all entries of all processes.
pub(crate) struct Referee {
    book: Arc<Mutex<Book>>,
}

/// What has been seen.
#[derive(Default)]
pub(crate) struct Book {
    locks: BTreeMap<String, Seen>,
    pub(crate) entries: u64,
    pub(crate) faults: Vec<String>,
}

/// What has been seen of one lock.
#[derive(Default)]
struct Seen {
    /// Who is inside: the connection that reported it, and whether it shares.
    inside: Vec<(u64, bool)>,
    /// The highest fence of those who were alone, and of those who shared.
    alone: u64,
    shared: u64,
    /// The fences of permits, each of which must come once.
    permits: std::collections::BTreeSet<u64>,
}

impl Referee {
    pub(crate) fn listen(path: &Path, permits: Permits) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let book = Arc::new(Mutex::new(Book::default()));
        let shared = Arc::clone(&book);
        thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming()) {
                let book = Arc::clone(&shared);
                thread::spawn(move || follow(number, stream.unwrap(), &book, permits));
            }
        });
        Self { book }
    }

    /// How many have entered so far.
    pub(crate) fn entries(&self) -> u64 {
        self.book.lock().unwrap().entries
    }

    /// Wait until so many have entered: work must go on.
    pub(crate) fn await_entries(&self, count: u64) {
        let begin = Instant::now();
        while self.entries() < count {
            let (entries, waited) = (self.entries(), begin.elapsed());
            assert!(waited < Duration::from_mins(1), "stuck at {entries} entries of {count}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Nothing was wrong so far.
    pub(crate) fn assert_fair(&self) {
        let book = self.book.lock().unwrap();
        assert!(book.faults.is_empty(), "{} faults: {:#?}", book.faults.len(), book.faults.first());
    }

    /// Nobody is inside any more.
    pub(crate) fn assert_free(&self) {
        let book = self.book.lock().unwrap();
        for (name, seen) in &book.locks {
            assert!(seen.inside.is_empty(), "{name} is still held by {:?}", seen.inside);
        }
    }
}

/// Write down what one process reports, until it ends: with it end its entries.
fn follow(number: u64, stream: UnixStream, book: &Mutex<Book>, permits: Permits) {
    let mut write = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        book.lock().unwrap().note(number, &line, permits);
        if write.write_all(b"ok\n").is_err() {
            break;
        }
    }
    for seen in book.lock().unwrap().locks.values_mut() {
        seen.inside.retain(|(holder, _)| *holder != number);
    }
}

impl Book {
    fn note(&mut self, number: u64, line: &str, permits: Permits) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["enter", name, mode, fence] => {
                self.entries += 1;
                let fence = fence.parse().unwrap();
                let seen = self.locks.entry(name.to_owned()).or_default();
                let fault = seen.enter(number, mode == "Shared", fence, permits(name));
                self.faults.extend(fault.map(|fault| format!("{name}: {fault}")));
            }
            ["leave", name] => {
                let seen = self.locks.entry(name.to_owned()).or_default();
                match seen.inside.iter().position(|(holder, _)| *holder == number) {
                    Some(at) => drop(seen.inside.remove(at)),
                    None => self.faults.push(format!("{name}: left by one who was not inside")),
                }
            }
            _ => self.faults.push(format!("a report that makes no sense: {line}")),
        }
    }
}

impl Seen {
    fn enter(&mut self, number: u64, shares: bool, fence: u64, permits: usize) -> Option<String> {
        let companions = shares && self.inside.iter().all(|(_, shares)| *shares);
        let fits = companions || self.inside.len() < permits;
        self.inside.push((number, shares));
        if !fits {
            return Some(format!("{} inside at once", self.inside.len()));
        }
        let grows = if permits > 1 {
            self.permits.insert(fence)
        } else if shares {
            self.shared = self.shared.max(fence);
            fence > self.alone
        } else {
            let grows = fence > self.alone && fence > self.shared;
            self.alone = self.alone.max(fence);
            grows
        };
        let Self { alone, shared: together, .. } = self;
        (!grows).then(|| format!("fence {fence} after {alone} alone and {together} shared"))
    }
}

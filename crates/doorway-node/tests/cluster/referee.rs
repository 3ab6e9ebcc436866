//! The referee: every process of a group reports to it whoever enters and leaves, and it checks all
//! that was promised.

#![expect(clippy::unwrap_used, reason = "a process that cannot be talked to ends the test")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::book::Book;

/// How many may be inside a lock, by its name.
pub(crate) type Permits = fn(&str) -> usize;

/// Sees all entries of all processes.
pub(crate) struct Referee {
    book: Arc<Mutex<Book>>,
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
        assert!(book.held().is_empty(), "still held: {:?}", book.held());
    }
}

/// Write down what one process reports, until it ends: with it end its entries.
fn follow(number: u64, stream: UnixStream, book: &Mutex<Book>, permits: Permits) {
    let mut write = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        note(&mut book.lock().unwrap(), number, &line, permits);
        if write.write_all(b"ok\n").is_err() {
            break;
        }
    }
    book.lock().unwrap().gone(number);
}

/// Write down one report.
fn note(book: &mut Book, number: u64, line: &str, permits: Permits) {
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["enter", name, mode, fence] => {
            book.enter(number, name, mode == "Shared", fence.parse().unwrap(), permits(name));
        }
        ["leave", name] => book.leave(number, name),
        _ => book.faults.push(format!("a report that makes no sense: {line}")),
    }
}

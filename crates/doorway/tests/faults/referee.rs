//! The referee: a process of its own that accepts writes by their fences, and keeps a log.
//!
//! Clients say one line at a time over a Unix socket, and the referee answers whether it accepts
//! it. It refuses a write with a lower fence than one that it has seen for that lock, as a resource
//! should. It knows nothing of nodes, views and leases.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::judge::{Line, Verb};

/// Its socket, in the directory where all processes run.
pub(crate) const SOCKET: &str = "referee.socket";

/// Its log, there too.
pub(crate) const LOG: &str = "referee.log";

/// The variable that makes a process the referee.
pub(crate) const ROLE: &str = "DOORWAY_FAULTS_REFEREE";

/// The test that is the referee.
pub(crate) const TEST: &str = "referee::the_referee";

/// What the referee remembers.
struct Referee {
    /// By lock.
    highest: BTreeMap<String, u64>,
    log: File,
}

/// Not a test: the referee itself.
#[test]
#[ignore = "it is the referee, which another test starts as a process"]
fn the_referee() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let log = File::create(LOG).expect("a log");
    let referee = Arc::new(Mutex::new(Referee { highest: BTreeMap::new(), log }));
    let listener = UnixListener::bind(SOCKET).expect("a socket");
    for stream in listener.incoming() {
        let (stream, referee) = (stream.expect("a client"), Arc::clone(&referee));
        thread::spawn(move || serve(&stream, &referee));
    }
}

/// Answer the lines of one client, until its connection ends.
fn serve(stream: &UnixStream, referee: &Mutex<Referee>) {
    let mut lines = BufReader::new(stream);
    let mut text = String::new();
    while lines.read_line(&mut text).is_ok_and(|count| count > 0 && text.ends_with('\n')) {
        let mut line = Line::parse(text.trim_end()).expect("a line of ours");
        text.clear();
        let answer = referee.lock().expect("no panics").hear(&mut line);
        let mut stream = stream;
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

impl Referee {
    fn hear(&mut self, line: &mut Line) -> &'static str {
        if line.verb == Verb::Writes {
            let highest = self.highest.entry(line.lock.clone()).or_default();
            line.refused = line.fence < *highest;
            *highest = line.fence.max(*highest);
        }
        writeln!(self.log, "{}", line.text()).expect("a disk with space for the log");
        if line.refused { "refused\n" } else { "ok\n" }
    }
}

/// A connection to the referee.
pub(crate) struct Ear {
    stream: BufReader<UnixStream>,
}

impl Ear {
    /// Connect to the referee in this directory.
    pub(crate) fn connect(directory: &Path) -> std::io::Result<Self> {
        // The path of a socket is limited to 107 bytes, and a directory may have a long name.
        let handle = File::open(directory)?;
        let path = format!("/proc/self/fd/{}/{SOCKET}", std::os::fd::AsRawFd::as_raw_fd(&handle));
        Ok(Self { stream: BufReader::new(UnixStream::connect(path)?) })
    }

    /// Say a line. Was it accepted?
    pub(crate) fn say(&mut self, line: &Line) -> bool {
        let text = line.text() + "\n";
        self.stream.get_mut().write_all(text.as_bytes()).expect("the referee listens");
        let mut answer = String::new();
        self.stream.read_line(&mut answer).expect("the referee answers");
        match answer.trim_end() {
            "ok" => true,
            "refused" => false,
            other => panic!("the referee answers {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_with_a_lower_fence_is_refused() {
        let log = File::options().write(true).open("/dev/null").expect("a device");
        let mut referee = Referee { highest: BTreeMap::new(), log };
        let mut hear = |lock, fence| {
            referee.hear(&mut Line::said("a/job", Verb::Writes, lock, fence, 1)).trim_end()
        };
        assert_eq!(
            [hear("x", 5), hear("x", 7), hear("x", 7), hear("x", 6)].map(|it| it == "ok"),
            [true, true, true, false]
        );
        assert_eq!(hear("y", 1), "ok");
    }
}

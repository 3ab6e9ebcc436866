//! Messages on standard error that never block.
//!
//! The terminal may be stopped with Ctrl-S, or nobody may read the pipe. The lock must be kept and
//! the command ended in time all the same, so a message that cannot be written at once is dropped.

use std::io::{self, Write as _};

use doorway_protocol::text::cut;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Write a message as a line that begins with `doorway: `.
pub(crate) fn print_line(what: &str) {
    print(&format!("doorway: {what}\n"));
}

/// The longest text that is written. A pipe that is ready takes this many bytes without blocking.
const LONGEST: usize = 4000;

/// Write a text as it is, or its beginning if it is very long.
pub(crate) fn print(text: &str) {
    let text = cut(text, LONGEST);
    let stderr = io::stderr();
    let mut look = [PollFd::new(&stderr, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut look, Some(&now)).is_ok_and(|ready| ready > 0) {
        // If standard error is closed there is nowhere to report that.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

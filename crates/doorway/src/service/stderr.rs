//! Words on standard error, never waited for.
//!
//! Someone may have stopped the terminal, or not read the pipe: the lock must be kept and the
//! command ended in time all the same. So what cannot be said at once is not said.

use std::io::{self, Write as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Say this, on a line of its own.
pub(crate) fn print_line(what: &str) {
    print(&format!("doorway: {what}\n"));
}

/// So many bytes of a line surely fit where there is room for any.
const LONGEST: usize = 4000;

/// Write this as it is, or its beginning if it is very long.
pub(crate) fn print(text: &str) {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    let stderr = io::stderr();
    let mut look = [PollFd::new(&stderr, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut look, Some(&now)).is_ok_and(|ready| ready > 0) {
        // With standard error gone there is nobody left to tell.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

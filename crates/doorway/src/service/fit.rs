//! Text that fits into the terminal.

use std::io::{self, IsTerminal as _};

use rustix::termios::tcgetwinsize;

/// How many columns the terminal has, if standard output is one. Elsewhere lines may be long.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    // Some terminals do not know their size and say 0.
    let columns = tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col);
    Some(if columns == 0 { 80 } else { usize::from(columns).max(40) })
}

/// A text cut to at most this many characters, with an ellipsis in the place of what is missing.
///
/// The end is kept as well as the beginning: a client's description ends with its process and host.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most || most == 0 {
        return text.to_owned();
    }
    let tail = (most - 1) / 2;
    let head: String = text.chars().take(most - 1 - tail).collect();
    let tail: String = text.chars().skip(count - tail).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        assert_eq!(shorten("make all (pid 12) on host", 25), "make all (pid 12) on host");
        assert_eq!(shorten("make all (pid 12) on host", 11), "make … host");
        assert_eq!(shorten("ééééé", 3), "é…é");
    }
}

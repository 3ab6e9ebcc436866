//! Asks before something is done that cannot be undone.

use std::io::{IsTerminal as _, Write as _, stderr, stdin};

use crate::service::exit::{self, Exit};

/// Ask whether to go on, unless `yes` says so already. Without a terminal nobody can be asked.
pub(super) fn confirm(question: &str, yes: bool) -> Result<(), Exit> {
    if yes {
        return Ok(());
    }
    if !stdin().is_terminal() {
        let text =
            "nothing was changed: add --yes to go on, because there is no terminal to ask at";
        return Err(Exit::new(exit::USAGE, text));
    }
    let mut answer = String::new();
    let asked = write!(stderr(), "{question} Type yes to go on: ").and_then(|()| stderr().flush());
    let read = asked.and_then(|()| stdin().read_line(&mut answer));
    if read.is_ok() && answer.trim() == "yes" {
        return Ok(());
    }
    Err(Exit::new(1, "nothing was changed"))
}

//! What can go wrong, and which exit code says so.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

use doorway_core::GroupError;

use crate::service::exit::Exit;

/// The command was misused: one line that says how, exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// A check came to no end: one line that says why, exit code 3.
#[derive(Debug)]
pub(crate) struct NotExhausted(pub(crate) String);

impl fmt::Display for NotExhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for NotExhausted {}

/// Is there anything to say? Not where the exit code is that of a command that was run.
pub(crate) fn is_quiet(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Exit>().is_some_and(|exit| exit.text.is_none())
}

/// The exit code of an error: 2 for a wrong command line, 3 for a check that did not end, 1 for
/// everything else.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if let Some(exit) = error.downcast_ref::<Exit>() {
        return ExitCode::from(exit.code);
    }
    let misused = error.chain().any(|cause| cause.is::<Usage>() || cause.is::<GroupError>());
    let open = error.chain().any(<dyn Error>::is::<NotExhausted>);
    ExitCode::from(if misused {
        2
    } else if open {
        3
    } else {
        1
    })
}

/// Did the reader of our output close it?
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = |cause: &(dyn Error + 'static)| Some(cause.downcast_ref::<io::Error>()?.kind());
    let json =
        |cause: &(dyn Error + 'static)| cause.downcast_ref::<serde_json::Error>()?.io_error_kind();
    error.chain().any(|cause| io(cause).or_else(|| json(cause)) == Some(ErrorKind::BrokenPipe))
}

/// A reader who has seen enough does not change the verdict of what was printed.
pub(crate) fn unless_closed(printed: anyhow::Result<()>) -> anyhow::Result<()> {
    printed.or_else(|error| if is_broken_pipe(&error) { Ok(()) } else { Err(error) })
}

/// The parser's message without its usage, its pointer to `--help`, and its line breaks.
pub(crate) fn one_line(text: &str) -> String {
    let message = text.split("\n\nUsage:").next().unwrap_or(text);
    let message = message.split("\n\nFor more information").next().unwrap_or(message);
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let paragraphs = message.split("\n\n").map(|paragraph| {
        let lines = paragraph.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join(" ")
    });
    paragraphs.filter(|paragraph| !paragraph.is_empty()).collect::<Vec<_>>().join("; ")
}

/// How the command is used, by the parser's message.
pub(crate) fn usage(text: &str) -> Option<&str> {
    text.split_once("\n\nUsage: ")?.1.lines().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parser_error_becomes_one_line() {
        let text = "error: unrecognized subcommand 'lst'\n\n  tip: a similar subcommand exists: \
                    'list'\n\nUsage: doorway <COMMAND>\n\nFor more information, try '--help'.\n";
        let line = "unrecognized subcommand 'lst'; tip: a similar subcommand exists: 'list'";
        assert_eq!(one_line(text), line);
        assert_eq!(usage(text), Some("doorway <COMMAND>"));
        let text = "error: the following arguments were not provided:\n  -n <N>\n\nUsage: x\n";
        assert_eq!(one_line(text), "the following arguments were not provided: -n <N>");
    }

    #[test]
    fn misuse_is_told_from_failure() {
        let code = |error: anyhow::Error| format!("{:?}", exit_code(&error));
        let two = format!("{:?}", ExitCode::from(2));
        assert_eq!(code(Usage("no".into()).into()), two);
        assert_eq!(code(anyhow::Error::from(GroupError::new("no")).context("while asking")), two);
        assert_ne!(code(io::Error::other("disk").into()), two);
        let three = format!("{:?}", ExitCode::from(3));
        assert_eq!(code(NotExhausted("stopped".into()).into()), three);
    }
}

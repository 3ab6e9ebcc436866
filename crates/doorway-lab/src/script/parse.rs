//! From text to commands.

use std::str::SplitWhitespace;

use doorway_core::{Mode, NodeId};

use super::ScriptError;
use super::setup::{Setup, node};
use crate::nearest::hint;
use crate::trace::kind;

/// A script as read: where it begins, and its lines.
pub(super) struct Script<'a> {
    pub(super) setup: Setup<'a>,
    pub(super) lines: Vec<Line<'a>>,
}

/// A line of a script.
pub(super) enum Line<'a> {
    /// A comment or a blank line.
    Verbatim(&'a str),
    /// Something to do.
    Command { number: usize, text: &'a str, command: Command },
    /// Where the effects of the commands above belong. What was written there is not kept.
    Effects,
}

/// Something to do.
pub(super) enum Command {
    /// What [`Setup`] has read.
    Run,
    Act(Act),
    Stabilize {
        quietly: bool,
    },
    Show(Option<NodeId>),
    Count,
    /// What follows, up to `Again`, can be done again and again.
    Round,
    Again,
}

/// A choice that may turn out not to be there.
pub(super) enum Act {
    Acquire(NodeId, Mode),
    Release(NodeId),
    Message { fate: Fate, from: NodeId, to: NodeId, which: Which },
    Crash(NodeId),
    Detect { node: NodeId, failed: NodeId },
    Forget(NodeId),
}

/// What becomes of a message.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    Deliver,
    Drop,
    Duplicate,
}

/// Which of the messages between two nodes.
pub(super) enum Which {
    Oldest,
    /// Counted from 1, in the order of sending.
    Number(usize),
    /// The oldest whose kind or whole text is this.
    Called(String),
}

impl Which {
    /// Read what stands behind the two nodes of a message.
    pub(super) fn read(text: &str) -> Self {
        match text.parse() {
            Ok(number) => Self::Number(number),
            Err(_) if text.is_empty() => Self::Oldest,
            Err(_) => Self::Called(text.to_owned()),
        }
    }

    /// Which of these messages it is, given in the order of sending.
    pub(super) fn find(&self, texts: &[String]) -> Option<usize> {
        let at = match self {
            Self::Oldest => Some(0),
            Self::Number(number) => number.checked_sub(1),
            Self::Called(name) => {
                texts.iter().position(|text| text == name || kind(text) == name.as_str())
            }
        };
        at.filter(|at| *at < texts.len())
    }
}

const COMMANDS: [&str; 15] = [
    "run",
    "quorum",
    "acquire",
    "release",
    "deliver",
    "drop",
    "duplicate",
    "crash",
    "detect",
    "forget",
    "stabilize",
    "show",
    "count",
    "round",
    "again",
];

/// Read a script.
pub(super) fn parse(text: &str) -> Result<Script<'_>, ScriptError> {
    let mut setup = Setup::default();
    let mut lines = Vec::new();
    // Commands whose effects have no place yet; whether we are among effects.
    let (mut open, mut effects) = (false, false);
    let mut last = 1;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let wrong = |message: String| ScriptError::new(number, message);
        last = number;
        if line.is_empty() {
            if open {
                lines.push(Line::Effects);
            }
            (open, effects) = (false, false);
            lines.push(Line::Verbatim(line));
        } else if effects {
            effect(line).map_err(wrong)?;
        } else if line == "----" {
            if !open {
                return Err(wrong("'----' stands below a command".into()));
            }
            (open, effects) = (false, true);
            lines.push(Line::Effects);
        } else if line.starts_with('#') {
            lines.push(Line::Verbatim(line));
        } else {
            let command = command(line, number, &mut setup).map_err(wrong)?;
            setup.closed |= !matches!(command, Command::Run);
            open = true;
            lines.push(Line::Command { number, text: line, command });
        }
    }
    if open {
        lines.push(Line::Effects);
    }
    if setup.line == 0 {
        return Err(ScriptError::new(last, "nothing runs; say 'run ALGORITHM n=3'"));
    }
    Ok(Script { setup, lines })
}

/// Lines among effects are written anew, so what is no effect must not be lost there.
fn effect(line: &str) -> Result<(), String> {
    let first = line.split_whitespace().next().unwrap_or_default();
    if first.starts_with('#') {
        return Err("a comment among effects; put it above a command".into());
    }
    if COMMANDS.contains(&first) {
        return Err(format!("'{line}' stands among effects; a blank line ends them"));
    }
    Ok(())
}

/// Read one command.
fn command<'a>(line: &'a str, number: usize, setup: &mut Setup<'a>) -> Result<Command, String> {
    let mut words = Words { words: line.split_whitespace(), size: setup.size };
    let verb = words.words.next().unwrap_or_default();
    match verb {
        "run" => return setup.run(number, line).map(|()| Command::Run),
        "quorum" => return setup.quorum(line).map(|()| Command::Run),
        _ if !COMMANDS.contains(&verb) => {
            return Err(format!("'{verb}' is no command{}", hint(verb, COMMANDS)));
        }
        _ if setup.line == 0 => {
            return Err(format!("'{verb}' before 'run'; say 'run ALGORITHM n=3' first"));
        }
        _ => {}
    }
    let command = match verb {
        "stabilize" => Command::Stabilize { quietly: words.quietly()? },
        "count" => Command::Count,
        "round" => Command::Round,
        "again" => Command::Again,
        "show" if words.words.clone().next().is_none() => Command::Show(None),
        "show" => Command::Show(Some(words.node("show 1")?)),
        _ => Command::Act(words.act(verb)?),
    };
    match words.words.next() {
        None => Ok(command),
        Some(word) => Err(format!("'{word}' is one word too many for '{verb}'")),
    }
}

/// The words after the verb.
struct Words<'a> {
    words: SplitWhitespace<'a>,
    size: usize,
}

impl Words<'_> {
    fn act(&mut self, verb: &str) -> Result<Act, String> {
        Ok(match verb {
            "acquire" => Act::Acquire(self.node("acquire 1")?, self.mode()?),
            "release" => Act::Release(self.node("release 1")?),
            "deliver" => self.message(Fate::Deliver)?,
            "drop" => self.message(Fate::Drop)?,
            "duplicate" => self.message(Fate::Duplicate)?,
            "crash" => Act::Crash(self.node("crash 1")?),
            "forget" => Act::Forget(self.node("forget 1")?),
            _ => {
                let (node, failed) = (self.node("detect 1 2")?, self.node("detect 1 2")?);
                Act::Detect { node, failed }
            }
        })
    }

    fn node(&mut self, example: &str) -> Result<NodeId, String> {
        let word =
            self.words.next().ok_or_else(|| format!("a node is missing, as in '{example}'"))?;
        node(word, self.size)
    }

    fn mode(&mut self) -> Result<Mode, String> {
        match self.words.next() {
            None => Ok(Mode::Exclusive),
            Some("shared") => Ok(Mode::Shared),
            Some(word) => Err(format!("'{word}' is no mode; say 'shared' or nothing")),
        }
    }

    fn quietly(&mut self) -> Result<bool, String> {
        match self.words.next() {
            None => Ok(false),
            Some("quietly") => Ok(true),
            Some(word) => Err(format!("'{word}' is no way to stabilize; say 'quietly' or nothing")),
        }
    }

    fn message(&mut self, fate: Fate) -> Result<Act, String> {
        let (from, to) = (self.node("deliver 1 2")?, self.node("deliver 1 2")?);
        let rest = self.words.by_ref().collect::<Vec<_>>().join(" ");
        let which = Which::read(&rest);
        Ok(Act::Message { fate, from, to, which })
    }
}

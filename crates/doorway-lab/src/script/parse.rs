//! The parser of scripts.

use std::str::SplitWhitespace;

use doorway_core::{Mode, NodeId};

use super::ScriptError;
use super::setup::{Setup, node};
use crate::nearest::hint;
use crate::trace::kind;

/// A script that was parsed: its group, and its lines.
pub(super) struct Script<'a> {
    pub(super) setup: Setup<'a>,
    pub(super) lines: Vec<Line<'a>>,
}

/// A line of a script.
pub(super) enum Line<'a> {
    /// A comment or a blank line.
    Verbatim(&'a str),
    /// A command with its line number.
    Command { number: usize, text: &'a str, command: Command },
    /// The place for the effects of the commands above. The effects in the text are not kept.
    Effects,
}

impl Line<'_> {
    /// The number of the line, if it has a command that does not describe the group.
    pub(super) fn command_beside_setup(&self) -> Option<usize> {
        match self {
            Self::Command { command: Command::Run, .. } | Self::Verbatim(_) | Self::Effects => None,
            Self::Command { number, .. } => Some(*number),
        }
    }
}

/// A command.
pub(super) enum Command {
    /// `run` or `quorum`, which [`Setup`] has parsed.
    Run,
    Act(Act),
    Stabilize {
        quietly: bool,
    },
    Show(Option<NodeId>),
    Count,
    /// The beginning of a round, which ends at `Again` and can be repeated forever.
    Round,
    Again,
}

/// A choice as the script names it. It may turn out to be impossible in the world.
pub(super) enum Act {
    Acquire(NodeId, Mode),
    Release(NodeId),
    Withdraw(NodeId),
    Message { fate: Fate, from: NodeId, to: NodeId, which: MessageChoice },
    Crash(NodeId),
    Detect { node: NodeId, failed: NodeId },
    Forget(NodeId),
}

/// What happens to a message.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    Deliver,
    Drop,
    Duplicate,
}

/// Which of the messages from one node to another.
pub(super) enum MessageChoice {
    Oldest,
    /// Counted from 1, in the order of sending.
    Number(usize),
    /// The oldest message whose kind or whole text is this.
    Called(String),
}

impl MessageChoice {
    /// Parse what follows the two nodes in a command.
    pub(super) fn read(text: &str) -> Self {
        match text.parse() {
            Ok(number) => Self::Number(number),
            Err(_) if text.is_empty() => Self::Oldest,
            Err(_) => Self::Called(text.to_owned()),
        }
    }

    /// The index of the message among these texts, which are in the order of sending.
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

const COMMANDS: [&str; 16] = [
    "run",
    "quorum",
    "acquire",
    "release",
    "withdraw",
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

/// Parse a script.
pub(super) fn parse(text: &str) -> Result<Script<'_>, ScriptError> {
    let mut setup = Setup::default();
    let mut lines = Vec::new();
    // `open`: there are commands whose effects have no place yet. `effects`: this line is an
    // effect.
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
                return Err(wrong("'----' needs a command above it".into()));
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
        return Err(ScriptError::new(
            last,
            "the script has no 'run'; begin it with 'run ALGORITHM n=3'",
        ));
    }
    Ok(Script { setup, lines })
}

/// Reject a comment or a command among effects. Effects are replaced by the actual ones, so it
/// would be lost.
fn effect(line: &str) -> Result<(), String> {
    let first = line.split_whitespace().next().unwrap_or_default();
    if first.starts_with('#') {
        return Err("a comment among effects; put it above a command".into());
    }
    if COMMANDS.contains(&first) {
        return Err(format!("command '{line}' among effects; end the effects with a blank line"));
    }
    Ok(())
}

/// Parse one command.
fn command<'a>(line: &'a str, number: usize, setup: &mut Setup<'a>) -> Result<Command, String> {
    let mut arguments = Arguments { words: line.split_whitespace(), size: setup.size };
    let verb = arguments.words.next().unwrap_or_default();
    match verb {
        "run" => return setup.run(number, line).map(|()| Command::Run),
        "quorum" => return setup.quorum(line).map(|()| Command::Run),
        _ if !COMMANDS.contains(&verb) => {
            return Err(format!("unknown command '{verb}'{}", hint(verb, COMMANDS)));
        }
        _ if setup.line == 0 => {
            return Err(format!(
                "'{verb}' before 'run'; begin the script with 'run ALGORITHM n=3'"
            ));
        }
        _ => {}
    }
    let command = match verb {
        "stabilize" => Command::Stabilize { quietly: arguments.quietly()? },
        "count" => Command::Count,
        "round" => Command::Round,
        "again" => Command::Again,
        "show" if arguments.words.clone().next().is_none() => Command::Show(None),
        "show" => Command::Show(Some(arguments.node("show 1")?)),
        _ => Command::Act(arguments.act(verb)?),
    };
    match arguments.words.next() {
        None => Ok(command),
        Some(word) => Err(format!("unexpected '{word}' after the command '{verb}'")),
    }
}

/// The words after the verb of a command.
struct Arguments<'a> {
    words: SplitWhitespace<'a>,
    size: usize,
}

impl Arguments<'_> {
    fn act(&mut self, verb: &str) -> Result<Act, String> {
        Ok(match verb {
            "acquire" => Act::Acquire(self.node("acquire 1")?, self.mode()?),
            "release" => Act::Release(self.node("release 1")?),
            "withdraw" => Act::Withdraw(self.node("withdraw 1")?),
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
        let word = self
            .words
            .next()
            .ok_or_else(|| format!("missing node number; an example is '{example}'"))?;
        node(word, self.size)
    }

    fn mode(&mut self) -> Result<Mode, String> {
        match self.words.next() {
            None => Ok(Mode::Exclusive),
            Some("shared") => Ok(Mode::Shared),
            Some(word) => {
                Err(format!("unknown mode '{word}'; write 'shared', or nothing for exclusive mode"))
            }
        }
    }

    fn quietly(&mut self) -> Result<bool, String> {
        match self.words.next() {
            None => Ok(false),
            Some("quietly") => Ok(true),
            Some(word) => {
                Err(format!("unexpected '{word}' after 'stabilize'; write 'quietly' or nothing"))
            }
        }
    }

    fn message(&mut self, fate: Fate) -> Result<Act, String> {
        let (from, to) = (self.node("deliver 1 2")?, self.node("deliver 1 2")?);
        let rest = self.words.by_ref().collect::<Vec<_>>().join(" ");
        let which = MessageChoice::read(&rest);
        Ok(Act::Message { fate, from, to, which })
    }
}

//! The commands: one list from which the parser, the dispatch, the exit codes and the help are
//! made.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

use clap::{Arg, ArgMatches, Args as _, FromArgMatches as _};
use doorway_protocol::nearest::nearest;

use crate::commands::{
    break_lock, ca, check, compare, completions, diagram, doctor, drain, elect, explain,
    fence_guard, lab, list, lock, man, members, paper, problems, quorums, renew, replay, run,
    serve, simulate, status, story, threads, top, unlock, wait, who,
};

/// A command: its name, its arguments, and the function that carries it out.
struct Entry {
    name: &'static str,
    arguments: fn(clap::Command) -> clap::Command,
    run: fn(&mut ArgMatches, &mut dyn Write) -> anyhow::Result<()>,
}

/// Commands that the help shows together and that fail with the same kind of exit codes.
struct Group {
    heading: &'static str,
    exit_codes: ExitCodes,
    commands: &'static [Entry],
}

/// Which exit codes a command fails with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCodes {
    /// Those of `sysexits.h`, as in `service/exit.rs`: 64 for a wrong command line.
    Sysexits,
    /// 1 for a failure, 2 for a wrong command line, 3 for a check that did not end.
    Plain,
}

/// Entries from `name: module` pairs. Each module has `Args` and `run(&Args, &mut dyn Write)`.
macro_rules! commands {
    ($($name:literal: $module:ident),+ $(,)?) => {
        &[$(Entry {
            name: $name,
            arguments: $module::Args::augment_args,
            run: |matches, out| {
                $module::run(&$module::Args::from_arg_matches_mut(matches)?, out)
            },
        }),+]
    };
}

/// Every command. A new one is a file in `commands/` and a line here.
const GROUPS: &[Group] = &[
    Group {
        heading: "Lock commands",
        exit_codes: ExitCodes::Sysexits,
        commands: commands![
            "run": run,
            "elect": elect,
            "lock": lock,
            "unlock": unlock,
            "renew": renew,
            "wait": wait,
            "who": who,
            "status": status,
            "top": top,
            "break": break_lock,
            "drain": drain,
            "members": members,
            "fence-guard": fence_guard,
        ],
    },
    Group {
        heading: "Node commands",
        exit_codes: ExitCodes::Plain,
        commands: commands!["serve": serve, "doctor": doctor, "ca": ca],
    },
    Group {
        heading: "Laboratory commands",
        exit_codes: ExitCodes::Plain,
        commands: commands![
            "lab": lab,
            "list": list,
            "explain": explain,
            "diagram": diagram,
            "simulate": simulate,
            "compare": compare,
            "check": check,
            "replay": replay,
            "story": story,
            "paper": paper,
            "quorums": quorums,
            "threads": threads,
            "problems": problems,
        ],
    },
    Group {
        heading: "Other commands",
        exit_codes: ExitCodes::Plain,
        commands: commands!["completions": completions, "man": man],
    },
];

/// The first line of the help.
const ABOUT: &str = "Run a command while holding a lock, on one machine or across several";

/// What `doorway --help` says after that line.
const LONG_ABOUT: &str = "\
Run a command while holding a lock, on one machine or across several.

Scripts and programs take named locks from a node, the lock service. A lock for one user needs no
setup: the first `doorway run` starts a node for the user who runs it.

The laboratory commands are about the algorithms behind the locks: they list, explain, draw,
simulate and check classical algorithms for mutual exclusion.";

/// The end of the help.
const EXAMPLES: &str = "\
Examples:
  doorway run backup -- ./backup.sh     run a script; a second one waits until the first has ended
  doorway who backup                    show who holds the lock, and who waits for it
  doorway help run                      explain a command and all of its options";

/// The line of the help for the command that `clap` adds by itself.
const HELP: (&str, &str) = ("help", "Print this message or the help of the given command");

impl Entry {
    /// The part of the parser that reads the arguments of this command.
    fn parser(&self) -> clap::Command {
        (self.arguments)(clap::Command::new(self.name))
    }
}

/// The entry with this name.
fn find(name: &OsStr) -> Option<&'static Entry> {
    GROUPS.iter().flat_map(|group| group.commands).find(|entry| name == entry.name)
}

/// The exit codes with which the command of this name fails.
pub(crate) fn exit_codes(name: &OsStr) -> ExitCodes {
    let is_in = |group: &&Group| group.commands.iter().any(|entry| name == entry.name);
    GROUPS.iter().find(is_in).map_or(ExitCodes::Plain, |group| group.exit_codes)
}

/// The sentence that says where the commands are shown that may follow this first word of the
/// command line.
pub(crate) fn shown_by(first: Option<&OsStr>) -> String {
    let mut entries = GROUPS.iter().flat_map(|group| group.commands);
    let known = entries.find(|entry| first.is_some_and(|first| first == entry.name));
    let name = known.map_or_else(String::new, |entry| format!(" {}", entry.name));
    format!("`doorway help{name}` shows the commands")
}

/// The option of a command, such as `doorway run`, that is nearest to this word.
pub(crate) fn nearest_option(program: &str, word: &str) -> Option<String> {
    let entry = find(program.strip_prefix("doorway ")?.as_ref())?;
    let parser = entry.parser();
    let short =
        parser.get_arguments().filter_map(|option| Some(format!("-{}", option.get_short()?)));
    let long =
        parser.get_arguments().filter_map(|option| Some(format!("--{}", option.get_long()?)));
    let options: Vec<String> = short.chain(long).collect();
    // Letters of an option may be followed by its value, but no letter is near another one.
    if let Some(known) = options.iter().find(|option| *option == word) {
        return Some(known.clone());
    }
    let long = options.iter().map(String::as_str).filter(|option| option.starts_with("--"));
    nearest(word, long).map(str::to_owned)
}

/// What to say about a first word that names no command, if more is known than the parser knows.
/// `others` are the words after it.
pub(crate) fn instead_of(word: &OsStr, others: &[OsString]) -> Option<String> {
    let word = word.to_str().filter(|word| find(word.as_ref()).is_none())?;
    if let Some((_, what)) = MEANT.iter().find(|(meant, _)| *meant == word) {
        return Some(format!("there is no command '{word}': {what}"));
    }
    let command = others.splitn(2, |other| other == "--").nth(1)?;
    let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    Some(format!(
        "there is no command '{word}'; to run a command under this lock, say doorway run {word} -- {}",
        command.join(" ")
    ))
}

/// Words of other programs, and what does the same here.
const MEANT: [(&str, &str); 6] = [
    ("stop", "`doorway drain` ends a node when nothing is held"),
    ("shutdown", "`doorway drain` ends a node when nothing is held"),
    ("start", "`doorway serve` runs a node, and `doorway run` starts one if none runs"),
    ("release", "`doorway unlock NAME --fence FENCE` releases a lock"),
    ("acquire", "`doorway lock NAME` takes a lock for a script"),
    ("version", "`doorway --version` shows the version"),
];

/// The headings of the help, each with the names of its commands.
pub(crate) fn groups() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
    GROUPS.iter().map(|group| (group.heading, group.commands.iter().map(|entry| entry.name)))
}

/// The parser of the whole command line, for help, manual pages and completions.
pub(crate) fn command() -> clap::Command {
    let entries = GROUPS.iter().flat_map(|group| group.commands);
    let command = program().subcommands(entries.map(Entry::parser));
    let template = help_template(&command);
    command.help_template(template)
}

/// The parser without any commands.
fn program() -> clap::Command {
    clap::Command::new("doorway")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .after_help(EXAMPLES)
        .max_term_width(COLUMNS)
        .subcommand_required(true)
        .arg_required_else_help(true)
}

/// A command together with its parsed arguments.
pub(crate) struct Call {
    entry: &'static Entry,
    matches: ArgMatches,
}

impl Call {
    /// Parse the command line.
    ///
    /// Where the first word names a command, the parser of that command alone is built: the parser
    /// of all commands takes a noticeable part of the time that a short `doorway run` takes.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let words: Vec<OsString> = env::args_os().collect();
        let named = words.get(1).and_then(|word| find(word));
        let parser = named.map_or_else(command, |entry| program().subcommand(entry.parser()));
        let mut matches = allow_negative_numbers(parser).try_get_matches_from(words)?;
        let (name, matches) = matches.remove_subcommand().expect("the parser requires a command");
        let entry = find(name.as_ref()).expect("the parser knows only commands of the list");
        Ok(Self { entry, matches })
    }

    /// Carry out the command and write its answer to `out`.
    pub(crate) fn run(mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        (self.entry.run)(&mut self.matches, out)
    }
}

/// Let all options of a command, and of the commands below it, take negative numbers as values.
///
/// By default the parser takes a negative number for an unknown option, and the option before it
/// cannot say which values it wants.
fn allow_negative_numbers(command: clap::Command) -> clap::Command {
    let allow = |arg: Arg| {
        let has_value = !arg.is_positional() && arg.get_action().takes_values();
        arg.allow_negative_numbers(has_value)
    };
    command.mut_args(allow).mut_subcommands(allow_negative_numbers)
}

/// The width of the help, unless the terminal is narrower.
const COLUMNS: usize = 100;

/// The template of the main help: `clap` has no headings for groups of commands.
fn help_template(command: &clap::Command) -> String {
    let terminal = rustix::termios::tcgetwinsize(io::stdout()).map(|size| size.ws_col.into());
    let width = terminal.ok().filter(|width| *width > 0).unwrap_or(COLUMNS).clamp(40, COLUMNS);
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n\n".to_owned();
    for (index, group) in GROUPS.iter().enumerate() {
        let about = |entry: &Entry| {
            let about = command.find_subcommand(entry.name)?.get_about()?;
            Some((entry.name, about.to_string()))
        };
        let mut lines: Vec<_> = group.commands.iter().filter_map(about).collect();
        if index + 1 == GROUPS.len() {
            lines.push((HELP.0, HELP.1.to_owned()));
        }
        template += group.heading;
        template += ":\n";
        for (name, about) in lines {
            template += &help_line(name, &about, width);
        }
        template.push('\n');
    }
    template + "Options:\n{options}{after-help}"
}

/// A command and what it does, wrapped at this width.
fn help_line(name: &str, about: &str, width: usize) -> String {
    // The longest names have eleven characters.
    let (mut line, mut text) = (format!("  {name:<11} "), String::new());
    for word in about.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > width {
            text += line.trim_end();
            text.push('\n');
            line = " ".repeat(14);
        }
        line.push(' ');
        line += word;
    }
    text + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_arguments_contradict_each_other() {
        command().debug_assert();
    }

    #[test]
    fn commands_that_use_a_node_fail_as_sysexits_says() {
        assert_eq!(exit_codes("run".as_ref()), ExitCodes::Sysexits);
        assert_eq!(exit_codes("fence-guard".as_ref()), ExitCodes::Sysexits);
        assert_eq!(exit_codes("check".as_ref()), ExitCodes::Plain);
        assert_eq!(exit_codes("no-such-command".as_ref()), ExitCodes::Plain);
    }

    #[test]
    fn the_lines_of_the_help_are_wrapped_under_their_text() {
        let text = help_line("run", "Run a command while holding a lock", 40);
        assert_eq!(text, "  run          Run a command while\n               holding a lock\n");
    }
}

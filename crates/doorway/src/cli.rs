//! The commands and their arguments, as the command line knows them.

use std::io::Write;

use clap::{Arg, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::commands::{
    check, compare, completions, diagram, explain, list, man, paper, quorums, replay, simulate,
    threads,
};

/// Distributed mutual exclusion: the classical algorithms, checked, simulated, drawn and compared.
#[derive(Parser)]
#[command(name = "doorway", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What the person asked for.
    ///
    /// A negative number is taken for the value of the option before it, so that the option can
    /// say what it wants instead: by default it would be taken for an unknown option.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut hearing(Self::command()).try_get_matches()?)
    }
}

/// A command whose options, and those of the commands below it, hear negative numbers.
fn hearing(command: clap::Command) -> clap::Command {
    let hears = |arg: Arg| {
        let valued = !arg.is_positional() && arg.get_action().takes_values();
        arg.allow_negative_numbers(valued)
    };
    command.mut_args(hears).mut_subcommands(hearing)
}

/// A new command is a file beside the others, a line here and a line in `run`.
#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::Args),
    Explain(explain::Args),
    Check(check::Args),
    Replay(replay::Args),
    Simulate(simulate::Args),
    Diagram(diagram::Args),
    Compare(compare::Args),
    Paper(paper::Args),
    Quorums(quorums::Args),
    Threads(threads::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// Do what was asked, writing the answer to `out`.
    pub(crate) fn run(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Self::List(args) => list::run(args, out),
            Self::Explain(args) => explain::run(args, out),
            Self::Check(args) => check::run(args, out),
            Self::Replay(args) => replay::run(args, out),
            Self::Simulate(args) => simulate::run(args, out),
            Self::Diagram(args) => diagram::run(args, out),
            Self::Compare(args) => compare::run(args, out),
            Self::Paper(args) => paper::run(args, out),
            Self::Quorums(args) => quorums::run(args, out),
            Self::Threads(args) => threads::run(args, out),
            Self::Completions(args) => completions::run(args, out),
            Self::Man(args) => man::run(args, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_contradict_each_other_nowhere() {
        Cli::command().debug_assert();
    }
}

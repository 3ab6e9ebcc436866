//! The commands and their arguments, as the command line knows them.

use std::io::Write;

use clap::{Parser, Subcommand};

use crate::commands::{
    compare, completions, diagram, explain, list, man, paper, quorums, simulate,
};

/// Distributed mutual exclusion: the classical algorithms, simulated, drawn and compared.
#[derive(Parser)]
#[command(name = "doorway", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A new command is a file beside the others, a line here and a line in `run`.
#[derive(Subcommand)]
pub(crate) enum Command {
    List(list::Args),
    Explain(explain::Args),
    Simulate(simulate::Args),
    Diagram(diagram::Args),
    Compare(compare::Args),
    Paper(paper::Args),
    Quorums(quorums::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// Do what was asked, writing the answer to `out`.
    pub(crate) fn run(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Self::List(args) => list::run(args, out),
            Self::Explain(args) => explain::run(args, out),
            Self::Simulate(args) => simulate::run(args, out),
            Self::Diagram(args) => diagram::run(args, out),
            Self::Compare(args) => compare::run(args, out),
            Self::Paper(args) => paper::run(args, out),
            Self::Quorums(args) => quorums::run(args, out),
            Self::Completions(args) => completions::run(args, out),
            Self::Man(args) => man::run(args, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_contradict_each_other_nowhere() {
        Cli::command().debug_assert();
    }
}

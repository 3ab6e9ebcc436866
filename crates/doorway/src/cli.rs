//! The commands and their arguments, as the command line knows them.

use std::env;
use std::ffi::OsStr;
use std::io::Write;

use clap::{Arg, Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::commands::{
    break_lock, ca, check, compare, completions, diagram, doctor, explain, fence_guard, list, lock,
    man, paper, quorums, renew, replay, run, serve, simulate, status, threads, top, unlock, wait,
    who,
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
        if env::args_os().nth(1).is_some_and(|command| command == "run") {
            return Self::read_run();
        }
        Self::from_arg_matches_mut(&mut hearing(Self::command()).try_get_matches()?)
    }

    /// The same for the one command that is in a hurry: the others are not even looked at.
    fn read_run() -> Result<Self, clap::Error> {
        let run = hearing(run::Args::augment_args(clap::Command::new("run")));
        let mut only = clap::Command::new("doorway").max_term_width(100).subcommand(run);
        let mut found = only.try_get_matches_from_mut(env::args_os())?;
        let (_, mut found) = found.remove_subcommand().expect("the first word is the command");
        let args = run::Args::from_arg_matches_mut(&mut found)?;
        Ok(Self { command: Command::Run(Box::new(args)) })
    }
}

/// Is this a command that uses a node? Those say what is wrong as `sysexits.h` does.
pub(crate) fn uses_a_node(command: &OsStr) -> bool {
    const THOSE: [&str; 10] =
        ["run", "lock", "unlock", "renew", "status", "who", "wait", "break", "top", "fence-guard"];
    THOSE.iter().any(|one| command == *one)
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
    Serve(serve::Args),
    Ca(ca::Args),
    Doctor(doctor::Args),
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
    Run(Box<run::Args>),
    Lock(Box<lock::Args>),
    Unlock(unlock::Args),
    Renew(renew::Args),
    Status(status::Args),
    Who(who::Args),
    Wait(wait::Args),
    #[command(name = "break")]
    BreakLock(break_lock::Args),
    Top(top::Args),
    FenceGuard(fence_guard::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// Do what was asked, writing the answer to `out`.
    pub(crate) fn run(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        match self {
            Self::Serve(args) => serve::run(args, out),
            Self::Ca(args) => ca::run(args, out),
            Self::Doctor(args) => doctor::run(args, out),
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
            Self::Run(args) => run::run(args),
            Self::Lock(args) => lock::run(args, out),
            Self::Unlock(args) => unlock::run(args, out),
            Self::Renew(args) => renew::run(args, out),
            Self::Status(args) => status::run(args, out),
            Self::Who(args) => who::run(args, out),
            Self::Wait(args) => wait::run(args, out),
            Self::BreakLock(args) => break_lock::run(args, out),
            Self::Top(args) => top::run(args, out),
            Self::FenceGuard(args) => fence_guard::run(args, out),
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

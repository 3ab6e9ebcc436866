//! `doorway problems`: problems of synchronisation besides mutual exclusion.

mod check;
mod list;
mod page;
pub(crate) mod problem;
mod ring_walk;
mod run;
mod show;

use std::io::Write;

use clap::Subcommand;
use doorway_lab::numbers::grouped;

/// Bounded buffers, readers and writers, self-stabilizing rings: list, check, show, run
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::Args),
    Check(check::Args),
    Show(show::Args),
    Run(run::Args),
}

/// A number of steps in words.
fn steps(count: u64) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{} step{s}", grouped(count))
}

/// Run the subcommand.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.command {
        Command::List(args) => list::run(args, out),
        Command::Check(args) => check::run(args, out),
        Command::Show(args) => show::run(args, out),
        Command::Run(args) => run::run(args, out),
    }
}

//! `doorway completions SHELL`: what makes the shell complete commands, options and names.

use std::io::Write;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;

/// Print a completion script, as in: source <(doorway completions bash)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Print the script.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    // The generator panics where it cannot write, so it writes to memory first.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "doorway", &mut script);
    Ok(out.write_all(&script)?)
}

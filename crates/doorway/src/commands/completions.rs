//! `doorway completions SHELL`: a script with which a shell completes commands, options and names.

use std::io::Write;

use clap_complete::Shell;

use crate::cli;

/// Print a completion script for a shell
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    source <(doorway completions bash)\n  \
    doorway completions fish > ~/.config/fish/completions/doorway.fish")]
pub(crate) struct Args {
    /// The shell that will run the script
    shell: Shell,
}

/// Print the script.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    // The generator panics if it cannot write, so it writes to memory first.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "doorway", &mut script);
    Ok(out.write_all(&script)?)
}

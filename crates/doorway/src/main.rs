//! The `doorway` command: parse, run, and turn what went wrong into one line and an exit code.
//!
//! Exit codes: 0 all went well; 1 a run failed or found a violation; 2 the command was misused; 3 a
//! check came to no end. Those of the commands that use a node are in `service/exit.rs`.

use std::env;
use std::io::{self, BufWriter, Write as _};
use std::process::ExitCode;

use clap::error::ErrorKind;

use cli::Cli;
use failure::Usage;
use service::exit::{self, Exit};

mod check_args;
mod checking;
mod cli;
mod commands;
mod failure;
mod files;
mod finding;
mod group_args;
mod header;
mod names;
mod pages;
mod progress;
mod rerun;
mod run_args;
mod scripts;
mod service;
mod table;
mod wrap;

fn main() -> ExitCode {
    let done = match Cli::read() {
        Ok(cli) => run(&cli),
        Err(error) => answer(&error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough, as in `doorway list | head`.
        Err(error) if failure::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            if failure::is_quiet(&error) {
                return failure::exit_code(&error);
            }
            // With standard error gone as well there is nobody left to tell.
            let _ = writeln!(io::stderr(), "doorway: {error:#}");
            failure::exit_code(&error)
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    cli.command.run(&mut out)?;
    Ok(out.flush()?)
}

/// Help and version are answers, not errors; everything else is a usage error of one line.
fn answer(error: &clap::Error) -> anyhow::Result<()> {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            Ok(io::stdout().write_all(text.as_bytes())?)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Usage("say what to do: `doorway help` shows the commands".to_owned()).into())
        }
        _ if env::args_os().nth(1).is_some_and(|command| cli::uses_a_node(&command)) => {
            Err(Exit::new(exit::USAGE, failure::one_line(&text)).into())
        }
        _ => Err(Usage(failure::one_line(&text)).into()),
    }
}

//! The `doorway` command: parse, run, and report a failure as one line and an exit code.
//!
//! Exit codes: 0 for success; 1 if a run failed or found a violation; 2 if the command line was
//! wrong; 3 if a check did not end. The commands that use a node have the exit codes of
//! `service/exit.rs`.

use std::env;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;

use cli::{Call, ExitCodes};
use failure::Usage;
use service::exit::{self, Exit};
use stdout::Stdout;

mod browser;
mod check_args;
mod checking;
mod cli;
mod commands;
mod estimate;
mod failure;
mod files;
mod finding;
mod group_args;
mod header;
mod names;
mod numbers;
mod pages;
mod progress;
mod rerun;
mod run_args;
mod scripts;
mod service;
mod state_args;
mod stdout;
mod table;
mod wrap;

fn main() -> ExitCode {
    let mut out = BufWriter::new(Stdout::new());
    let done = match Call::read() {
        Ok(call) => call.run(&mut out),
        Err(error) => answer(&error, &mut out),
    };
    match done.and_then(|()| Ok(out.flush()?)) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has closed the pipe, as in `doorway list | head`.
        Err(error) if failure::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // The results of a run that failed come before the line that says so.
            let _ = out.flush();
            if !failure::is_quiet(&error) {
                // If standard error is closed as well, the exit code has to do.
                let _ = writeln!(io::stderr(), "doorway: {error:#}");
            }
            failure::exit_code(&error)
        }
    }
}

/// Print help and version; every other error of the parser becomes one line.
fn answer(error: &clap::Error, out: &mut dyn Write) -> anyhow::Result<()> {
    let (text, first) = (error.render().to_string(), env::args_os().nth(1));
    let others: Vec<_> = env::args_os().skip(2).collect();
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(text) = first.as_deref().and_then(|word| cli::instead_of(word, &others))
    {
        return Err(Usage(text).into());
    }
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(out.write_all(text.as_bytes())?),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let text = format!("no command given: {}", cli::shown_by(first.as_deref()));
            Err(Usage(text).into())
        }
        kind => {
            let mut line = failure::one_line(&text);
            let remedy = match kind {
                ErrorKind::MissingRequiredArgument | ErrorKind::UnknownArgument => {
                    failure::usage(&text).map(|usage| format!("say {usage}"))
                }
                ErrorKind::InvalidSubcommand => Some(cli::shown_by(first.as_deref())),
                _ => None,
            };
            // The parser may know better, such as the nearest name.
            if let Some(remedy) = remedy.filter(|_| !line.contains("; tip: ")) {
                line = format!("{line}; {remedy}");
            }
            match first.map_or(ExitCodes::Plain, |name| cli::exit_codes(&name)) {
                ExitCodes::Sysexits => Err(Exit::new(exit::USAGE, line).into()),
                ExitCodes::Plain => Err(Usage(line).into()),
            }
        }
    }
}

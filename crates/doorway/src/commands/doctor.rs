//! `doorway doctor`: examine everything that a node needs.

use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use doorway_daemon::doctor::{self, Finding, Verdict};
use doorway_daemon::settings::Overrides;

use super::print_json;
use crate::failure::unless_closed;
use crate::wrap;

/// Look for problems: configuration, certificates, clock, permissions, limits, members
#[derive(clap::Args)]
#[command(after_help = "\
Each line begins with ok, warning or wrong, and says what was examined and what was found. A line
that begins with an arrow says what to do about it. The exit code is 1 if anything is wrong.

Examples:
  doorway doctor                                       # the node of this machine or user
  doorway doctor --config /etc/doorway/doorway.toml
  doorway doctor --json | jq '.[] | select(.verdict != \"ok\")'")]
pub(crate) struct Args {
    /// Examine the node with this configuration [default: /etc/doorway/doorway.toml if that
    /// directory exists, otherwise the node of this user]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask the node at this socket instead of the one in the file
    #[arg(long, value_name = "PATH|@NAME")]
    socket: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Print what was found. The command fails if anything is wrong.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let file = args.config.clone().or_else(doctor::usual_file);
    let overrides = Overrides { socket: args.socket.clone(), ..Overrides::default() };
    let findings = doctor::examine(file.as_deref(), &overrides);
    unless_closed(print(args, &findings, out))?;
    match findings.iter().filter(|finding| finding.verdict == Verdict::Wrong).count() {
        0 => Ok(()),
        1 => bail!("one thing is wrong"),
        many => bail!("{many} things are wrong"),
    }
}

fn print(args: &Args, findings: &[Finding], out: &mut dyn Write) -> anyhow::Result<()> {
    if args.json {
        print_json(out, &findings)?;
        return Ok(out.flush()?);
    }
    for Finding { area, verdict, what, remedy } in findings {
        let verdict = match verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Wrong => "wrong",
        };
        wrap::print_beside(out, &format!("{verdict:<8} {area:<14} "), what)?;
        if let Some(remedy) = remedy {
            wrap::print_beside(out, &format!("{:<8} {:<14} -> ", "", ""), remedy)?;
        }
    }
    Ok(out.flush()?)
}

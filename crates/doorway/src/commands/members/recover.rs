//! `doorway members recover --alone`: go on with one machine.

use std::io::Write;
use std::path::PathBuf;

use doorway_daemon::members::Recovery;
use doorway_daemon::settings::{FILE, Overrides, Settings};

use super::confirm::confirm;
use super::wait_out;
use crate::numbers::whole;
use crate::service::exit::{self, Exit};

/// Go on with this machine alone, after a majority of the machines is lost for ever
///
/// Run it where the node of a surviving machine is stopped. The machine becomes the only member of
/// a new group; machines of the old one need an empty data directory to come back. The command
/// refuses if another machine of the group answers. It says first what recovery costs, and asks.
/// Then it waits a little longer than the lease of a node, until no client can believe in a lock of
/// the old group.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Go on alone. There is no other way to recover
    #[arg(long, required = true)]
    alone: bool,

    /// Do it without asking
    #[arg(long)]
    yes: bool,

    /// Do it even if other machines of the group answer at their addresses
    #[arg(long)]
    force: bool,

    /// Begin above this view, too. Give the highest view that `doorway status` has shown if other
    /// machines have seen more than 65,536 views without this one
    #[arg(long, value_name = "VIEW", value_parser = whole(0..=u64::MAX))]
    view_at_least: Option<u64>,

    /// Wait for this lease, from 2 seconds to 5 minutes, if it is longer than the longest one that
    /// the machine knows. Give the longest lease that the group has had, in seconds or as 500ms or
    /// 1m, if it was made longer while the machine was away
    #[arg(long, value_name = "TIME", value_parser = super::lease)]
    lease: Option<u32>,

    /// Recover the node with this configuration
    #[arg(long, value_name = "FILE", default_value = FILE)]
    config: PathBuf,
}

/// Say what it costs, ask, and do it.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let Args { alone: _, yes, force, view_at_least, lease, config } = args;
    let settings = Settings::load(config, &Overrides::default());
    let settings = settings.map_err(|mistakes| Exit::new(exit::USAGE, mistakes.to_string()))?;
    let failed = |error: &dyn ToString| Exit::new(exit::USAGE, error.to_string());
    let recovery = Recovery::prepare(&settings, *view_at_least, *lease);
    let recovery = recovery.map_err(|error| failed(&error))?;
    if !force {
        recovery.check_alone().map_err(|error| failed(&error))?;
    }
    writeln!(out, "{recovery}")?;
    out.flush()?;
    confirm("This cannot be undone.", *yes)?;
    wait_out(recovery.lease(), out)?;
    let done = recovery.perform().map_err(|error| failed(&error))?;
    Ok(writeln!(out, "{done}")?)
}

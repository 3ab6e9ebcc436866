//! `doorway break NAME --fence F`: take a lock from whoever holds it.

use std::io::Write;

use doorway_client::Fence;

use super::grant::{self, Deed, GrantArgs};
use super::{print_json, who};
use crate::service::exit::{self, Exit};
use crate::service::options;

/// Take a lock from whoever holds it
///
/// The fence of its grant confirms that you mean that holder and nobody who came after it. Without
/// one this shows who holds the lock. The holder is told, but what it does later is not undone:
/// only what checks fences refuses it. The exit code is 123 if nobody holds it with that fence.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The fence of the grant to break
    #[arg(long, value_name = "FENCE", value_parser = options::fence)]
    fence: Option<Fence>,

    #[command(flatten)]
    grant: GrantArgs,
}

/// Break it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    match args.fence {
        Some(fence) => grant::run(Deed::Break, &args.grant, fence, out),
        None => show(&args.grant, out),
    }
}

fn show(args: &GrantArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let report = who::ask(&args.name, &args.node)?;
    if args.json {
        print_json(out, &report)?;
    } else {
        who::print(out, &report)?;
    }
    let Some(holder) = report.holders.first() else { return Ok(()) };
    let text = format!("to confirm: doorway break {} --fence {}", args.name, holder.fence);
    Err(Exit::new(exit::USAGE, text).into())
}

//! `doorway break NAME --fence F`: take a lock from its holder.

use std::io::Write;

use doorway_client::Fence;

use super::grant::{self, Action, GrantArgs};
use super::{print_json, who};
use crate::service::exit::{self, Exit};
use crate::service::options;
use crate::service::query::Query;

/// Take a lock from its holder
///
/// Give the fence of the holder's grant to confirm that you mean this holder and not one that came
/// after it. Without --fence the command shows who holds the lock. The holder is told that it has
/// lost the lock, but whatever it does afterwards is refused only by a resource that checks fences
/// (`doorway help fence-guard`). The exit code is 123 if the lock is not held with that fence.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    doorway break deploy                            show the holder and its fence\n  \
    doorway break deploy --fence 50496171017240581  take the lock from that holder")]
pub(crate) struct Args {
    /// Break the grant with this fence
    #[arg(long, value_name = "FENCE", value_parser = options::fence)]
    fence: Option<Fence>,

    #[command(flatten)]
    grant: GrantArgs,
}

/// Break the grant, or show how.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    match args.fence {
        Some(fence) => grant::run(Action::Break, &args.grant, fence, out),
        None => show(&args.grant, out),
    }
}

fn show(args: &GrantArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let report = who::look(&mut Query::look(&args.node.address)?, &args.name)?;
    if args.json {
        print_json(out, &report)?;
    } else {
        who::print(out, &report)?;
    }
    let Some(holder) = report.lock.holders.first() else { return Ok(()) };
    let text = format!("to confirm: doorway break {} --fence {}", args.name, holder.fence);
    Err(Exit::new(exit::USAGE, text).into())
}

//! `doorway break NAME --fence F`: take a lock from whoever holds it.

use std::io::Write;

use doorway_client::{Fence, Name};
use serde::Serialize;

use super::{print_json, who};
use crate::service::exit::{self, Exit};
use crate::service::options::{self, NodeArgs};
use crate::service::talk::Talk;

/// Take a lock from whoever holds it
///
/// The fence of its grant confirms that you mean that holder and nobody who came after it. Without
/// one this shows who holds the lock. The holder is told, but what it does later is not undone:
/// only what checks fences refuses it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The lock
    #[arg(value_parser = options::name)]
    name: Name,

    /// The fence of the grant to break
    #[arg(long, value_name = "FENCE", value_parser = options::fence)]
    fence: Option<Fence>,

    #[command(flatten)]
    node: NodeArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Done<'a> {
    lock: &'a str,
    fence: Fence,
    broken: bool,
}

/// Break it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(fence) = args.fence else { return show(args, out) };
    Talk::new(&args.node)?.answer(|machine, now| machine.break_lock(now, &args.name, fence))?;
    if args.json {
        let (lock, fence) = (args.name.as_str(), fence);
        return print_json(out, &Done { lock, fence, broken: true });
    }
    Ok(writeln!(out, "broke {} with fence {fence}", args.name)?)
}

fn show(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
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

//! `doorway who NAME`: who holds a lock, and who waits for it.

use std::io::Write;

use doorway_client::{Answer, Name};
use doorway_protocol::{Fence, LockReport};

use super::print_json;
use crate::service::exit::Exit;
use crate::service::options::{self, NodeArgs};
use crate::service::talk::{Talk, odd};
use crate::service::wait_line::{printable, time};
use crate::table::Table;

/// Show who holds a lock, since when, and who waits for it and why
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The lock
    #[arg(value_parser = options::name)]
    name: Name,

    #[command(flatten)]
    node: NodeArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let report = ask(&args.name, &args.node)?;
    if args.json { print_json(out, &report) } else { print(out, &report) }
}

/// All about a lock.
pub(crate) fn ask(name: &Name, node: &NodeArgs) -> anyhow::Result<Box<LockReport>> {
    Ok(look(&mut Talk::new(node)?, name)?)
}

/// All about a lock, as the node says now.
pub(crate) fn look(talk: &mut Talk, name: &Name) -> Result<Box<LockReport>, Exit> {
    match talk.answer(|machine, now| machine.inspect(now, name))? {
        Answer::Lock(report) => Ok(report),
        _ => Err(odd()),
    }
}

/// All about a lock, for people.
pub(crate) fn print(out: &mut dyn Write, report: &LockReport) -> anyhow::Result<()> {
    let LockReport { lock, holders, waiters, .. } = report;
    if holders.is_empty() {
        writeln!(out, "nobody holds {lock}")?;
    }
    let mut table = Table::new(["", "", "", "", ""].map(str::to_owned));
    let mut row = |what: &str, fence: Option<Fence>, client: &str, node: &str, since: u64| {
        let fence = fence.map_or(String::new(), |fence| format!("fence {fence}"));
        let cells = [what.to_owned(), time(since), fence, node.to_owned(), printable(client)];
        table.row(cells);
    };
    for holder in holders {
        let what = if holder.shared { "inside (shared)" } else { "inside" };
        row(what, Some(holder.fence), &holder.client, &holder.node, holder.held_ms);
    }
    for waiter in waiters {
        let what = if waiter.shared { "waiting (shared)" } else { "waiting" };
        row(what, None, &waiter.client, &waiter.node, waiter.waited_ms);
    }
    table.print_body(out, 0)?;
    for waiter in waiters {
        let client = printable(&waiter.client);
        if let Some(circle) = &waiter.circle {
            writeln!(out, "{client} waits in a circle: {}", circle.join(" -> "))?;
        } else if !waiter.missing.is_empty() {
            writeln!(out, "{client} needs the word of {}", waiter.missing.join(", "))?;
        }
    }
    for absent in &report.away {
        writeln!(out, "{} cannot be reached for {}", absent.node, time(absent.for_ms))?;
    }
    for silent in &report.silent {
        writeln!(out, "{silent} did not say in time what it knows")?;
    }
    Ok(())
}

//! `doorway status`: the node, as it is now.

use std::io::Write;

use doorway_client::Answer;
use doorway_protocol::NodeStatus;

use super::print_json;
use crate::service::options::NodeArgs;
use crate::service::talk::{Talk, odd};
use crate::service::wait_line::time;
use crate::service::who::scope;

/// Show the node: its group, its members, what it holds
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    node: NodeArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Show it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let answer = Talk::new(&args.node)?.answer(doorway_client::SessionMachine::status)?;
    let Answer::Status(status) = answer else { return Err(odd().into()) };
    if args.json { print_json(out, &status) } else { print(out, &status) }
}

fn print(out: &mut dyn Write, status: &NodeStatus) -> anyhow::Result<()> {
    let NodeStatus { node, group, version, pid, up_ms, .. } = status;
    writeln!(out, "node      {node} of group {group}, for {}", scope(status.scope))?;
    writeln!(out, "program   doorway {version}, pid {pid}, up {}", time(*up_ms))?;
    match status.view {
        Some(view) => writeln!(out, "view      {view}")?,
        None => writeln!(out, "view      none: the members agree on the next one")?,
    }
    writeln!(out, "members   {}", status.members.join(" "))?;
    for absent in &status.away {
        writeln!(out, "away      {} for {}", absent.node, time(absent.for_ms))?;
    }
    if let Some(left) = status.reclaiming_ms {
        let left = time(left);
        writeln!(out, "reclaim   former holders have {left} left; nothing is granted meanwhile")?;
    }
    let NodeStatus { sessions, held, waiting, grants, .. } = status;
    writeln!(out, "sessions  {sessions}")?;
    Ok(writeln!(out, "locks     {held} held, {waiting} waiting, {grants} grants since the start")?)
}

//! `doorway drain`: end a node when nothing is held any more.

use std::io::Write;
use std::time::Duration;

use crate::service::exit::Exit;
use crate::service::options::{LookArgs, seconds};
use crate::service::query::Query;

/// A node that has answered needs at most this long to end.
const MOST: Duration = Duration::from_secs(5);

/// Tell a node to leave for good: grant nothing more, and end when no lock is held
///
/// All clients are told that the node wants to leave. No lock is taken from its holder. If locks
/// are still held after the time of --wait, the exit code is 1; the node grants nothing any more,
/// and ends when the last lock is released. `doorway top` shows who holds what. A stop (SIGTERM,
/// `systemctl restart`) is different: it leaves locks and sessions to the next start.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    doorway drain                wait up to 10 seconds for holders\n  \
    doorway drain -w 1h          wait up to an hour")]
pub(crate) struct Args {
    /// Wait at most this long for locks to be released, in seconds or as 500ms or 10m [default:
    /// `drain` of the node's settings, 10 seconds]
    #[arg(short, long, value_name = "SECS", value_parser = seconds)]
    wait: Option<Duration>,

    #[command(flatten)]
    node: LookArgs,
}

/// Drain the node.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut query = Query::look(&args.node.address)?;
    query.answer(|machine, now| machine.drain(now, args.wait))?;
    if !query.wait_for_end(MOST)? {
        let text = format!(
            "no lock is held any more, but the node has not ended within {} s; see its log",
            MOST.as_secs()
        );
        return Err(Exit::new(1, text).into());
    }
    writeln!(out, "the node has ended: nothing was held any more")?;
    Ok(())
}

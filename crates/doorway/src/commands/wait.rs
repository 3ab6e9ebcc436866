//! `doorway wait NAME`: wait until a lock is free, without taking it.

use std::io::Write;
use std::time::Duration;

use doorway_client::{Moment, Name};
use serde::Serialize;

use super::{print_json, who};
use crate::numbers::whole;
use crate::service::exit::{self, Exit};
use crate::service::options::{self, NodeArgs, seconds};
use crate::service::query::Query;
use crate::service::wait_line::describe_holder;

/// Wait until nobody holds a lock or waits for it, without taking it
///
/// Somebody else may take the lock as soon as this command has ended. To do something while nobody
/// else can, use `doorway run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    doorway wait backup                     return when the backup has ended\n  \
    doorway wait -w 0 backup || echo busy   only look")]
pub(crate) struct Args {
    /// The name of the lock
    #[arg(value_parser = options::name)]
    name: Name,

    /// Wait at most this long, in seconds or as 500ms or 10m; 0 only looks [default: forever]
    #[arg(short, long, value_name = "SECS", visible_alias = "timeout", value_parser = seconds)]
    wait: Option<Duration>,

    /// Exit with this code if the lock is not free in time
    #[arg(
        short = 'E',
        long,
        value_name = "CODE",
        default_value_t = 1,
        value_parser = whole(0..=u8::MAX),
    )]
    conflict_exit_code: u8,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    node: NodeArgs,
}

#[derive(Serialize)]
struct Wait<'a> {
    lock: &'a str,
    free: bool,
    #[serde(rename = "waited_ms")]
    milliseconds: u64,
}

/// Wait until the lock is free.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let begin = Moment::now();
    let mut query = Query::new(&args.node)?;
    // The first look decides if -w is 0. Otherwise the time begins when the node has answered: it
    // may have to be started first.
    let report = who::look(&mut query, &args.name)?.lock;
    let unused = report.holders.is_empty() && report.waiters.is_empty();
    // A member that does not answer may have a client that holds the lock.
    let mut free = unused && report.away.is_empty() && report.silent.is_empty();
    query.be_patient();
    if !free && args.wait != Some(Duration::ZERO) {
        let until = args.wait.map_or(Moment::NEVER, |wait| Moment::now().after(wait));
        free = query.ask(until, |machine, now| machine.await_free(now, &args.name))?.is_some();
    }
    if args.json {
        let milliseconds = Moment::now().since(begin).as_millis() as u64;
        print_json(out, &Wait { lock: args.name.as_str(), free, milliseconds })?;
    }
    if !free && unused {
        let away = report.away.iter().map(|away| away.node.as_str());
        let away: Vec<&str> = away.chain(report.silent.iter().map(String::as_str)).collect();
        let (name, away) = (&args.name, away.join(", "));
        let text = format!(
            "cannot know whether {name} is free: no answer from {away}, where its holder may be"
        );
        return Err(Exit::new(exit::UNAVAILABLE, text).into());
    }
    if !free {
        let who = describe_holder(&report).map(|who| format!(": {who}")).unwrap_or_default();
        let text = format!("{} was not free in time{who}", args.name);
        return Err(Exit::new(args.conflict_exit_code, text).into());
    }
    Ok(())
}

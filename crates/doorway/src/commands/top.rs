//! `doorway top`: the locks of a node, live.

use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use doorway_client::{Answer, Moment, Name};
use doorway_protocol::{LockLine, NodeStatus};
use serde::Serialize;

use super::print_json;
use crate::service::options::{NodeArgs, seconds};
use crate::service::talk::{Talk, odd};
use crate::service::wait_line::{printable, time};
use crate::table::Table;

/// Show the locks of a node, who holds them and who waits: live on a terminal, else once
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only locks whose names begin like this
    #[arg(default_value = "")]
    prefix: String,

    /// Show them once
    #[arg(long)]
    once: bool,

    /// How long to wait between two looks
    #[arg(short = 'd', long, value_name = "SECS", default_value = "1", value_parser = seconds)]
    delay: Duration,

    #[command(flatten)]
    node: NodeArgs,

    /// Print JSON, once
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Look {
    status: NodeStatus,
    locks: Vec<LockLine>,
    /// There are more than these.
    more: bool,
}

/// How many locks fit where nobody scrolls.
const MANY: usize = 10_000;

/// Show them.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let live = !args.once && !args.json && io::stdout().is_terminal();
    let mut talk = Talk::new(&args.node)?;
    if !live {
        let look = look(&mut talk, &args.prefix, MANY)?;
        if args.json {
            return print_json(out, &look);
        }
        return print(out, &look, usize::MAX);
    }
    loop {
        let rows = rustix::termios::tcgetwinsize(io::stdout()).map_or(24, |size| size.ws_row);
        let rows = usize::from(rows.max(4)) - 1;
        let look = look(&mut talk, &args.prefix, rows)?;
        write!(out, "\x1b[H\x1b[J")?;
        print(out, &look, rows)?;
        out.flush()?;
        let next = Moment::now().after(args.delay.max(Duration::from_millis(50)));
        while Moment::now() < next {
            talk.pause(next)?;
        }
    }
}

fn look(talk: &mut Talk, prefix: &str, most: usize) -> anyhow::Result<Look> {
    let Answer::Status(status) = talk.answer(doorway_client::SessionMachine::status)? else {
        return Err(odd().into());
    };
    let (mut locks, mut after) = (Vec::<LockLine>::new(), None);
    loop {
        let page = talk.answer(|machine, now| machine.list(now, prefix, after.as_ref()))?;
        let Answer::Locks(page) = page else { return Err(odd().into()) };
        locks.extend(page.locks);
        after = locks.last().and_then(|last| Name::new(&last.lock).ok());
        if !page.more || after.is_none() || locks.len() >= most {
            return Ok(Look { status: *status, locks, more: page.more });
        }
    }
}

fn print(out: &mut dyn Write, look: &Look, rows: usize) -> anyhow::Result<()> {
    let NodeStatus { node, sessions, held, waiting, grants, .. } = &look.status;
    let head = format!("{sessions} sessions, {held} held, {waiting} waiting, {grants} grants");
    writeln!(out, "{node}: {head}")?;
    let heading = ["LOCK", "INSIDE", "WAITING", "FENCE", "HELD", "LONGEST WAIT", "HOLDER"];
    let mut table = Table::new(heading.map(str::to_owned));
    // Where not all fit, the last row says so.
    let (rows, count) = (rows.saturating_sub(2), look.locks.len());
    let cut = look.more || count > rows;
    let shown = if count > rows { rows.saturating_sub(1) } else { count };
    for line in look.locks.iter().take(shown) {
        let holder = line.holder.as_ref();
        let wait = if line.waiting > 0 { time(line.longest_wait_ms) } else { String::new() };
        table.row([
            line.lock.clone(),
            line.inside.to_string(),
            line.waiting.to_string(),
            holder.map_or(String::new(), |holder| holder.fence.to_string()),
            holder.map_or(String::new(), |holder| time(holder.held_ms)),
            wait,
            holder.map_or(String::new(), |holder| printable(&holder.client)),
        ]);
    }
    table.print(out, 0)?;
    if cut {
        writeln!(out, "and more: `doorway top PREFIX` shows those whose names begin so")?;
    }
    Ok(())
}

//! `doorway top`: the locks of a node, live.

use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::time::Duration;

use doorway_client::{Answer, Endpoint, Moment, Name, Stream};
use doorway_page::server::{First, LiveNode};
use doorway_protocol::text::shorten;
use doorway_protocol::{LockLine, NodeStatus};
use nix::sys::signal::Signal;
use serde::Serialize;

use super::print_json;
use crate::browser::{self, OptionalPageArgs};
use crate::service::exit::Exit;
use crate::service::identity::scope;
use crate::service::options::{LookArgs, seconds};
use crate::service::query::{Query, unexpected_answer};
use crate::service::screen::Screen;
use crate::service::signals::{Effect, effect, react};
use crate::service::wait_line::{printable, time};
use crate::table::Table;
use crate::wrap::terminal_width;

/// Show the locks of a node with their holders and waiters, live on a terminal
///
/// `q` ends it. Where standard output is not a terminal, it shows them once. It shows the clients
/// of one node only: `doorway who` asks all nodes of a group about one lock.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    doorway top                     all locks, every second\n  \
    doorway top deploy/ -d 5        locks whose names begin with deploy/, every 5 seconds\n  \
    doorway top --page              the live page in a browser\n  \
    doorway top --json | jq -r '.locks[].lock'")]
pub(crate) struct Args {
    /// Show only locks whose names begin with this
    #[arg(default_value = "")]
    prefix: String,

    /// Show the locks once, also on a terminal
    #[arg(long)]
    once: bool,

    /// Wait this long between two updates, in seconds or as 500ms
    #[arg(short = 'd', long, value_name = "SECS", default_value = "1", value_parser = seconds)]
    delay: Duration,

    /// Print JSON, once
    #[arg(long)]
    json: bool,

    /// Open the live page of the node in a browser: all members and locks, and why each one waits
    #[arg(long, conflicts_with_all = ["once", "json"])]
    page: bool,

    #[command(flatten)]
    browser: OptionalPageArgs,

    #[command(flatten)]
    node: LookArgs,
}

#[derive(Serialize)]
struct Snapshot {
    status: NodeStatus,
    locks: Vec<LockLine>,
    /// There are more locks than these.
    more: bool,
}

/// How long the page may take to connect to the node.
const DIALLING: Duration = Duration::from_secs(5);

/// How many locks are shown where nothing limits their number.
const MANY: usize = 10_000;

/// Show the locks.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.page {
        return open_page(args, out);
    }
    let live = !args.once && !args.json && io::stdout().is_terminal();
    let mut query = Query::look(&args.node.address)?;
    if live {
        return watch(args, &mut query, out);
    }
    let look = look(&mut query, &args.prefix, MANY)?;
    if args.json { print_json(out, &look) } else { print(out, &look, usize::MAX) }
}

/// Serve the live page to this machine. The node is asked over its Unix socket, with the rights of
/// the user who runs the command.
fn open_page(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut query = Query::look(&args.node.address)?;
    look(&mut query, &args.prefix, 1)?;
    let endpoint = query.into_endpoint()?;
    if matches!(endpoint, Endpoint::Tcp(..)) {
        let text = "the page is served where the node is: use the node's Unix socket, or set \
                    `page = true` under [http] in its settings and open https://NODE:PORT/page";
        return Err(anyhow::anyhow!(text));
    }
    let dial = move || match endpoint.connect_within(DIALLING)? {
        Stream::Unix(stream) => Ok(stream),
        Stream::Tcp(_) => Err(io::Error::other("this is not a Unix socket")),
    };
    let node = LiveNode { dial: Arc::new(dial), prefix: args.prefix.clone() };
    browser::serve(&args.browser.page, First::Live(node), out)
}

/// Show the locks again and again, until the user presses `q`.
fn watch(args: &Args, query: &mut Query, out: &mut dyn Write) -> anyhow::Result<()> {
    // Without a node the error has to be shown on the screen that stays.
    look(query, &args.prefix, 1)?;
    query.be_patient();
    let mut screen = Screen::enter();
    query.wake_on_input(screen.has_keys());
    loop {
        let rows = rustix::termios::tcgetwinsize(io::stdout()).map_or(24, |size| size.ws_row);
        let rows = usize::from(rows.max(4)) - 1;
        let look = look(query, &args.prefix, rows)?;
        write!(out, "\x1b[H\x1b[J")?;
        print(out, &look, rows)?;
        out.flush()?;
        let next = Moment::now().after(args.delay.max(Duration::from_millis(50)));
        while Moment::now() < next {
            let signal = query.wait(next);
            if screen.is_quit() {
                return Ok(());
            }
            match signal {
                Some(Signal::SIGWINCH) => break,
                Some(signal) if effect(signal) == Effect::Stops => {
                    // The shell shows its prompt on the screen that stays.
                    drop(screen);
                    let _ = react(signal);
                    screen = Screen::enter();
                    break;
                }
                Some(signal) if react(signal) => return Err(Exit::signal(signal as i32).into()),
                _ => {}
            }
        }
    }
}

fn look(query: &mut Query, prefix: &str, most: usize) -> anyhow::Result<Snapshot> {
    let Answer::Status(status) = query.answer(doorway_client::SessionMachine::status)? else {
        return Err(unexpected_answer().into());
    };
    let (mut locks, mut after) = (Vec::<LockLine>::new(), None);
    loop {
        let page = query.answer(|machine, now| machine.list(now, prefix, after.as_ref()))?;
        let Answer::Locks(page) = page else { return Err(unexpected_answer().into()) };
        locks.extend(page.locks);
        after = locks.last().and_then(|last| Name::new(&last.lock).ok());
        if !page.more || after.is_none() || locks.len() >= most {
            return Ok(Snapshot { status: *status, locks, more: page.more });
        }
    }
}

/// Print the locks in at most this many rows, and on a terminal no wider than that.
fn print(out: &mut dyn Write, look: &Snapshot, rows: usize) -> anyhow::Result<()> {
    let width = terminal_width().unwrap_or(usize::MAX);
    let NodeStatus { node, sessions, held, waiting, .. } = &look.status;
    let head = format!(
        "node {node}, locks of {}: {held} held, {waiting} waiting, {sessions} sessions",
        scope(look.status.scope)
    );
    writeln!(out, "{}", shorten(&head, width))?;
    let heading = ["LOCK", "HOLDERS", "FOR", "WAITING", "LONGEST", "HOLDER"];
    let mut table = Table::new(heading.map(str::to_owned));
    // Where not all fit, the last row says so.
    let (rows, count) = (rows.saturating_sub(2), look.locks.len());
    let cut = look.more || count > rows;
    let shown = if count > rows { rows.saturating_sub(1) } else { count };
    for line in look.locks.iter().take(shown) {
        let holder = line.holder.as_ref();
        let wait = if line.waiting > 0 { time(line.longest_wait_ms) } else { String::new() };
        table.row([
            shorten(&line.lock, width / 3),
            line.inside.to_string(),
            holder.map_or(String::new(), |holder| time(holder.held_ms)),
            line.waiting.to_string(),
            wait,
            holder.map_or(String::new(), |holder| printable(&holder.client)),
        ]);
    }
    let mut text = Vec::new();
    table.print(&mut text, 0)?;
    for line in String::from_utf8_lossy(&text).lines() {
        let end = line.char_indices().nth(width).map_or(line.len(), |(end, _)| end);
        writeln!(out, "{}", line[..end].trim_end())?;
    }
    if cut {
        writeln!(out, "and more: `doorway top PREFIX` shows those that begin with PREFIX")?;
    }
    Ok(())
}

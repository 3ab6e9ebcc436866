//! `doorway who NAME`: who holds a lock, and who waits for it.

use std::io::Write;

use doorway_client::{Answer, Name};
use doorway_protocol::text::shorten;
use doorway_protocol::{Fence, LastHolder, LockLine, LockReport, Scope, Window};
use serde::Serialize;

use super::print_json;
use crate::service::exit::Exit;
use crate::service::identity::scope;
use crate::service::options::{self, LookArgs};
use crate::service::query::{Query, unexpected_answer};
use crate::service::wait_line::{printable, time};
use crate::wrap::terminal_width;

/// Show who holds a lock and who waits for it
///
/// It also shows for how long, with which fence, and whose lock it is: one of this user, of this
/// machine or of this group of nodes. It does not start a node: without one the exit code is 69.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    doorway who backup                      show holders and waiters\n  \
    doorway who backup --json | jq -r '.holders[].client'")]
pub(crate) struct Args {
    /// The name of the lock
    #[arg(value_parser = options::name)]
    name: Name,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    node: LookArgs,
}

/// A lock, and who shares it.
#[derive(Serialize)]
pub(crate) struct Report {
    #[serde(flatten)]
    pub(crate) lock: Box<LockReport>,
    scope: Option<Scope>,
    /// The last known holders at members that are away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    last_known: Vec<LastHolder>,
    /// The windows of `doorway run --once-per` that were taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    windows: Vec<LockLine>,
}

/// Show the lock.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let report = look(&mut Query::look(&args.node.address)?, &args.name)?;
    if args.json { print_json(out, &report) } else { print(out, &report) }
}

/// Ask the node about a lock.
pub(crate) fn look(query: &mut Query, name: &Name) -> Result<Report, Exit> {
    let Answer::Lock(lock) = query.answer(|machine, now| machine.inspect(now, name))? else {
        return Err(unexpected_answer());
    };
    let windows = if query.knows_windows() {
        match query.answer(|machine, now| machine.windows(now, name))? {
            Answer::Locks(windows) => windows.locks,
            _ => return Err(unexpected_answer()),
        }
    } else {
        Vec::new()
    };
    let last_known = if lock.may_be_held_elsewhere() && query.knows_trouble() {
        match query.answer(|machine, now| machine.last_holders(now, name))? {
            Answer::LastHolders(holders) => holders,
            _ => return Err(unexpected_answer()),
        }
    } else {
        Vec::new()
    };
    Ok(Report { lock, scope: query.scope(), last_known, windows })
}

/// Print what a node knows about a lock.
pub(crate) fn print(out: &mut dyn Write, report: &Report) -> anyhow::Result<()> {
    let Report { lock: report, scope: of, last_known, windows } = report;
    let LockReport { lock, holders, waiters, .. } = &**report;
    match of {
        Some(of) => writeln!(out, "lock {lock} of {}", scope(*of))?,
        None => writeln!(out, "lock {lock}")?,
    }
    if report.algorithm.contains(',') {
        writeln!(out, "served by {}", report.algorithm)?;
    }
    if holders.is_empty() && report.away.is_empty() && report.silent.is_empty() {
        writeln!(out, "nobody holds it")?;
    } else if holders.is_empty() {
        writeln!(out, "no member that answers holds it; one that does not answer may")?;
    }
    print_last_known(out, last_known)?;
    let several = *of == Some(Scope::Cluster);
    let mut client = |what: &str, client: &str, details: &Details<'_>| {
        let client = printable(client);
        let room = terminal_width().map_or(usize::MAX, |width| width - INDENT);
        writeln!(out, "{what:<INDENT$}{}", shorten(&client, room))?;
        let fence = details.fence.map(|fence| format!("fence {fence}"));
        let details = [
            Some(format!("for {}", time(details.since))),
            details.shared.then(|| "in shared mode".to_owned()),
            fence,
            several.then(|| format!("at node {}", details.node)),
        ];
        let details = details.into_iter().flatten().collect::<Vec<_>>();
        writeln!(out, "{:INDENT$}{}", "", details.join(", "))
    };
    for holder in holders {
        let (node, since) = (&*holder.node, holder.held_ms);
        let details = Details { since, shared: holder.shared, fence: Some(holder.fence), node };
        client("held by", &holder.client, &details)?;
    }
    for waiter in waiters {
        let (node, since) = (&*waiter.node, waiter.waited_ms);
        client(
            "waiting",
            &waiter.client,
            &Details { since, shared: waiter.shared, fence: None, node },
        )?;
    }
    for waiter in waiters {
        let client = printable(&waiter.client);
        if let Some(circle) = &waiter.circle {
            writeln!(out, "deadlock: {client} waits in a circle: {}", circle.join(" -> "))?;
        } else if !waiter.missing.is_empty() {
            writeln!(out, "{client} still needs a reply from {}", waiter.missing.join(", "))?;
        }
    }
    for line in windows {
        let window = Name::new(&line.lock).ok().as_ref().and_then(Window::of);
        let (Some((_, window)), Some(holder)) = (window, &line.holder) else { continue };
        let client = printable(&holder.client);
        writeln!(out, "{:<INDENT$}{client}", "ran")?;
        let (period, node) = (window.shown_period(), &holder.node);
        let node = if several { format!(", at node {node}") } else { String::new() };
        writeln!(out, "{:INDENT$}once per {period}, in {window}{node}", "")?;
        let (lock, fence) = (quoted(&line.lock), holder.fence);
        let line = format!("to let it run again: doorway break {lock} --fence {fence}");
        writeln!(out, "{:INDENT$}{line}", "")?;
    }
    for absent in &report.away {
        writeln!(out, "node {} has been unreachable for {}", absent.node, time(absent.for_ms))?;
    }
    for silent in &report.silent {
        writeln!(out, "node {silent} did not answer in time: it may know of other clients")?;
    }
    Ok(())
}

/// Print the last known holders at members that are away.
fn print_last_known(out: &mut dyn Write, holders: &[LastHolder]) -> std::io::Result<()> {
    for LastHolder { node, client, shared, fence, heard_ms, .. } in holders {
        let client = client.as_deref().map_or_else(|| "a client".to_owned(), printable);
        let mode = if *shared { ", in shared mode" } else { "" };
        let fence = fence.map(|fence| format!(", fence {fence}")).unwrap_or_default();
        writeln!(out, "last known holder: {client}{mode}{fence}")?;
        let heard = time(*heard_ms);
        writeln!(out, "{:INDENT$}at node {node}, which is away; heard of {heard} ago", "")?;
    }
    Ok(())
}

/// A name as a word for a shell.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@".contains(c);
    if name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}

/// Where the description of a client begins.
const INDENT: usize = 9;

/// What is said of a holder or a waiter besides its description.
struct Details<'a> {
    since: u64,
    shared: bool,
    fence: Option<Fence>,
    node: &'a str,
}

//! `doorway lock NAME`: take a lock for a script and print its fence.

use std::io::Write;
use std::time::Duration;

use doorway_client::machine::UNLIMITED;
use doorway_client::{Fence, Life, Name};
use serde::Serialize;

use super::print_json;
use crate::numbers::whole;
use crate::service::acquire::{Grants, acquire};
use crate::service::ancestors::{ancestors, stdout};
use crate::service::event_loop::EventLoop;
use crate::service::exit::{self, Exit};
use crate::service::identity;
use crate::service::lock_request::AcquireArgs;
use crate::service::options::{self, NodeArgs, ttl};
use crate::service::owner::{Process, owner};
use crate::service::release::release;

/// Take a lock for a script and print its fence
///
/// The lock is held until `doorway unlock` with that fence, or until the process ends that the lock
/// is tied to: the script that reads the fence with $( ... ), also through functions, pipes,
/// redirections and `timeout`, else the shell or program that runs this command. If that process
/// cannot be known, the command takes no lock and asks for --pid or --ttl. With --ttl the lock is a
/// lease and is tied to no process.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    fence=$(doorway lock deploy) || exit        held until this script ends\n  \
    doorway unlock deploy --fence $fence        held until now\n  \
    doorway lock deploy --ttl 60                held for a minute, or until `doorway renew`\n  \
    doorway lock deploy --ttl never             held until `doorway unlock` or `doorway break`,\n  \
    \x20                                           if `limits.endless` of the node allows it")]
pub(crate) struct Args {
    /// The name of the lock
    #[arg(value_parser = options::name)]
    name: Name,

    /// Hold the lock until this process of this machine ends, such as $$ for a script [default: the
    /// script that runs this command]
    #[arg(long, conflicts_with = "ttl", value_parser = whole(1..=u32::MAX))]
    pid: Option<u32>,

    /// Hold the lock for this long, in seconds or as 10m, and as long again after each `doorway
    /// renew`; the node allows at most 60 seconds unless its `limits.ttl` says otherwise. With
    /// `never` the lock does not end before it is released or broken, if `limits.endless` allows it
    #[arg(long, value_name = "SECS", value_parser = ttl_or_never)]
    ttl: Option<Duration>,

    #[command(flatten)]
    acquire: AcquireArgs,

    /// Show this text to others who ask who holds the lock [default: this command line]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    node: NodeArgs,
}

/// Parses the time to live of a lease, or `never` for one without end.
fn ttl_or_never(text: &str) -> Result<Duration, String> {
    if text == "never" {
        return Ok(UNLIMITED);
    }
    ttl(text).map_err(|why| format!("{why}; with `never` the lock is held until it is released"))
}

#[derive(Serialize)]
struct TakenLock<'a> {
    lock: &'a str,
    fence: Fence,
    view: u64,
    node: &'a str,
    session: Option<u64>,
    ttl_ms: Option<u64>,
    pid: Option<u32>,
}

/// How often the lock is taken again if the process that it was tied to was the wrong one.
const ATTEMPTS: u32 = 5;

/// Take the lock.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut wrong = None;
    for _ in 0..ATTEMPTS {
        // A shell that is just starting a pipeline looks different a moment later.
        wrong = take(args, out)?;
        if wrong.is_none() {
            return Ok(());
        }
    }
    wrong.map_or(Ok(()), |exit| Err(exit.into()))
}

/// Take the lock. If it was tied to the wrong process, it is given back, and this says so.
fn take(args: &Args, out: &mut dyn Write) -> anyhow::Result<Option<Exit>> {
    let tied = args.pid.is_none() && args.ttl.is_none();
    let owner = if tied { Some(script(&args.name)?) } else { None };
    let pid = args.pid.or(owner.as_ref().map(|process| process.pid));
    let life = pid.map_or(Life::Lease, |pid| Life::Process { pid });
    let ttl = args.ttl.unwrap_or(Duration::from_secs(10));
    let mut event_loop = EventLoop::new()?;
    let label = args.label.clone().unwrap_or_else(identity::label);
    let setup = identity::setup_for(pid, label, (ttl, life));
    let mut link = args.node.link(setup, false, args.acquire.persistence())?;
    let wanted = args.acquire.request(std::slice::from_ref(&args.name));
    let grants = acquire(&wanted, &mut link, &mut event_loop)?;
    if let Some(owner) = owner
        && let Err(exit) = check(&args.name, &owner)
    {
        release(&grants, &mut link, &mut event_loop);
        return Ok(Some(exit));
    }
    let printed = print(args, &grants, pid, out);
    printed.map_err(|error| {
        // Without its fence nobody could give the lock back.
        release(&grants, &mut link, &mut event_loop);
        let text = format!("cannot print the fence, so the lock was given back: {error}");
        anyhow::Error::from(Exit::new(exit::SYSTEM, text))
    })?;
    Ok(None)
}

/// The process to tie the lock to.
fn script(lock: &Name) -> Result<Process, Exit> {
    owner(&stdout(), &ancestors()).cloned().map_err(|doubt| {
        let text = format!(
            "cannot know how long to hold {lock}: {doubt}; give `--pid $$` to hold it until this \
             script ends, or `--ttl SECS`"
        );
        Exit::new(exit::USAGE, text)
    })
}

/// Check that the lock is tied to the right process. That one may have ended meanwhile, and a shell
/// that was just starting a pipeline looked like one that reads the fence.
fn check(lock: &Name, owner: &Process) -> Result<(), Exit> {
    let now = script(lock)?;
    if (now.pid, now.started) == (owner.pid, owner.started) {
        return Ok(());
    }
    let text = format!(
        "the process {} has ended, or does not read the fence, so {lock} was given back",
        owner.pid
    );
    Err(Exit::new(exit::LOST, text))
}

fn print(
    args: &Args,
    grants: &Grants,
    pid: Option<u32>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let ends = pid.is_none() && args.ttl != Some(UNLIMITED);
    for (lock, fence) in &grants.locks {
        if args.json {
            let taken = TakenLock {
                lock: lock.as_str(),
                fence: *fence,
                view: fence.view(),
                node: &grants.node,
                session: grants.session.map(|session| session.0),
                ttl_ms: ends.then_some(grants.ttl.as_millis() as u64),
                pid,
            };
            print_json(out, &taken)?;
        } else {
            writeln!(out, "{fence}")?;
        }
    }
    Ok(out.flush()?)
}

//! `doorway lock NAME`: take a lock for a script and print its fence.

use std::io::Write;
use std::time::Duration;

use doorway_client::{Fence, Life, Name};
use serde::Serialize;

use super::print_json;
use crate::service::acquire::{Grants, acquire};
use crate::service::event_loop::EventLoop;
use crate::service::exit::{self, Exit};
use crate::service::identity;
use crate::service::lock_request::AcquireArgs;
use crate::service::options::{self, NodeArgs, ttl};
use crate::service::release::release;

/// Take a lock for a script and print its fence
///
/// The lock is held until `doorway unlock` with that fence, or until the process ends that the lock
/// is tied to. That is the process which runs this command (the script), unless --pid names another
/// one. With --ttl the lock is a lease instead and is tied to no process.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    fence=$(doorway lock deploy) || exit        held until this script ends\n  \
    doorway unlock deploy --fence $fence        held until now\n  \
    doorway lock deploy --ttl 60                held for a minute, or until `doorway renew`")]
pub(crate) struct Args {
    /// The name of the lock
    #[arg(value_parser = options::name)]
    name: Name,

    /// Hold the lock until this process of this machine ends [default: the parent process]
    #[arg(long, conflicts_with = "ttl", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,

    /// Hold the lock for this long, in seconds or as 10m, and as long again after each `doorway
    /// renew`; the node allows at most 60 seconds unless its `limits.ttl` says otherwise
    #[arg(long, value_name = "SECS", value_parser = ttl)]
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

/// Take the lock.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let parent = || rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get() as u32);
    let pid = args.pid.or_else(|| if args.ttl.is_none() { parent() } else { None });
    let life = pid.map_or(Life::Lease, |pid| Life::Process { pid });
    let ttl = args.ttl.unwrap_or(Duration::from_secs(10));
    let mut event_loop = EventLoop::new()?;
    let label = args.label.clone().unwrap_or_else(identity::label);
    let mut link = args.node.link(identity::setup(label, Some((ttl, life))), false)?;
    let wanted = args.acquire.request(std::slice::from_ref(&args.name));
    let grants = acquire(&wanted, &mut link, &mut event_loop)?;
    print(args, &grants, pid, out).map_err(|error| {
        // Without its fence nobody could give the lock back.
        release(&grants, &mut link, &mut event_loop);
        let text = format!("cannot print the fence, so the lock was given back: {error}");
        Exit::new(exit::SYSTEM, text).into()
    })
}

fn print(
    args: &Args,
    grants: &Grants,
    pid: Option<u32>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    for (lock, fence) in &grants.locks {
        if args.json {
            let taken = TakenLock {
                lock: lock.as_str(),
                fence: *fence,
                view: fence.view(),
                node: &grants.node,
                session: grants.session.map(|session| session.0),
                ttl_ms: pid.is_none().then_some(grants.ttl.as_millis() as u64),
                pid,
            };
            print_json(out, &taken)?;
        } else {
            writeln!(out, "{fence}")?;
        }
    }
    Ok(out.flush()?)
}

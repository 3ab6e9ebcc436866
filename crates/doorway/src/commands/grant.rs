//! What `unlock`, `renew` and `break` share: they name a grant by its lock and its fence.

use std::io::Write;

use doorway_client::{Fence, Moment, Name, SessionMachine};
use serde::Serialize;

use super::print_json;
use crate::service::exit::{self, Exit};
use crate::service::options::{self, NodeArgs};
use crate::service::query::Query;

/// The lock, and where its node is.
#[derive(clap::Args)]
pub(crate) struct GrantArgs {
    /// The name of the lock
    #[arg(value_parser = options::name)]
    pub(crate) name: Name,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

/// The result, as JSON.
#[derive(Serialize)]
struct Outcome<'a> {
    lock: &'a str,
    fence: Fence,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<bool>,
}

/// What to do with the grant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Give it back.
    Release,
    /// Renew its lease.
    Renew,
    /// Take it from its holder.
    Break,
}

/// Do it. The exit code is 123 if the lock is not held with that fence any more.
pub(crate) fn run(
    action: Action,
    args: &GrantArgs,
    fence: Fence,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let name = &args.name;
    let question = |machine: &mut SessionMachine, now: Moment| match action {
        Action::Release => machine.release(now, name, fence),
        Action::Renew => machine.renew(now, name, fence),
        Action::Break => machine.break_lock(now, name, fence),
    };
    let was = Query::new(&args.node)?.ask_of_grant(question)?;
    if args.json {
        let breaks = action == Action::Break;
        let (held, broken) = ((!breaks).then_some(was), breaks.then_some(was));
        print_json(out, &Outcome { lock: name.as_str(), fence, held, broken })?;
    } else if was && action == Action::Break {
        writeln!(out, "broke {name}: its holder with fence {fence} has lost it")?;
    }
    if was {
        return Ok(());
    }
    let text = format!("{name} is not held with fence {fence} any more");
    Err(Exit::new(exit::LOST, text).into())
}

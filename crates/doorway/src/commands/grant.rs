//! What `unlock`, `renew` and `break` share: a grant, named by its lock and its fence.

use std::io::Write;

use doorway_client::{Fence, Moment, Name, SessionMachine};
use serde::Serialize;

use super::print_json;
use crate::service::exit::{self, Exit};
use crate::service::options::{self, NodeArgs};
use crate::service::talk::Talk;

/// The lock, and where it is.
#[derive(clap::Args)]
pub(crate) struct GrantArgs {
    /// The lock
    #[arg(value_parser = options::name)]
    pub(crate) name: Name,

    #[command(flatten)]
    pub(crate) node: NodeArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What became of a grant, for programs.
#[derive(Serialize)]
struct Became<'a> {
    lock: &'a str,
    fence: Fence,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<bool>,
}

/// What is done to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It is given back.
    Release,
    /// It is kept for longer.
    Renew,
    /// It is taken from its holder.
    Break,
}

/// Do it. The end is 123 if there is no such grant any more.
pub(crate) fn run(
    deed: Deed,
    args: &GrantArgs,
    fence: Fence,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let name = &args.name;
    let question = |machine: &mut SessionMachine, now: Moment| match deed {
        Deed::Release => machine.release(now, name, fence),
        Deed::Renew => machine.renew(now, name, fence),
        Deed::Break => machine.break_lock(now, name, fence),
    };
    let was = Talk::new(&args.node)?.ask_of_grant(question)?;
    if args.json {
        let breaks = deed == Deed::Break;
        let (held, broken) = ((!breaks).then_some(was), breaks.then_some(was));
        print_json(out, &Became { lock: name.as_str(), fence, held, broken })?;
    } else if was && deed == Deed::Break {
        writeln!(out, "broke {name} with fence {fence}")?;
    }
    if was {
        return Ok(());
    }
    let text = format!("{name} is not held with fence {fence} any more");
    Err(Exit::new(exit::LOST, text).into())
}

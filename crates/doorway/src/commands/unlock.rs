//! `doorway unlock NAME --fence F`: give back what `doorway lock` took.

use std::io::Write;

use doorway_client::{Fence, Moment, Name};
use serde::Serialize;

use super::print_json;
use crate::service::exit::{self, Exit};
use crate::service::options::{self, NodeArgs};
use crate::service::talk::{Said, Talk, odd};

/// Give back a lock that `doorway lock` took
///
/// It may be asked again and again: nobody else's grant is ever given back. The exit code is 123
/// if nothing with that fence was held any more, because it was given back or lost before.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The lock
    #[arg(value_parser = options::name)]
    name: Name,

    /// The fence that `doorway lock` printed
    #[arg(long, value_name = "FENCE", value_parser = options::fence)]
    fence: Fence,

    #[command(flatten)]
    node: NodeArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Released<'a> {
    lock: &'a str,
    fence: Fence,
    held: bool,
}

/// Give it back.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let release =
        |machine: &mut doorway_client::Machine, now| machine.release(now, &args.name, args.fence);
    let Some(Said::Released(held)) = Talk::new(&args.node)?.ask(Moment::NEVER, release)? else {
        return Err(odd().into());
    };
    if args.json {
        let (lock, fence) = (args.name.as_str(), args.fence);
        print_json(out, &Released { lock, fence, held })?;
    }
    if !held {
        let text = format!("{} is not held with fence {} any more", args.name, args.fence);
        return Err(Exit::new(exit::LOST, text).into());
    }
    Ok(())
}

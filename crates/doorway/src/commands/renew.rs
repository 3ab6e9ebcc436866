//! `doorway renew NAME --fence F`: a sign of life for what `doorway lock --ttl` took.

use std::io::Write;

use doorway_client::{Code, Fence, Name};
use serde::Serialize;

use super::print_json;
use crate::service::exit::{self, Exit};
use crate::service::options::{self, NodeArgs};
use crate::service::talk::Talk;

/// Keep a lock that `doorway lock --ttl` took for as long again
///
/// The exit code is 123 if it is not held any more.
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
struct Renewed<'a> {
    lock: &'a str,
    fence: Fence,
    held: bool,
}

/// Renew it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut talk = Talk::new(&args.node)?;
    let answer = talk.answer(|machine, now| machine.renew(now, &args.name, args.fence));
    let gone = match answer {
        Ok(_) => false,
        Err(Exit { refused: Some(Code::Gone), .. }) => true,
        Err(exit) => return Err(exit.into()),
    };
    if args.json {
        let (lock, fence) = (args.name.as_str(), args.fence);
        print_json(out, &Renewed { lock, fence, held: !gone })?;
    }
    if gone {
        let text = format!("{} is not held with fence {} any more", args.name, args.fence);
        return Err(Exit::new(exit::LOST, text).into());
    }
    Ok(())
}

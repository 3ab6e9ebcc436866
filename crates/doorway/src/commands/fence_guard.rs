//! `doorway fence-guard FILE FENCE`: refuse what a paused holder does later.

use std::io::Write;
use std::path::PathBuf;

use doorway_client::{Fence, FileGate, GateError};
use serde::Serialize;

use super::print_json;
use crate::service::exit::{self, Exit};
use crate::service::options;

/// Let a fence pass unless a higher one has passed before
///
/// A lock cannot undo what its holder does after having lost it: one that was paused goes on when
/// it wakes up. Whatever it changes can refuse it, by remembering the highest fence it has seen.
/// Exit code 0 if the fence passes, 1 if it is stale, 64 if FILE is something else.
#[derive(clap::Args)]
#[command(after_help = "Example, under `doorway run`:\n  \
    doorway fence-guard /srv/data/fence $DOORWAY_FENCE && mv new.$DOORWAY_FENCE /srv/data/current")]
pub(crate) struct Args {
    /// The file that remembers the highest fence; it is made if it is not there
    file: PathBuf,

    /// The fence
    #[arg(value_parser = options::fence)]
    fence: Fence,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Verdict {
    fence: Fence,
    passed: bool,
    highest: Fence,
}

/// Let it pass, or not.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let fence = args.fence;
    let (passed, end) = match FileGate::new(&args.file).pass(fence) {
        Ok(_) => (Verdict { fence, passed: true, highest: fence }, Ok(())),
        Err(GateError::Stale(stale)) => {
            let highest = stale.seen;
            let end = Err(Exit::new(1, stale.to_string()).into());
            (Verdict { fence, passed: false, highest }, end)
        }
        Err(error) => return Err(Exit::new(exit::USAGE, error.to_string()).into()),
    };
    if args.json {
        print_json(out, &passed)?;
    }
    end
}

//! `doorway fence-guard FILE FENCE`: refuse the changes of a holder that has lost its lock.

use std::io::Write;
use std::path::PathBuf;

use doorway_client::{Fence, FileGate, GateError};
use serde::Serialize;

use super::print_json;
use crate::service::exit::{self, Exit};
use crate::service::options;

/// Refuse a fence that is lower than one seen before
///
/// A holder that was paused does not know that it has lost its lock, and goes on when it wakes up.
/// The lock cannot prevent that, but the resource that it changes can: every exclusive grant of a
/// lock has a higher fence than the grants before it, so a resource that remembers the highest
/// fence it has seen can refuse a lower one. This command is such a check for shell scripts.
///
/// Exit codes: 0 if the fence is the highest so far, 1 if a higher one was seen before, 64 if FILE
/// does not hold a fence.
#[derive(clap::Args)]
#[command(after_help = "\
Run it in a command that `doorway run` started, before each change of the resource.

Examples:
  doorway fence-guard /srv/fence $DOORWAY_FENCE && mv new.$DOORWAY_FENCE /srv/current")]
pub(crate) struct Args {
    /// The file that keeps the highest fence; it is created if it does not exist
    file: PathBuf,

    /// The fence to check
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

/// Check the fence and remember it.
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

//! `doorway unlock NAME --fence F`: give back a lock that `doorway lock` took.

use std::io::Write;

use doorway_client::Fence;

use super::grant::{self, Action, GrantArgs};
use crate::service::options;

/// Give back a lock that `doorway lock` took
///
/// The fence names the grant, so this never gives back what somebody else has been granted since,
/// and may be repeated. The exit code is 123 if the lock was not held with that fence any more,
/// because it was given back or lost before.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    fence=$(doorway lock deploy) || exit\n  \
    doorway unlock deploy --fence $fence")]
pub(crate) struct Args {
    /// Give back the grant with this fence, as `doorway lock` printed it
    #[arg(long, value_name = "FENCE", value_parser = options::fence)]
    fence: Fence,

    #[command(flatten)]
    grant: GrantArgs,
}

/// Give the lock back.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    grant::run(Action::Release, &args.grant, args.fence, out)
}

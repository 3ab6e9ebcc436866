//! `doorway renew NAME --fence F`: renew the lease of a lock that `doorway lock --ttl` took.

use std::io::Write;

use doorway_client::Fence;

use super::grant::{self, Action, GrantArgs};
use crate::service::options;

/// Renew the lease of a lock that `doorway lock --ttl` took
///
/// The lock is held for its TTL again, counted from now. The exit code is 123 if the lock is not
/// held with that fence any more.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    fence=$(doorway lock deploy --ttl 60) || exit\n  \
    doorway renew deploy --fence $fence         held for another 60 seconds")]
pub(crate) struct Args {
    /// Renew the grant with this fence, as `doorway lock` printed it
    #[arg(long, value_name = "FENCE", value_parser = options::fence)]
    fence: Fence,

    #[command(flatten)]
    grant: GrantArgs,
}

/// Renew the lease.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    grant::run(Action::Renew, &args.grant, args.fence, out)
}

//! `doorway renew NAME --fence F`: a sign of life for what `doorway lock --ttl` took.

use std::io::Write;

use doorway_client::Fence;

use super::grant::{self, Deed, GrantArgs};
use crate::service::options;

/// Keep a lock that `doorway lock --ttl` took for as long again
///
/// The exit code is 123 if it is not held any more.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The fence that `doorway lock` printed
    #[arg(long, value_name = "FENCE", value_parser = options::fence)]
    fence: Fence,

    #[command(flatten)]
    grant: GrantArgs,
}

/// Renew it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    grant::run(Deed::Renew, &args.grant, args.fence, out)
}

//! `doorway unlock NAME --fence F`: give back what `doorway lock` took.

use std::io::Write;

use doorway_client::Fence;

use super::grant::{self, Deed, GrantArgs};
use crate::service::options;

/// Give back a lock that `doorway lock` took
///
/// It may be asked again and again: nobody else's grant is ever given back. The exit code is 123
/// if nothing with that fence was held any more, because it was given back or lost before.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The fence that `doorway lock` printed
    #[arg(long, value_name = "FENCE", value_parser = options::fence)]
    fence: Fence,

    #[command(flatten)]
    grant: GrantArgs,
}

/// Give it back.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    grant::run(Deed::Release, &args.grant, args.fence, out)
}

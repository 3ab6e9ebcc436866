//! `doorway man`: the manual pages.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::cli::Cli;

/// Print the manual page, or write the pages of all commands into a directory
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where doorway.1, doorway-list.1 and so on go; without it, doorway.1 is printed
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Print or write the pages.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(directory) = &args.directory else {
        return Ok(clap_mangen::Man::new(Cli::command()).render(&mut *out)?);
    };
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .with_context(|| format!("cannot write manual pages to {}", directory.display()))
}

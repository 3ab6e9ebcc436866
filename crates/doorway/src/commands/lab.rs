//! `doorway lab`: the laboratory in a browser.

use std::io::Write;
use std::path::PathBuf;

use doorway_page::server::First;

use crate::browser::{self, PageArgs};
use crate::scripts;

const EXAMPLES: &str = "\
Examples:
  doorway lab
  doorway lab story.txt
  doorway check maekawa-slides-printed -n 4 --page";

/// Open the laboratory in a browser: run an algorithm step by step, choose which message arrives
/// next, and ask what can still go wrong
///
/// The page is served to this machine only. The command prints its address, opens it if there is a
/// screen, and runs until it is interrupted.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Open this script, such as `doorway check --save` writes [default: the shelf of stories]
    #[arg(value_name = "SCRIPT")]
    script: Option<PathBuf>,
    #[command(flatten)]
    page: PageArgs,
}

/// Serve the page until the command is interrupted.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let first = match &args.script {
        None => First::Shelf,
        Some(path) => {
            let (text, _) = scripts::play(path)?;
            First::Script { name: path.display().to_string(), text }
        }
    };
    browser::serve(&args.page, first, out)
}

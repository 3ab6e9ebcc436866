//! `doorway lab`: the laboratory in a browser.

use std::io::Write;
use std::path::Path;

use doorway_page::server::First;

use crate::browser::{self, PageArgs};
use crate::failure::Usage;
use crate::scripts;

const EXAMPLES: &str = "\
Examples:
  doorway lab
  doorway lab story.txt
  doorway lab '#/lab/ricart-agrawala+n=3/a2d2-3?at=2'
  doorway check maekawa-slides-printed -n 4 --page";

/// Open the laboratory in a browser: run an algorithm step by step, choose which message arrives
/// next, and ask what can still go wrong
///
/// The page is served to this machine only. The command prints its address, opens it if there is a
/// screen, and runs until it is interrupted.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Open this script, such as `doorway check --save` writes, or the moment that this link of the
    /// page names: a whole address, or its part from `#` on [default: the shelf of stories]
    #[arg(value_name = "SCRIPT|LINK", value_hint = clap::ValueHint::FilePath)]
    what: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// Serve the page until the command is interrupted.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let first = match &args.what {
        None => First::Shelf,
        Some(link) if is_link(link) => First::Link(place(link)?.to_owned()),
        Some(path) => {
            let (text, _) = scripts::play(Path::new(path))?;
            First::Script { name: path.clone(), text }
        }
    };
    browser::serve(&args.page, first, out)
}

/// Whether an argument is a link and no file.
fn is_link(text: &str) -> bool {
    ["http://", "https://", "file://", "#"].iter().any(|head| text.starts_with(head))
}

/// The screens that a link may name.
const SCREENS: [&str; 5] = ["lab", "story", "run", "compare", "threads"];

/// The place on the page that a link names, without the token that a printed address has.
fn place(link: &str) -> Result<&str, Usage> {
    let (_, fragment) = link.split_once('#').unwrap_or_default();
    let place = match fragment.split_once("&/") {
        Some((token, _)) if token.starts_with("t=") => &fragment[token.len() + 1..],
        _ => fragment,
    };
    let screen = place.strip_prefix('/').and_then(|rest| rest.split(['/', '?']).next());
    match screen {
        Some(screen) if SCREENS.contains(&screen) => Ok(place),
        Some("recorded" | "first") => Err(Usage(format!(
            "the link '{link}' is to a recording, which only the command that made it has"
        ))),
        _ => Err(Usage(format!("'{link}' is not a link to a moment; an example is {EXAMPLE}"))),
    }
}

/// A link to a moment.
const EXAMPLE: &str = "'#/lab/ricart-agrawala+n=3/a2d2-3?at=2'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_from_an_address_of_any_server() {
        let place = |link| place(link).unwrap();
        let moment = "/lab/lamport+n=3/a1?at=1&w=9c0f12aa";
        for head in ["#", "http://127.0.0.1:41207/#", "http://127.0.0.1:1/#t=5f0c&", "file:///a#"] {
            let link = format!("{head}{moment}");
            assert_eq!(super::place(&link).unwrap(), moment);
            assert!(is_link(head));
        }
        assert!(!is_link("story.txt"));
        assert_eq!(place("#/threads?name=peterson&n=2"), "/threads?name=peterson&n=2");
        for (link, why) in [
            ("#/first?at=3", "only the command that made it has"),
            ("http://127.0.0.1:7093/", "not a link to a moment"),
            ("#/nonsense", "not a link to a moment"),
            ("#t=5f0c", "not a link to a moment"),
        ] {
            let told = super::place(link).unwrap_err().to_string();
            assert!(told.contains(why), "{link}: {told}");
        }
    }
}

//! Stories as files. Everything that leaves the page is made here, not by the page.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use doorway_lab::Trace;
use doorway_lab::diagram::{self, Format};
use doorway_lab::story::Story;
use serde::Deserialize;

use super::atlas;
use super::problem::Problem;

/// The format of an export.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A script for `doorway replay` and `doorway lab`.
    Script,
    /// A space-time diagram.
    Svg,
    /// Lines for a terminal.
    Text,
    /// A Mermaid sequence diagram.
    Mermaid,
    /// A log for `ShiViz`.
    Shiviz,
    /// A trace for Perfetto.
    Perfetto,
    /// A row for each step.
    Csv,
    /// Every world of the setup in one HTML file.
    Atlas,
}

/// A story as a file.
pub(crate) fn story(story: &Story, kind: Kind) -> Result<Response, Problem> {
    let name = story.world().info().name;
    Ok(match kind {
        Kind::Script => file(name, "txt", PLAIN, story.script()?),
        Kind::Csv => file(name, "csv", "text/csv; charset=utf-8", story.csv()),
        Kind::Atlas => file(name, "html", "text/html; charset=utf-8", atlas::html(story)?),
        _ => return trace(&story.trace(), kind),
    })
}

/// What happened in a run as a file, if it can be drawn from that alone.
pub(crate) fn trace(trace: &Trace, kind: Kind) -> Result<Response, Problem> {
    let (format, ending, media) = match kind {
        Kind::Svg => (Format::Svg, "svg", "image/svg+xml"),
        Kind::Text => (Format::Text, "txt", PLAIN),
        Kind::Mermaid => (Format::Mermaid, "mmd", PLAIN),
        Kind::Shiviz => (Format::Shiviz, "shiviz", PLAIN),
        Kind::Perfetto => (Format::Chrome, "json", "application/json"),
        Kind::Script | Kind::Csv | Kind::Atlas => {
            let why = "a run in which nothing can be chosen is exported as a diagram only";
            return Err(Problem::bad(why));
        }
    };
    let name = trace.title.split([' ', ',']).next().unwrap_or_default();
    Ok(file(name, ending, media, diagram::render(trace, format)))
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn file(name: &str, ending: &str, media: &'static str, text: String) -> Response {
    // The title of a recording has names of strangers in it.
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || "._-".contains(*letter);
    let name: String = name.chars().filter(plain).collect();
    let name = if name.is_empty() { "story" } else { &name };
    let place = format!("attachment; filename=\"{name}.{ending}\"");
    let about = [(header::CONTENT_TYPE, media.to_owned()), (header::CONTENT_DISPOSITION, place)];
    (about, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_has_nothing_in_it_that_ends_the_header() {
        let name = |title: &str| {
            let trace = Trace::new(title, 1);
            let answer = super::trace(&trace, Kind::Text).unwrap();
            answer.headers()[header::CONTENT_DISPOSITION].to_str().unwrap().to_owned()
        };
        assert_eq!(name("le-lann n=3"), "attachment; filename=\"le-lann.txt\"");
        assert_eq!(name("a\";x=\"/../b\u{202e}c\r\n"), "attachment; filename=\"ax..bc.txt\"");
        assert_eq!(name("\u{202e}"), "attachment; filename=\"story.txt\"");
    }
}

//! Stories as files. Everything that leaves the page is made here, not by the page.

use axum::http::header;
use axum::response::{IntoResponse, Response};
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

/// The story as a file.
pub(crate) fn export(story: &Story, kind: Kind) -> Result<Response, Problem> {
    let drawn = |format| diagram::render(&story.trace(), format);
    let (ending, media, text) = match kind {
        Kind::Script => ("txt", "text/plain; charset=utf-8", story.script()?),
        Kind::Svg => ("svg", "image/svg+xml", drawn(Format::Svg)),
        Kind::Text => ("txt", "text/plain; charset=utf-8", drawn(Format::Text)),
        Kind::Mermaid => ("mmd", "text/plain; charset=utf-8", drawn(Format::Mermaid)),
        Kind::Shiviz => ("shiviz", "text/plain; charset=utf-8", drawn(Format::Shiviz)),
        Kind::Perfetto => ("json", "application/json", drawn(Format::Chrome)),
        Kind::Csv => ("csv", "text/csv; charset=utf-8", story.csv()),
        Kind::Atlas => ("html", "text/html; charset=utf-8", atlas::html(story)?),
    };
    let name = story.world().info().name;
    let place = format!("attachment; filename=\"{name}.{ending}\"");
    Ok(([(header::CONTENT_TYPE, media), (header::CONTENT_DISPOSITION, &place)], text)
        .into_response())
}

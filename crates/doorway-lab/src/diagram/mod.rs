//! One trace, several printers: text, Mermaid, a space-time diagram in SVG, a `ShiViz` log, and a
//! Chrome trace.
//!
//! All of them read the same [`Trace`], and the same trace always gives the same drawing.
//!
//! - **Text** has a line per event, beside a column per node that shows the state of the node.
//! - **SVG** draws at most [`MAX_EVENTS`] events and [`MAX_LANES`] nodes and says what it left out.
//! - **Mermaid** draws a message when it arrives. Mermaid accepts 50,000 characters; events beyond
//!   that are left out, and a note says so.
//! - **`ShiViz`**: open <https://bestchai.bitbucket.io/shiviz/>, press "Try out" and choose the
//!   file: its first line is the expression that parses the rest. When pasting the text instead,
//!   copy that line into the field for the parser's expression too.
//! - **Chrome**: open the file in <https://ui.perfetto.dev> or `chrome://tracing`. One unit of time
//!   (a step, or a message delay) is shown as one millisecond.

mod apart;
mod axis;
mod chrome;
mod colours;
mod labels;
mod mermaid;
mod shapes;
mod shiviz;
mod story;
mod svg;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

pub use svg::{MAX_EVENTS, MAX_LANES};

use crate::Trace;
use crate::canvas;
use crate::nearest::hint;
use crate::trace::Event;

/// The format of a diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Lines for a terminal, `.txt`.
    Text,
    /// A Mermaid sequence diagram, `.mmd`.
    Mermaid,
    /// A space-time diagram, `.svg`.
    Svg,
    /// A log with vector clocks, `.shiviz`.
    Shiviz,
    /// A trace for Perfetto and Chrome, `.json`.
    Chrome,
}

impl Format {
    /// Every format, with the ending of its file names.
    pub const ALL: [(&str, Self); 5] = [
        ("svg", Self::Svg),
        ("txt", Self::Text),
        ("mmd", Self::Mermaid),
        ("shiviz", Self::Shiviz),
        ("json", Self::Chrome),
    ];

    /// The format that the ending of a file name asks for.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, UnknownFormat> {
        let path = path.as_ref();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let format = Self::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending));
        format.map(|(_, format)| *format).ok_or_else(|| UnknownFormat(path.display().to_string()))
    }
}

/// The name of a file does not end in the name of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Format::ALL.map(|(ending, _)| format!("NAME.{ending}")).join(", ");
        write!(
            f,
            "cannot tell the format of the diagram from '{}'; write to one of {known}",
            self.0
        )
    }
}

impl std::error::Error for UnknownFormat {}

/// What happened in each event of a trace, as sentences.
pub fn sentences(trace: &Trace) -> Vec<String> {
    let flights = story::flights(&trace.events);
    let sentence = |event: &Event| {
        let phrase = story::phrase(trace, &event.what, &flights);
        format!("{} {phrase}", trace.name(event.node))
    };
    trace.events.iter().map(sentence).collect()
}

/// The trace as text, with a column for each of these fields of the acting node's state; `all`
/// stands for all fields. Only traces of scripts and counterexamples have states.
pub fn text_with_state(trace: &Trace, columns: &[String]) -> Result<String, String> {
    let known = text::fields(trace);
    if known.is_empty() {
        return Err(
            "this run does not tell the states of its nodes, as a recording never does".into()
        );
    }
    if columns == ["all"] {
        return Ok(text::render(trace, &known));
    }
    match columns.iter().find(|column| !known.contains(column)) {
        None => Ok(text::render(trace, columns)),
        Some(stranger) => {
            let near = hint(stranger, known.iter().map(String::as_str));
            let known = known.join(", ");
            Err(format!("the nodes have no state '{stranger}'{near}; choose from {known}, or all"))
        }
    }
}

/// The colour of each of these kinds of messages as a number, and of every kind that is known.
pub fn kind_colours<'a>(kinds: impl Iterator<Item = &'a str>) -> BTreeMap<String, usize> {
    let kinds: BTreeSet<&str> = kinds.collect();
    let mut all = colours::known();
    all.extend(
        colours::colours(&kinds).into_iter().map(|(kind, colour)| (kind.to_owned(), colour)),
    );
    all
}

/// A style sheet that gives the colours of all pictures to a page, as custom properties. The
/// attribute `data-theme` of the root chooses light or dark against the wish of the system.
pub fn page_colours() -> String {
    canvas::page_colours()
}

/// The trace as the text of a file in this format.
pub fn render(trace: &Trace, format: Format) -> String {
    match format {
        Format::Text => text::render(trace, &[]),
        Format::Mermaid => mermaid::render(trace),
        Format::Svg => svg::render(trace),
        Format::Shiviz => shiviz::render(trace),
        Format::Chrome => chrome::render(trace),
    }
}

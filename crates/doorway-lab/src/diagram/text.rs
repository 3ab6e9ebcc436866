//! A trace as lines of text: one per event, beside a column for each node.

use doorway_core::{Mode, NodeId};

use super::story::{self, Standing};
use crate::Trace;
use crate::trace::Event;

/// Groups up to this size get a column for each node; beyond, a line would not fit a terminal.
const MAX_COLUMNS: u32 = 16;

const KEY: &str = "│ outside   ░ waiting   █ inside   ▒ inside, shared   × crashed";

/// The trace for a terminal. A column shows where its node stands once the event has happened.
pub(super) fn render(trace: &Trace) -> String {
    let flights = story::flights(&trace.events);
    let mut standings = story::opening(&trace.events);
    let columns = if trace.size <= MAX_COLUMNS { trace.size } else { 0 };
    let times: Vec<_> = times(&trace.events);
    let width = times.iter().map(String::len).max().unwrap_or(0).max("time".len());

    let mut page = vec![format!("{} (time in {})\n", trace.title, trace.unit)];
    if columns > 0 {
        page.push(format!("{KEY}\n"));
    }
    let heading: Vec<_> = (0..columns).map(|node| format!("{:>3}", NodeId(node))).collect();
    page.push(format!("\n{:>width$} {}\n", "time", heading.concat()));
    for (event, time) in trace.events.iter().zip(&times) {
        let standing = standings.entry(event.node).or_default();
        *standing = standing.after(&event.what);
        let lane = |node| glyph(standings.get(&NodeId(node)).copied().unwrap_or_default());
        let lanes: String = (0..columns).flat_map(|node| [' ', ' ', lane(node)]).collect();
        let phrase = story::phrase(&event.what, &flights);
        page.push(format!("{time:>width$} {lanes}   node {} {phrase}\n", event.node));
    }
    page.concat()
}

fn glyph(standing: Standing) -> char {
    match standing {
        Standing { crashed: true, .. } => '×',
        // A node that holds a permit and waits for another is inside, which is what matters.
        Standing { held: 1.., mode: Mode::Exclusive, .. } => '█',
        Standing { held: 1.., mode: Mode::Shared, .. } => '▒',
        Standing { waiting: Some(_), .. } => '░',
        Standing { waiting: None, .. } => '│',
    }
}

/// The times of the events: whole numbers if all are, else to a hundredth.
fn times(events: &[Event]) -> Vec<String> {
    let decimals = if events.iter().all(|event| event.at.fract() == 0.0) { 0 } else { 2 };
    events.iter().map(|event| format!("{:.decimals$}", event.at)).collect()
}

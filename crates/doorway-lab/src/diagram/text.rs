//! A trace as lines of text: one per event, beside a column for each node.

use std::collections::BTreeSet;

use doorway_core::{Mode, NodeId};

use super::story::{self, Standing};
use crate::Trace;
use crate::trace::{Event, What};

/// At most this many nodes have a column; more would not fit on a terminal.
const MAX_COLUMNS: usize = 16;

/// A column is no wider than this; longer names are cut.
const MAX_WIDTH: usize = 12;

const KEY: &str = "│ outside   ░ waiting   █ inside   ▒ inside, shared   × crashed";

/// The trace for a terminal. A column shows the state of its node after the event.
pub(super) fn render(trace: &Trace) -> String {
    let flights = story::flights(&trace.events);
    let mut standings = story::opening(&trace.events);
    let (columns, left_out) = columns(trace);
    let times: Vec<_> = times(&trace.events);
    let width = times.iter().map(String::len).max().unwrap_or(0).max("time".len());
    let names: Vec<String> = columns.iter().map(|node| column_name(trace, *node)).collect();
    let lane_width = names.iter().map(|name| name.chars().count() + 1).max().unwrap_or(0).max(3);

    let mut page = vec![format!("{} (time in {})\n", trace.title, trace.unit)];
    if !columns.is_empty() {
        page.push(format!("{KEY}\n"));
    }
    page.extend(left_out.map(|line| line + "\n"));
    let heading: Vec<_> = names.iter().map(|name| format!("{name:>lane_width$}")).collect();
    page.push(format!("\n{}\n", format!("{:>width$} {}", "time", heading.concat()).trim_end()));
    for (event, time) in trace.events.iter().zip(&times) {
        let standing = standings.entry(event.node).or_default();
        *standing = standing.after(&event.what);
        let lane = |node: &NodeId| {
            let glyph = glyph(standings.get(node).copied().unwrap_or_default());
            format!("{glyph:>lane_width$}")
        };
        let lanes: String = columns.iter().map(lane).collect();
        let phrase = story::phrase(trace, &event.what, &flights);
        page.push(format!("{time:>width$} {lanes}   {} {phrase}\n", trace.name(event.node)));
    }
    page.concat()
}

/// The nodes that have a column, and a line about the others if there are any.
///
/// In a small group every node has one. In a large group only nodes that wait or enter have one:
/// the state of the others never changes.
fn columns(trace: &Trace) -> (Vec<NodeId>, Option<String>) {
    let size = trace.size as usize;
    if size <= MAX_COLUMNS {
        return ((0..trace.size).map(NodeId).collect(), None);
    }
    let acts = |what: &What| matches!(what, What::Acquire(_) | What::Enter | What::Release);
    let events = trace.events.iter().filter(|event| acts(&event.what));
    let active: BTreeSet<NodeId> = events.map(|event| event.node).collect();
    let shown: Vec<NodeId> = active.iter().copied().take(MAX_COLUMNS).collect();
    let count = story::count(shown.len(), size, "node");
    let which = match (shown.len(), active.len()) {
        (0, _) => "no node waits or enters, so no node has a column".to_owned(),
        (shown, active) if shown < active => {
            format!("columns for the first {count}; {active} of them wait or enter")
        }
        _ => format!("columns for {count}; the others never wait or enter"),
    };
    (shown, Some(which))
}

fn column_name(trace: &Trace, node: NodeId) -> String {
    let name = trace.names.get(node.index()).cloned().unwrap_or_else(|| node.to_string());
    name.chars().take(MAX_WIDTH).collect()
}

fn glyph(standing: Standing) -> char {
    match standing {
        Standing { crashed: true, .. } => '×',
        // A node that holds a permit and waits for another one is shown as inside.
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

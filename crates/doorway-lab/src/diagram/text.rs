//! A trace as lines of text: one per event, beside a column for each node, and if asked for, with
//! columns of the acting node's state.

use std::collections::BTreeSet;

use doorway_core::{Mode, NodeId};

use super::story::{self, NodeState};
use crate::Trace;
use crate::trace::{Event, EventKind};
use crate::values::Value;

/// At most this many nodes have a column; more would not fit on a terminal.
const MAX_COLUMNS: usize = 16;

/// A column is no wider than this; longer names are cut.
const MAX_WIDTH: usize = 12;

const KEY: &str = "│ outside   ░ waiting   █ inside   ▒ inside, shared   × crashed";

/// The trace for a terminal. A column shows the state of its node after the event.
pub(super) fn render(trace: &Trace, state: &[String]) -> String {
    let flights = story::flights(&trace.events);
    let mut standings = story::opening(trace, &trace.events);
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
    let cells = cells(trace, state);
    // Columns of state stand between those of the nodes and what happened, which may be long.
    let mut opening = vec![format!("{:>width$} {}", "time", heading.concat())];
    opening.extend(state.iter().cloned());
    let mut rows = vec![opening];
    for ((event, time), cells) in trace.events.iter().zip(&times).zip(cells) {
        let standing = standings.entry(event.node).or_default();
        *standing = standing.after(&event.what);
        let lane = |node: &NodeId| {
            let glyph = glyph(standings.get(node).copied().unwrap_or_default());
            format!("{glyph:>lane_width$}")
        };
        let lanes: String = columns.iter().map(lane).collect();
        let phrase = story::phrase(trace, &event.what, &flights);
        let mut row = vec![format!("{time:>width$} {lanes}")];
        row.extend(cells);
        row.push(format!("{} {phrase}", trace.name(event.node)));
        rows.push(row);
    }
    page.push("\n".to_owned());
    page.extend(aligned(&rows));
    page.concat()
}

/// The fields of the states that were noted, in the order in which they are declared.
pub(super) fn fields(trace: &Trace) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for text in trace.states.values() {
        for (name, _) in Value::read(text).fields() {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// For each event, the fields of its node's state; blanks where the state was not noted.
fn cells(trace: &Trace, state: &[String]) -> Vec<Vec<String>> {
    let cell = |value: &Value, name: &String| {
        let fields = value.fields();
        let found = fields.iter().find(|(field, _)| field == name);
        found.map_or_else(String::new, |(_, value)| value.to_string())
    };
    let row = |index: usize| {
        let value = trace.states.get(&index).map(|text| Value::read(text));
        let cells = state
            .iter()
            .map(|name| value.as_ref().map_or_else(String::new, |value| cell(value, name)));
        cells.collect()
    };
    (0..trace.events.len()).map(row).collect()
}

/// The rows as lines, with their cells below each other.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("   ").trim_end())
    };
    rows.iter().map(line).collect()
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
    let acts = |what: &EventKind| {
        matches!(what, EventKind::Acquire(_) | EventKind::Enter | EventKind::Release)
    };
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

fn glyph(standing: NodeState) -> char {
    match standing {
        NodeState { crashed: true, .. } => '×',
        // A node that holds a permit and waits for another one is shown as inside.
        NodeState { held: 1.., mode: Mode::Exclusive, .. } => '█',
        NodeState { held: 1.., mode: Mode::Shared, .. } => '▒',
        NodeState { waiting: Some(_), .. } => '░',
        NodeState { waiting: None, .. } => '│',
    }
}

/// The times of the events: whole numbers if all are, else to a hundredth.
fn times(events: &[Event]) -> Vec<String> {
    let decimals = if events.iter().all(|event| event.at.fract() == 0.0) { 0 } else { 2 };
    events.iter().map(|event| format!("{:.decimals$}", event.at)).collect()
}

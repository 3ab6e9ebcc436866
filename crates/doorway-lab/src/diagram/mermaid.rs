//! A trace as a Mermaid sequence diagram.
//!
//! Mermaid draws a message as if it took no time, so each is drawn when it arrives. A node is
//! "activated" while inside.

use std::collections::BTreeMap;

use doorway_core::NodeId;

use super::story::{self, Flight, NodeState};
use crate::Trace;
use crate::trace::{Event, EventKind};

/// Mermaid refuses texts above 50,000 characters; this leaves room for the last event and the note.
const MAX_LENGTH: usize = 49_000;

/// Groups up to this size are shown whole, of larger ones only the first nodes that take part.
const MAX_PARTICIPANTS: usize = 100;

/// The trace as the text of a diagram.
pub(super) fn render(trace: &Trace) -> String {
    let events = trace.events.as_slice();
    let flights = story::flights(events);
    let cast = story::cast(trace.size, events, MAX_PARTICIPANTS);
    let mut standings = story::opening(trace, events);
    let people =
        cast.iter().map(|node| format!("  participant n{node} as {}\n", plain(&trace.name(*node))));
    let people = people.collect::<Vec<_>>().concat();
    let title = plain(&trace.title);
    let mut page = format!("sequenceDiagram\n  title {title}\n{people}");
    if cast.len() < trace.size as usize {
        page += &note(&cast, &story::count(cast.len(), trace.size as usize, "node"));
    }
    for (node, standing) in standings.iter().filter(|(node, _)| cast.contains(node)) {
        page += &format!("  activate n{node}\n").repeat(standing.held as usize);
    }
    for (index, event) in events.iter().enumerate() {
        if page.len() > MAX_LENGTH {
            let cut = format!("first {}", story::count(index, events.len(), "event"));
            page += &note(&cast, &cut);
            break;
        }
        if cast.contains(&event.node) {
            let standing = standings.entry(event.node).or_default();
            page += &happening(trace, event, *standing, &flights, &cast);
            *standing = standing.after(&event.what);
        }
    }
    page
}

/// The lines for one event of a node whose state was `before`.
fn happening(
    trace: &Trace,
    event: &Event,
    before: NodeState,
    flights: &BTreeMap<u64, Flight<'_>>,
    cast: &[NodeId],
) -> String {
    let (node, held) = (event.node, before.held as usize);
    let says = || note(&[node], &story::phrase(trace, &event.what, flights));
    match &event.what {
        EventKind::Send { .. } => String::new(), // Drawn on arrival.
        EventKind::Receive { id } | EventKind::Lose { id } => match flights.get(id) {
            Some(flight) if cast.contains(&flight.from) => {
                let lost = matches!(event.what, EventKind::Lose { .. });
                let arrow = if lost { "-x" } else { "->>" };
                format!("  n{}{arrow}n{node}: {}\n", flight.from, plain(flight.message))
            }
            _ => String::new(),
        },
        EventKind::Enter => says() + &format!("  activate n{node}\n"),
        EventKind::Release if held > 0 => format!("  deactivate n{node}\n") + &says(),
        EventKind::Crash => format!("  deactivate n{node}\n").repeat(held) + &says(),
        EventKind::Violate(violation) => {
            let mut concerned = story::concerned(violation);
            concerned.retain(|node| cast.contains(node));
            let words = note(&concerned, &story::phrase(trace, &event.what, flights));
            format!("  rect rgb(255, 170, 170)\n{words}  end\n")
        }
        _ => says(),
    }
}

/// A note across these nodes, which are in order.
fn note(nodes: &[NodeId], text: &str) -> String {
    let text = plain(text);
    match nodes {
        [] => String::new(),
        [node] => format!("  Note over n{node}: {text}\n"),
        [first, .., last] => format!("  Note over n{first},n{last}: {text}\n"),
    }
}

/// Text without the characters by which Mermaid ends a statement, begins an entity or a tag.
fn plain(text: &str) -> String {
    let letters = text.chars().map(|c| match c {
        '#' | ';' | '<' | '>' | '%' => format!("#{};", u32::from(c)),
        c if c.is_control() => " ".into(),
        c => c.into(),
    });
    letters.collect()
}

//! A trace as a log with vector clocks, as the `ShiViz` visualiser reads it.

use std::collections::BTreeMap;

use doorway_core::NodeId;

use super::story;
use crate::Trace;
use crate::canvas::number;
use crate::trace::EventKind;

/// `ShiViz` takes the first line of a file as the expression that parses the rest, and the second
/// as the one that separates several runs; there is one run, so that line is empty.
const HEADER: &str = "(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)\n\n";

/// How many events each node has seen, its own and those that its own may depend on.
type Clock = BTreeMap<NodeId, u64>;

/// The trace as a log: for each event its node and clock on a line, what happened on the next.
///
/// The loss of a message is an event of no node; the log says it where the message was sent.
pub(super) fn render(trace: &Trace) -> String {
    let flights = story::flights(&trace.events);
    let mut clocks = BTreeMap::<NodeId, Clock>::new();
    let mut stamps = BTreeMap::<u64, Clock>::new();
    let mut log = vec![HEADER.to_owned()];
    for event in &trace.events {
        let clock = clocks.entry(event.node).or_default();
        match &event.what {
            EventKind::Lose { .. } => continue,
            EventKind::Receive { id } => {
                for (node, seen) in stamps.get(id).into_iter().flatten() {
                    let known = clock.entry(*node).or_default();
                    *known = (*known).max(*seen);
                }
            }
            _ => {}
        }
        *clock.entry(event.node).or_default() += 1;
        let mut fate = "";
        if let EventKind::Send { id, .. } = event.what {
            stamps.insert(id, clock.clone());
            if flights.get(&id).is_some_and(|flight| flight.lost.is_some()) {
                fate = " (lost)";
            }
        }
        let phrase = story::phrase(trace, &event.what, &flights);
        let entries: Vec<_> =
            clock.iter().map(|(node, seen)| format!("\"{}\":{seen}", host(trace, *node))).collect();
        log.push(format!("{} {{{}}}\n", host(trace, event.node), entries.join(",")));
        log.push(format!("{phrase}{fate} at {}\n", number(event.at)));
    }
    log.concat()
}

/// The name of a node without blanks, as the format asks for.
fn host(trace: &Trace, node: NodeId) -> String {
    trace.name(node).replace(char::is_whitespace, "")
}

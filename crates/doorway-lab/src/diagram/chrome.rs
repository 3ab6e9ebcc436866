//! A trace in the trace event format that Perfetto and Chrome open.

use std::collections::BTreeMap;

use doorway_core::NodeId;
use serde_json::{Value, json};

use super::story::{self, Flight};
use crate::Trace;
use crate::trace::{Event, EventKind, kind};

/// The format counts microseconds; a step or a message delay is shown as a millisecond.
const UNIT: f64 = 1000.0;

/// The length of the slice at each end of a message. The format requires an arrow to begin and end
/// in a slice. The slice is shorter where the node's next event comes sooner, since slices of one
/// thread must not overlap.
const BLINK: f64 = 0.02;

/// The trace as one JSON object: a thread for each node, slices for waiting and inside, flows for
/// messages, instants for the rest.
pub(super) fn render(trace: &Trace) -> String {
    let flights = story::flights(&trace.events);
    let mut list = vec![json!({
        "ph": "M", "pid": 1, "name": "process_name", "args": { "name": trace.title },
    })];
    for node in story::cast(trace.size, &trace.events, 1000) {
        let tid = thread(node);
        let name = trace.name(node);
        list.push(json!({
            "ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": { "name": name },
        }));
        list.push(json!({
            "ph": "M", "pid": 1, "tid": tid, "name": "thread_sort_index",
            "args": { "sort_index": tid },
        }));
    }
    // Stays come before messages: of two slices that begin together, the outer must come first.
    for stay in story::stays(trace, &trace.events) {
        list.push(json!({
            "ph": "X", "pid": 1, "tid": thread(stay.node), "cat": "stay",
            "name": stay.standing.name(),
            "ts": time(stay.since), "dur": time(stay.until - stay.since),
        }));
    }
    let mut arrivals = BTreeMap::<u64, usize>::new();
    for (event, next) in trace.events.iter().zip(nexts(trace)) {
        let (ts, tid) = (time(event.at), thread(event.node));
        let name = story::phrase(trace, &event.what, &flights);
        match &event.what {
            EventKind::Send { id, .. } | EventKind::Receive { id } => {
                let length = next.map_or(BLINK, |next| (next - event.at).min(BLINK));
                list.push(json!({
                    "ph": "X", "pid": 1, "tid": tid, "cat": "message", "name": name,
                    "ts": ts, "dur": time(length),
                }));
                if let Some(flight) = flights.get(id) {
                    // One arrow for each arrival, all of them beginning where the message was sent.
                    let turns = if matches!(event.what, EventKind::Send { .. }) {
                        0..flight.arrived.len()
                    } else {
                        let turn = arrivals.entry(*id).or_default();
                        *turn += 1;
                        *turn - 1..*turn
                    };
                    list.extend(turns.map(|turn| flow(flight, turn, event)));
                }
            }
            _ => list.push(json!({
                "ph": "i", "pid": 1, "tid": tid, "cat": "event", "name": name, "ts": ts,
                "s": if matches!(event.what, EventKind::Violate(_)) { "g" } else { "t" },
            })),
        }
    }
    let lines: Vec<_> = list.iter().map(Value::to_string).collect();
    let other = json!({ "title": trace.title, "one ms is one of the": trace.unit });
    format!(
        "{{\"displayTimeUnit\":\"ms\",\"otherData\":{other},\"traceEvents\":[\n{}\n]}}\n",
        lines.join(",\n")
    )
}

/// One end of the arrow for a message's `turn`-th arrival.
fn flow(flight: &Flight<'_>, turn: usize, event: &Event) -> Value {
    let sent = matches!(event.what, EventKind::Send { .. });
    json!({
        "ph": if sent { "s" } else { "f" }, "bp": "e", "pid": 1, "tid": thread(event.node),
        "cat": "message", "name": kind(flight.message), "id": format!("{}.{turn}", flight.id),
        "ts": time(event.at),
    })
}

/// For each event, the time of the next event of its node that is strictly later.
fn nexts(trace: &Trace) -> Vec<Option<f64>> {
    let mut later = BTreeMap::<NodeId, (f64, Option<f64>)>::new();
    let mut nexts: Vec<_> = trace
        .events
        .iter()
        .rev()
        .map(|event| {
            let entry = later.entry(event.node).or_insert((event.at, None));
            if entry.0 > event.at {
                *entry = (event.at, Some(entry.0));
            }
            entry.1
        })
        .collect();
    nexts.reverse();
    nexts
}

/// A time or a length in microseconds, to a nanosecond.
fn time(units: f64) -> f64 {
    (units * UNIT * 1000.0).round() / 1000.0
}

fn thread(node: NodeId) -> u64 {
    u64::from(node.0) + 1
}

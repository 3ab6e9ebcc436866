//! Diagrams: the drawings of known traces, and properties of every drawing.

use std::collections::{BTreeMap, BTreeSet};

use doorway_core::algorithms::ALL;
use doorway_core::{Mode, NodeId, Shape};
use doorway_lab::diagram::{Format, render};
use doorway_lab::trace::EventKind;
use doorway_lab::{Trace, Violation, simulate};
use serde_json::Value;

use crate::pictures::{classes, golden};
use crate::traces;

fn all() -> Vec<(&'static str, Trace)> {
    vec![
        ("three", traces::three()),
        ("thirteen", traces::thirteen()),
        ("ring", traces::ring()),
        ("loss", traces::loss()),
        ("doubled", traces::doubled()),
        ("crash", traces::crash()),
        ("odd", traces::odd()),
    ]
}

#[test]
fn drawings_are_as_they_were() {
    for (name, trace) in all() {
        golden(&format!("{name}.svg"), &render(&trace, Format::Svg));
    }
    for (name, trace) in [("three", traces::three()), ("odd", traces::odd())] {
        for (ending, format) in Format::ALL {
            golden(&format!("{name}.{ending}"), &render(&trace, format));
        }
    }
}

#[test]
fn drawing_twice_gives_the_same() {
    for (name, trace) in all() {
        for (_, format) in Format::ALL {
            assert_eq!(render(&trace, format), render(&trace.clone(), format), "{name}");
        }
    }
}

#[test]
fn the_name_of_a_file_chooses_the_format() {
    let format = |name: &str| Format::from_path(name);
    assert_eq!(format("a/b.svg"), Ok(Format::Svg));
    assert_eq!(format("b.TXT"), Ok(Format::Text));
    assert_eq!(format("b.c.mmd"), Ok(Format::Mermaid));
    assert_eq!(format("b.shiviz"), Ok(Format::Shiviz));
    assert_eq!(format("b.json"), Ok(Format::Chrome));
    let error = format("svg").unwrap_err().to_string();
    let known = "NAME.svg, NAME.txt, NAME.mmd, NAME.shiviz, NAME.json";
    assert_eq!(
        error,
        format!("cannot tell the format of the diagram from 'svg'; write to one of {known}")
    );
    assert!(format(".svg").is_err(), "this file has a name, but no ending");
}

fn happened(trace: &Trace, test: impl Fn(&EventKind) -> bool) -> usize {
    trace.events.iter().filter(|event| test(&event.what)).count()
}

#[test]
fn every_arrival_is_an_arrow_and_every_loss_a_cross() {
    for (name, trace) in all() {
        let classes = classes(&render(&trace, Format::Svg));
        let count = |class: &str| {
            let has = |c: &&String| c.split(' ').next() == Some(class) && !c.contains("lane");
            classes.iter().filter(has).count()
        };
        // Message 99 of the odd trace was never sent.
        let received = |what: &EventKind| matches!(what, EventKind::Receive { id } if *id != 99);
        assert_eq!(count("arrow"), happened(&trace, received), "{name}");
        let lost = happened(&trace, |what| matches!(what, EventKind::Lose { .. }));
        assert_eq!(count("lost"), lost, "{name}");
        let violated = happened(&trace, |what| matches!(what, EventKind::Violate(_)));
        assert_eq!(count("alarm"), violated, "{name}");
    }
}

#[test]
fn a_large_trace_is_cut_and_says_so() {
    let mut trace = Trace::new("large", 5_000);
    for index in 0..10_000 {
        let node = NodeId(index / 2);
        trace.push(f64::from(index), node, EventKind::Acquire(Mode::Exclusive));
    }
    let svg = render(&trace, Format::Svg);
    classes(&svg);
    assert!(svg.contains("100 of 5,000 nodes · first 2,000 of 10,000 events"));
    assert!(svg.len() < 1_000_000, "{}", svg.len());
    let mermaid = render(&trace, Format::Mermaid);
    assert!(mermaid.contains("Note over n1,n100: 100 of 5,000 nodes"));
    trace.size = 2;
    for event in &mut trace.events {
        event.node = NodeId(event.node.0 % 2);
    }
    let mermaid = render(&trace, Format::Mermaid);
    assert!(mermaid.len() < 50_000, "{}", mermaid.len());
    let last = mermaid.lines().last().unwrap();
    assert!(last.contains(": first ") && last.ends_with(" of 10,000 events"), "{last}");
}

#[test]
fn an_empty_trace_is_a_picture_too() {
    for size in [0, 1] {
        let trace = Trace::new("nothing", size);
        for (_, format) in Format::ALL {
            assert!(!render(&trace, format).is_empty());
        }
        classes(&render(&trace, Format::Svg));
    }
}

#[test]
fn text_has_a_line_for_each_event() {
    for (name, trace) in all() {
        let text = render(&trace, Format::Text);
        let lines = text.lines().filter(|line| line.contains("   node ")).count();
        assert_eq!(lines, trace.events.len(), "{name}");
        assert_eq!(text.lines().count(), lines + 4, "{name}");
    }
}

#[test]
fn a_node_inside_that_asks_again_is_drawn_inside() {
    let mut trace = Trace::new("permits", 1);
    let acquire = || EventKind::Acquire(Mode::Exclusive);
    for (at, what) in (0u8..).zip([acquire(), EventKind::Enter, acquire(), EventKind::Release]) {
        trace.push(f64::from(at), NodeId(0), what);
    }
    let text = render(&trace, Format::Text);
    let lanes: Vec<_> = text.lines().skip(4).filter_map(|line| line.chars().nth(7)).collect();
    assert_eq!(lanes, ['░', '█', '█', '░'], "{text}");
    assert!(render(&trace, Format::Svg).contains(">inside and waiting</text>"), "the legend");
}

/// The shapes of all arrows in a picture.
fn arrows(svg: &str) -> Vec<&str> {
    let lines = svg.lines().filter(|line| line.starts_with("<path class=\"arrow "));
    lines.filter_map(|line| line.split('"').nth(3)).collect()
}

#[test]
fn messages_of_one_link_and_time_are_drawn_beside_each_other() {
    let mut trace = Trace::new("several at once", 3);
    let messages = [(0, 1, "Privilege"), (0, 1, "Request"), (0, 1, "Release"), (1, 0, "Reply")];
    for (id, (from, to, message)) in (0..).zip(messages) {
        let message = message.to_owned();
        trace.push(1.0, NodeId(from), EventKind::Send { id, to: NodeId(to), message });
    }
    for (id, (_, to, _)) in (0..).zip(messages) {
        trace.push(2.0, NodeId(to), EventKind::Receive { id });
    }
    let svg = render(&trace, Format::Svg);
    let different: BTreeSet<_> = arrows(&svg).into_iter().collect();
    assert_eq!(different.len(), messages.len(), "{different:?}");
    for (name, trace) in all() {
        let svg = render(&trace, Format::Svg);
        let shapes = arrows(&svg);
        let different: BTreeSet<_> = shapes.iter().collect();
        assert_eq!(different.len(), shapes.len(), "{name}");
    }
}

#[test]
fn a_kind_of_message_has_its_own_colour_in_every_picture() {
    let mut colours = BTreeMap::<String, String>::new();
    for entry in ALL {
        let name = entry.info.name;
        for seed in [1, 2] {
            let run = simulate::run(name, 5, &Shape::default(), |options| {
                (options.entries, options.seed, options.trace) = (20, seed, 1_000);
            });
            let Ok((_, trace)) = run else { continue };
            let svg = render(&trace, Format::Svg);
            let mut lines = svg.lines();
            let mut shown = BTreeMap::new();
            while let Some(line) = lines.next() {
                let Some(class) = line.strip_prefix("<path class=\"head ") else { continue };
                let class = class.split('"').next().expect("a class").to_owned();
                let label = lines.next().expect("the name of the kind").to_owned();
                let kind = label.split(['>', '<']).nth(2).expect("a text").to_owned();
                assert_eq!(*colours.entry(kind.clone()).or_insert(class.clone()), class, "{kind}");
                let other = shown.insert(class, kind.clone());
                assert_eq!(other, None, "{name}: {kind} has the colour of another kind");
            }
        }
    }
    assert!(colours.len() > 10, "{colours:?}");
}

#[test]
fn nodes_with_names_are_called_by_them() {
    let mut trace = Trace::new("named", 2);
    trace.names = vec!["db-1".to_owned(), "db-2".to_owned()];
    trace.push(0.0, NodeId(0), EventKind::Acquire(Mode::Exclusive));
    let message = "Request(1)".to_owned();
    trace.push(0.0, NodeId(0), EventKind::Send { id: 1, to: NodeId(1), message });
    trace.push(1.0, NodeId(1), EventKind::Receive { id: 1 });
    let together = Violation::Together(vec![NodeId(0), NodeId(1)]);
    trace.push(1.0, NodeId(1), EventKind::Violate(together));
    for (_, format) in Format::ALL {
        let text = render(&trace, format);
        let numbers: Vec<_> = text.lines().filter(|line| line.contains("node 1")).collect();
        assert_eq!(numbers, Vec::<&str>::new(), "{format:?}");
        assert!(text.contains("db-1") && text.contains("db-2"), "{format:?}: {text}");
        assert!(text.contains("db-1, db-2 are inside together"), "{format:?}: {text}");
    }
}

#[test]
fn text_about_a_large_group_has_columns_for_the_nodes_that_act() {
    let mut trace = Trace::new("large", 40);
    for node in [6, 38] {
        trace.push(0.0, NodeId(node), EventKind::Acquire(Mode::Exclusive));
    }
    let text = render(&trace, Format::Text);
    assert!(text.contains("columns for 2 of 40 nodes; the others never wait or enter"), "{text}");
    assert!(text.contains("time   7 39\n"), "{text}");
    for node in 0..30 {
        trace.push(1.0, NodeId(node), EventKind::Acquire(Mode::Exclusive));
    }
    let text = render(&trace, Format::Text);
    assert!(text.contains("the first 16 of 40 nodes; 31 of them wait or enter"), "{text}");
    trace.events.clear();
    let text = render(&trace, Format::Text);
    assert!(text.contains("no node waits or enters, so no node has a column"), "{text}");
}

type Clock = BTreeMap<String, u64>;

/// A log read back as `ShiViz` would: hosts, clocks and events.
fn read_log(log: &str) -> Vec<(String, Clock, String)> {
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some(r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"));
    assert_eq!(lines.next(), Some(""));
    let mut events = Vec::new();
    while let Some(line) = lines.next() {
        let (host, clock) = line.split_once(' ').expect("host and clock");
        let clock = serde_json::from_str(clock).expect("a clock is JSON");
        events.push((host.to_owned(), clock, lines.next().expect("an event").to_owned()));
    }
    events
}

#[test]
fn vector_clocks_grow_by_one_and_a_receipt_knows_its_sending() {
    for (name, trace) in all() {
        let log = read_log(&render(&trace, Format::Shiviz));
        let logged = trace.events.iter().filter(|e| !matches!(e.what, EventKind::Lose { .. }));
        let mut last = BTreeMap::<String, Clock>::new();
        let mut sent = BTreeMap::new();
        let mut count = 0;
        for (event, (host, clock, text)) in logged.zip(&log) {
            count += 1;
            assert_eq!(*host, format!("node{}", event.node), "{name}: {text}");
            let before = last.insert(host.clone(), clock.clone()).unwrap_or_default();
            assert_eq!(clock[host], before.get(host).unwrap_or(&0) + 1, "{name}: {text}");
            let knows = |other: &Clock| other.iter().all(|(h, n)| clock.get(h) >= Some(n));
            assert!(knows(&before), "{name}: {text} forgets");
            match event.what {
                EventKind::Send { id, .. } => drop(sent.insert(id, clock)),
                EventKind::Receive { id } if id != 99 => {
                    assert!(knows(sent[&id]), "{name}: {text}");
                }
                _ => {}
            }
        }
        assert_eq!(count, log.len(), "{name}");
    }
}

#[test]
fn a_chrome_trace_joins_every_arrival_to_its_sending() {
    for (name, trace) in all() {
        let whole: Value = serde_json::from_str(&render(&trace, Format::Chrome)).unwrap();
        let events = whole["traceEvents"].as_array().unwrap();
        let phase =
            |wanted: &str| events.iter().filter(move |e| e["ph"] == wanted).collect::<Vec<_>>();
        let begins: BTreeMap<_, _> =
            phase("s").iter().map(|e| (e["id"].to_string(), e["ts"].as_f64())).collect();
        let ends = phase("f");
        let received = |what: &EventKind| matches!(what, EventKind::Receive { id } if *id != 99);
        assert_eq!(ends.len(), happened(&trace, received), "{name}");
        assert_eq!(begins.len(), ends.len(), "{name}");
        for end in ends {
            assert!(begins[&end["id"].to_string()] <= end["ts"].as_f64(), "{name}");
        }
        // Slices of one thread lie beside or within each other.
        let slices: Vec<_> = phase("X")
            .iter()
            .map(|e| (e["tid"].as_u64(), e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap()))
            .collect();
        for (tid, since, length) in &slices {
            let until = since + length;
            let crossing = |&&(other, start, length): &&(Option<u64>, f64, f64)| {
                let apart = 1e-6;
                other == *tid
                    && start > since + apart
                    && start < until - apart
                    && start + length > until + apart
            };
            assert_eq!(slices.iter().find(crossing), None, "{name}");
        }
    }
}

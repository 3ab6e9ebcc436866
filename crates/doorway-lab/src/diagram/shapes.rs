//! The shapes of arrows and marks, and the legend that explains them.

use std::collections::BTreeMap;

use doorway_core::Mode;

use super::story::{Flight, Stay};
use crate::canvas::{COLOURS, Canvas, Point, Px, text_width};
use crate::trace::{Event, EventKind};

const HEAD: f64 = 8.0;
const ROW: f64 = 20.0;
const SAMPLE: f64 = 26.0;

/// The style classes of a colour; colours beyond the palette repeat it with dashes.
pub(super) fn class(colour: usize) -> String {
    match colour / COLOURS {
        0 => format!("c{colour}"),
        round => format!("c{} dash{}", colour % COLOURS, 2 - round % 2),
    }
}

/// A line with a filled head at its end.
pub(super) fn arrow(from: Point, to: Point) -> String {
    let (ux, uy) = direction(from, to);
    let back = (to.0 - HEAD * ux, to.1 - HEAD * uy);
    let half = HEAD * 0.38;
    let shape = [
        ('M', from),
        ('L', back),
        ('M', to),
        ('L', (back.0 - half * uy, back.1 + half * ux)),
        ('L', (back.0 + half * uy, back.1 - half * ux)),
    ];
    path(&shape) + "Z"
}

/// A line that ends in a cross.
pub(super) fn cross(from: Point, to: Point) -> String {
    let arm = HEAD / 2.0;
    let corner = |x: f64, y: f64| (to.0 + x * arm, to.1 + y * arm);
    path(&[
        ('M', from),
        ('L', to),
        ('M', corner(-1.0, -1.0)),
        ('L', corner(1.0, 1.0)),
        ('M', corner(-1.0, 1.0)),
        ('L', corner(1.0, -1.0)),
    ])
}

/// A plain line.
pub(super) fn stroke(from: Point, to: Point) -> String {
    path(&[('M', from), ('L', to)])
}

/// The area between two lines.
pub(super) fn band(left: (Point, Point), right: (Point, Point)) -> String {
    path(&[('M', left.0), ('L', left.1), ('L', right.1), ('L', right.0)]) + "Z"
}

/// The point at this share of the way.
pub(super) fn along(from: Point, to: Point, share: f64) -> Point {
    (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1))
}

fn direction(from: Point, to: Point) -> Point {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = (dx * dx + dy * dy).sqrt().max(f64::MIN_POSITIVE);
    (dx / length, dy / length)
}

fn path(moves: &[(char, Point)]) -> String {
    let parts = moves.iter().map(|(verb, (x, y))| format!("{verb}{} {}", Px(*x), Px(*y)));
    parts.collect::<Vec<_>>().concat()
}

/// A thing that the legend explains.
pub(super) enum Sample {
    /// A kind of message, by its colour.
    Kind(usize),
    Lost,
    Stub,
    Waiting,
    Inside,
    Shared,
    Both,
    Crash,
    Detect,
    Forget,
    View,
    Stop,
}

/// The entries of the legend: one for each thing that this diagram shows.
pub(super) fn entries<'a>(
    kinds: &BTreeMap<&str, usize>,
    stays: &[Stay],
    mut flights: impl Iterator<Item = &'a Flight<'a>> + Clone,
    events: &[Event],
) -> Vec<(Sample, String)> {
    let happens = |what: &EventKind| events.iter().any(|event| event.what == *what);
    let views = || events.iter().any(|event| matches!(event.what, EventKind::View { .. }));
    let stops = || events.iter().any(|event| matches!(event.what, EventKind::Stop(_)));
    let acts = || events.iter().any(|event| matches!(event.what, EventKind::Act(_)));
    let detects = || events.iter().any(|event| matches!(event.what, EventKind::Detect(_)));
    let inside = |mode| stays.iter().any(|s| s.standing.held > 0 && s.standing.mode == mode);
    let waits = |inside: bool| {
        stays.iter().any(|s| s.standing.waiting.is_some() && (s.standing.held > 0) == inside)
    };
    let lost = flights.clone().any(|flight| flight.lost.is_some());
    let stub = flights.any(|flight| flight.lost.is_none() && flight.arrived.is_empty());
    let states = [
        (waits(false), Sample::Waiting, "waiting"),
        (inside(Mode::Exclusive), Sample::Inside, "inside"),
        (inside(Mode::Shared), Sample::Shared, "inside, shared"),
        (waits(true), Sample::Both, "inside and waiting"),
    ];
    let rest = [
        (lost, Sample::Lost, "lost"),
        (stub, Sample::Stub, "not received"),
        (happens(&EventKind::Crash), Sample::Crash, "crash"),
        (detects(), Sample::Detect, "learns of a crash"),
        (happens(&EventKind::Forget), Sample::Forget, "forgets the lock"),
        (acts(), Sample::Forget, "acts by itself"),
        (views(), Sample::View, "a new view"),
        (stops(), Sample::Stop, "stops"),
    ];
    let shown = |(shown, sample, text): (bool, Sample, &str)| shown.then(|| (sample, text.into()));
    let mut kinds: Vec<(usize, &str)> =
        kinds.iter().map(|(kind, colour)| (*colour, *kind)).collect();
    kinds.sort_unstable();
    let kinds = kinds.into_iter().map(|(colour, kind)| (Sample::Kind(colour), kind.to_owned()));
    states
        .into_iter()
        .filter_map(shown)
        .chain(kinds)
        .chain(rest.into_iter().filter_map(shown))
        .collect()
}

/// Draw the legend from `left` to `right` below `top`, in as many rows as needed; returns its lower
/// edge.
pub(super) fn legend(
    canvas: &mut Canvas,
    entries: &[(Sample, String)],
    (left, right): Point,
    top: f64,
) -> f64 {
    let (mut x, mut y) = (left, top + ROW / 2.0);
    for (sample, text) in entries {
        let width = SAMPLE + 7.0 + text_width(text, 12.0) + 16.0;
        if x > left && x + width > right {
            (x, y) = (left, y + ROW);
        }
        draw(canvas, sample, (x, y));
        canvas.text("text", (x + SAMPLE + 7.0, y + 4.0), text);
        x += width;
    }
    y + ROW / 2.0
}

fn draw(canvas: &mut Canvas, sample: &Sample, (x, y): Point) {
    let (from, to) = ((x, y), (x + SAMPLE, y));
    let middle = (x + SAMPLE / 2.0, y);
    let mut bar = |class, height| canvas.bar(class, (x, y - height / 2.0), (SAMPLE, height), "");
    match sample {
        Sample::Waiting => bar("waiting", 10.0),
        Sample::Inside => bar("inside", 10.0),
        Sample::Shared => bar("shared", 10.0),
        Sample::Both => {
            bar("inside", 10.0);
            bar("knock", 4.0);
            bar("waiting", 4.0);
        }
        Sample::Kind(colour) => {
            canvas.path(&format!("head {}", class(*colour)), &arrow(from, to), "");
        }
        Sample::Lost => canvas.path("lost lane", &cross(from, (to.0 - 5.0, y)), ""),
        Sample::Stub => canvas.path("stub lane", &stroke(from, to), ""),
        Sample::Crash => {
            canvas.line("lane", from, middle);
            canvas.line("mark", (middle.0, y - 7.0), (middle.0, y + 7.0));
        }
        Sample::Detect => canvas.circle("mark knock", middle, 4.0),
        Sample::Forget => canvas.line("mark", (middle.0, y - 5.0), (middle.0, y + 5.0)),
        Sample::View => canvas.line("lane", (middle.0, y - 9.0), (middle.0, y + 9.0)),
        Sample::Stop => canvas.line("mark", (middle.0, y - 7.0), (middle.0, y + 7.0)),
    }
}

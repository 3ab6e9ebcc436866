//! A trace as a space-time diagram: a lane for each node, time to the right, messages as arrows.

use std::collections::{BTreeMap, BTreeSet};

use doorway_core::{Mode, NodeId};

use super::apart::ArrowSpacing;
use super::axis::Axis;
use super::colours::colours;
use super::labels::{Capsule, Room};
use super::shapes::{self, along, arrow, class, cross, stroke};
use super::story::{self, Flight, Stay};
use crate::canvas::{Canvas, Point, text_width};
use crate::trace::{Event, EventKind, kind};
use crate::{Trace, Violation};

/// The largest number of events that a picture shows: the first ones. Such a picture has about a
/// megabyte.
pub const MAX_EVENTS: usize = 2_000;

/// The largest number of nodes that a picture shows: the first that take part.
pub const MAX_LANES: usize = 100;

const MARGIN: f64 = 20.0;
const BAR: f64 = 12.0;
const ROW: f64 = 18.0;
const LABEL: f64 = 12.0;

/// A message whose text is longer than this is labelled by its kind alone.
const MAX_LABEL: usize = 18;

/// How many rows above the lanes hold the texts of violations. Further violations have only a mark.
const MAX_ALARM_ROWS: usize = 6;

/// The trace as a picture.
pub(super) fn render(trace: &Trace) -> String {
    let mut drawing = Drawing::new(trace);
    drawing.heading();
    drawing.ground();
    drawing.stays();
    drawing.cuts();
    drawing.flights();
    drawing.happenings();
    drawing.alarms();
    let height = drawing.legend();
    let (size, description) = ((drawing.width, height), drawing.description());
    drawing.canvas.finish(size, &trace.title, &description)
}

/// The places of everything, and what is drawn so far.
struct Drawing<'a> {
    trace: &'a Trace,
    events: &'a [Event],
    /// The messages between nodes that are shown.
    flights: BTreeMap<u64, Flight<'a>>,
    /// How many messages there are, those between other nodes included.
    sent: usize,
    stays: Vec<Stay>,
    lanes: Vec<NodeId>,
    /// The colour of each kind of message.
    kinds: BTreeMap<&'a str, usize>,
    axis: Axis,
    width: f64,
    left: f64,
    right: f64,
    top: f64,
    spacing: f64,
    alarms: Vec<Alarm>,
    canvas: Canvas,
    room: Room,
    apart: ArrowSpacing,
}

/// A violation, the place of its mark, and the row in which its text found room.
struct Alarm {
    x: f64,
    violation: Violation,
    row: Option<usize>,
    flipped: bool,
}

impl<'a> Drawing<'a> {
    fn new(trace: &'a Trace) -> Self {
        let events = &trace.events[..trace.events.len().min(MAX_EVENTS)];
        let lanes = story::cast(trace.size, events, MAX_LANES);
        let mut flights = story::flights(events);
        let sent = flights.len();
        flights.retain(|_, flight| lanes.contains(&flight.from) && lanes.contains(&flight.to));
        let kinds: BTreeSet<&str> = flights.values().map(|flight| kind(flight.message)).collect();
        let kinds = colours(&kinds);
        let widest = lanes.iter().map(|node| text_width(&trace.name(*node), 12.0));
        let left = MARGIN + widest.fold(0.0, f64::max) + 14.0;
        // With thirteen pixels an event, about sixty of them fit on a page. The bounds keep moments
        // readable, and keep moments at which many things happen from being pulled apart too far.
        let moments = Axis::moments(events) as f64;
        let wanted = (13.0 * events.len() as f64).clamp(14.0 * moments, 80.0 * moments);
        let heading = text_width(&trace.title, 17.0).max(460.0);
        let width = (left + wanted + 2.0 * MARGIN).max(heading + 2.0 * MARGIN);
        let right = width - MARGIN;
        let axis = Axis::new(events, flights.values(), left + 10.0, right - left - 30.0);
        let spacing = match lanes.len() {
            0..=4 => 68.0,
            5..=8 => 54.0,
            9..=16 => 42.0,
            17..=32 => 30.0,
            _ => 22.0,
        };
        let stays = story::stays(trace, events);
        let alarms = alarms(trace, events, &axis, right);
        let rows = alarms.iter().filter_map(|alarm| alarm.row).max().map_or(0, |row| row + 1);
        let top = 66.0 + ROW * rows as f64 + spacing / 2.0;
        let (canvas, room, apart) = (Canvas::default(), Room::default(), ArrowSpacing::default());
        Self {
            trace,
            events,
            flights,
            sent,
            stays,
            lanes,
            kinds,
            axis,
            width,
            left,
            right,
            top,
            spacing,
            alarms,
            canvas,
            room,
            apart,
        }
    }

    /// The height of a node's lane, unless the node is left out.
    fn y(&self, node: NodeId) -> Option<f64> {
        let lane = self.lanes.binary_search(&node).ok()?;
        Some(self.top + self.spacing * lane as f64)
    }

    fn bottom(&self) -> f64 {
        self.top + self.spacing * (self.lanes.len() as f64 - 0.5)
    }

    fn heading(&mut self) {
        self.canvas.text("text title", (MARGIN, 30.0), &self.trace.title);
        let (shown, all) = (self.events.len(), self.trace.events.len());
        let first = if shown < all { "first " } else { "" };
        let facts = [
            story::count(self.lanes.len(), self.trace.size as usize, "node"),
            format!("{first}{}", story::count(shown, all, "event")),
            story::count(self.flights.len(), self.sent, "message"),
        ];
        self.canvas.text("soft", (MARGIN, 50.0), &facts.join(" · "));
    }

    /// Draw the lanes, their names and the axis, below everything else.
    fn ground(&mut self) {
        let bottom = self.bottom();
        let top = self.top - self.spacing / 2.0;
        for (x, text) in self.axis.ticks() {
            self.canvas.line("grid", (x, top), (x, bottom));
            self.canvas.text("soft mid", (x, bottom + 14.0), &text);
        }
        let caption = format!("time in {}", self.trace.unit);
        let middle = f64::midpoint(self.left, self.right);
        self.canvas.text("soft mid", (middle, bottom + 31.0), &caption);
        // The lane of a crashed node ends, unless the node comes back with a later view.
        let crash = |node| {
            let own = self.events.iter().rev().filter(|event| event.node == node);
            let mut turns =
                own.filter(|e| matches!(e.what, EventKind::Crash | EventKind::View { .. }));
            let last = turns.next().filter(|event| event.what == EventKind::Crash);
            last.map(|event| self.axis.x(event.at))
        };
        let ends: Vec<_> = self.lanes.iter().map(|node| crash(*node)).collect();
        for (node, end) in self.lanes.clone().into_iter().zip(ends) {
            let Some(y) = self.y(node) else { continue };
            self.canvas.text("text end", (self.left - 10.0, y + 4.0), &self.trace.name(node));
            let lane = ((self.left, y), (end.unwrap_or(self.right), y));
            self.canvas.line("lane", lane.0, lane.1);
            self.room.take(Capsule { from: lane.0, to: lane.1, radius: 1.0 });
        }
    }

    /// Draw the bars: hatched while a node waits, solid while it is inside.
    fn stays(&mut self) {
        let stays = std::mem::take(&mut self.stays);
        for stay in &stays {
            let Some(y) = self.y(stay.node) else { continue };
            let from = self.axis.x(stay.since);
            let to = if stay.open { self.right } else { self.axis.x(stay.until) };
            let tip = format!("{} {}", self.trace.name(stay.node), stay.standing.name());
            let bar = |height: f64| ((from, y - height / 2.0), ((to - from).max(2.0), height));
            if stay.standing.held > 0 {
                let shared = stay.standing.mode == Mode::Shared;
                let (at, size) = bar(BAR);
                self.canvas.bar(if shared { "shared" } else { "inside" }, at, size, &tip);
                if stay.standing.held > 1 && size.0 > 16.0 {
                    let above = (from + 2.0, at.1 - 3.0);
                    self.canvas.text("soft", above, &format!("×{}", stay.standing.held));
                }
            }
            if stay.standing.waiting.is_some() {
                // A node inside that waits for one more permit: a strip across the solid bar.
                let (at, size) = bar(if stay.standing.held > 0 { BAR / 3.0 } else { BAR });
                self.canvas.bar("knock", at, size, "");
                self.canvas.bar("waiting", at, size, &tip);
            }
            self.room.take(Capsule { from: (from, y), to: (to, y), radius: BAR / 2.0 });
        }
        self.stays = stays;
    }

    /// Draw a double stroke through the axis and the lanes wherever time is cut.
    fn cuts(&mut self) {
        let lanes = self.lanes.iter().filter_map(|node| self.y(*node));
        let heights: Vec<_> = lanes.chain([self.bottom()]).collect();
        for (x, y) in self.axis.cuts.iter().flat_map(|x| heights.iter().map(move |y| (*x, *y))) {
            let stroke = |shift: f64| ((x + shift - 3.0, y + 9.0), (x + shift + 3.0, y - 9.0));
            let (left, right) = (stroke(-2.5), stroke(2.5));
            self.canvas.path("knock", &shapes::band(left, right), "");
            self.canvas.line("lane", left.0, left.1);
            self.canvas.line("lane", right.0, right.1);
        }
    }

    /// Is there a bar on the lane of `node` at this time?
    fn busy(&self, node: NodeId, at: f64) -> bool {
        self.stays.iter().any(|s| s.node == node && s.since <= at && at <= s.until)
    }

    /// Draw the arrows, and then their labels where there is room.
    fn flights(&mut self) {
        let mut named = Vec::new();
        let flights = std::mem::take(&mut self.flights);
        for flight in flights.values() {
            let class = class(self.kinds.get(kind(flight.message)).copied().unwrap_or(0));
            let (sender, receiver) = (self.trace.name(flight.from), self.trace.name(flight.to));
            let tip = format!("{} from {sender} to {receiver}", flight.message);
            for arrived in &flight.arrived {
                let Some((from, to)) = self.arrow_line(flight, *arrived) else { continue };
                self.canvas.path(&format!("arrow {class}"), &arrow(from, to), &tip);
                let line = Capsule { from, to, radius: 1.0 };
                self.room.take(line);
                named.push((line, flight.message));
            }
            if let Some(lost) = flight.lost {
                let Some((from, to)) = self.arrow_line(flight, lost) else { continue };
                let end = along(from, to, 0.75);
                self.canvas.path(&format!("lost {class}"), &cross(from, end), &(tip + ", lost"));
                let line = Capsule { from, to: end, radius: 1.0 };
                self.room.take(line);
                named.push((line, flight.message));
            } else if flight.arrived.is_empty() {
                // Still in transit when the picture ends, or sent to a node that has crashed.
                let Some((from, to)) = self.stub(flight) else { continue };
                let tip = tip + ", never received";
                self.canvas.path(&format!("stub {class}"), &stroke(from, to), &tip);
                self.room.take(Capsule { from, to, radius: 1.0 });
            }
        }
        self.flights = flights;
        for (arrow, message) in named {
            let short = message.chars().count() <= MAX_LABEL;
            let text = if short { message } else { kind(message) };
            if let Some(spot) = self.room.place(&arrow, text_width(text, LABEL), LABEL) {
                self.canvas.turned("text halo", spot.at, spot.degrees, text);
            }
        }
    }

    /// The line of a message's arrow, moved aside if another one lies there.
    fn arrow_line(&mut self, flight: &Flight<'_>, end: f64) -> Option<(Point, Point)> {
        let line = self.line(flight, end)?;
        let lanes = (self.y(flight.from)?, self.y(flight.to)?);
        Some(self.apart.place(line, lanes, self.right))
    }

    /// From lane to lane, or from the edge of a bar to the edge of a bar.
    fn line(&self, flight: &Flight<'_>, end: f64) -> Option<(Point, Point)> {
        let (y1, y2) = (self.y(flight.from)?, self.y(flight.to)?);
        let down = (y2 - y1).signum();
        let edge = |node, at| if self.busy(node, at) { BAR / 2.0 } else { 0.0 };
        let from = (self.axis.x(flight.sent), y1 + down * edge(flight.from, flight.sent));
        Some((from, (self.axis.x(end), y2 - down * edge(flight.to, end))))
    }

    /// The short line of a message that never arrives.
    fn stub(&mut self, flight: &Flight<'_>) -> Option<(Point, Point)> {
        let (from, _) = self.line(flight, flight.sent)?;
        let lane = self.y(flight.from)?;
        let rise = (self.y(flight.to)? - lane).signum() * self.spacing * 0.4;
        let to = ((from.0 + 18.0).min(self.right), from.1 + rise);
        Some(self.apart.place((from, to), (lane, lane + rise), self.right))
    }

    /// Marks for events that are neither bars nor arrows: crashes, views, detections.
    fn happenings(&mut self) {
        for event in self.events {
            let Some(y) = self.y(event.node) else { continue };
            let x = self.axis.x(event.at);
            match event.what {
                EventKind::Crash | EventKind::Stop(_) => {
                    self.canvas.line("mark", (x, y - 10.0), (x, y + 10.0));
                }
                EventKind::View { .. } => {
                    let half = self.spacing / 2.0;
                    self.canvas.line("lane", (x, y - half), (x, y + half));
                }
                EventKind::Detect(_) => self.canvas.circle("mark knock", (x, y), 4.0),
                EventKind::Forget | EventKind::Act(_) => {
                    self.canvas.line("mark", (x, y - 5.0), (x, y + 5.0));
                }
                _ => {}
            }
        }
    }

    fn alarms(&mut self) {
        let bottom = self.bottom();
        for alarm in std::mem::take(&mut self.alarms) {
            let x = alarm.x;
            let mut head = self.top - self.spacing / 2.0;
            if let Some(row) = alarm.row {
                let y = 72.0 + ROW * row as f64;
                head = y + 5.0;
                let words = format!("✗ {}", self.trace.describe(&alarm.violation));
                let (class, x) =
                    if alarm.flipped { ("alarm end", x + 5.0) } else { ("alarm", x - 5.0) };
                self.canvas.text(class, (x, y), &words);
            }
            self.canvas.line("bad", (x, head), (x, bottom));
            for node in story::concerned(&alarm.violation) {
                if let Some(y) = self.y(node) {
                    self.canvas.circle("bad", (x, y), BAR);
                }
            }
        }
    }

    /// Draw the legend; returns the height of the whole picture.
    fn legend(&mut self) -> f64 {
        let entries = shapes::entries(&self.kinds, &self.stays, self.flights.values(), self.events);
        let (span, top) = ((MARGIN, self.width - MARGIN), self.bottom() + 42.0);
        shapes::legend(&mut self.canvas, &entries, span, top) + 12.0
    }

    fn description(&self) -> String {
        let violations = self.events.iter().filter_map(|event| match &event.what {
            EventKind::Violate(violation) => {
                Some(format!(" Violation: {}.", self.trace.describe(violation)))
            }
            _ => None,
        });
        format!(
            "Space-time diagram, time to the right in {}: {} nodes, {} events, {} messages.{}",
            self.trace.unit,
            self.trace.size,
            self.events.len(),
            self.flights.len(),
            violations.take(MAX_ALARM_ROWS).collect::<String>()
        )
    }
}

/// The places of the violations; their texts are in rows, so that they do not overlap.
fn alarms(trace: &Trace, events: &[Event], axis: &Axis, right: f64) -> Vec<Alarm> {
    let mut alarms: Vec<Alarm> = Vec::new();
    let mut rows: Vec<Vec<Point>> = vec![Vec::new(); MAX_ALARM_ROWS];
    for event in events {
        let EventKind::Violate(violation) = &event.what else { continue };
        let x = axis.x(event.at);
        let width = text_width(&trace.describe(violation), 13.0) + 24.0;
        let flipped = x + width > right;
        let span = if flipped { (x - width, x + 8.0) } else { (x - 8.0, x + width) };
        let free = |row: &Vec<Point>| row.iter().all(|r| span.1 < r.0 || r.1 < span.0);
        let row = rows.iter().position(free);
        if let Some(row) = row {
            rows[row].push(span);
        }
        alarms.push(Alarm { x, violation: violation.clone(), row, flipped });
    }
    alarms
}

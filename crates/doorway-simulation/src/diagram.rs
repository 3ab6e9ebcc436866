//! A run as a space-time diagram: time goes to the right, and each node and client has a line.
//!
//! A bar on a client's line shows that the client believes that it holds a lock. A bar on a node's
//! line shows that the node holds it for a client. The axis is not linear: every moment at which
//! something happens gets a place, so that a millisecond can be seen beside a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use doorway_protocol::Name;

use crate::settings::Settings;
use crate::story::{Lane, Span, State, Story};

/// How many moments are drawn at least, and how many at most if a holder entered long before.
const FEWEST: usize = 40;
const MOST: usize = 140;

const LEFT: f64 = 60.0;
const TOP: f64 = 70.0;
const LANE: f64 = 54.0;
const COLOURS: [&str; 4] = ["#1f77b4", "#e07b00", "#2ca02c", "#9467bd"];

/// Draw the locks that a violation concerns, up to the end of the run.
pub(crate) fn draw(
    story: &Story,
    settings: &Settings,
    seed: u64,
    end: u64,
    violation: Option<&str>,
) -> String {
    let picture = Picture::new(story, settings, end);
    picture.svg(seed, violation)
}

struct Picture<'a> {
    story: &'a Story,
    settings: &'a Settings,
    lanes: Vec<Lane>,
    /// The moments that are drawn, and their places.
    places: BTreeMap<u64, f64>,
    begin: u64,
    end: u64,
    width: f64,
}

impl<'a> Picture<'a> {
    fn new(story: &'a Story, settings: &'a Settings, end: u64) -> Self {
        let mut lanes = Vec::new();
        for node in 0..settings.nodes {
            lanes.push(Lane::Node(node));
            let of = settings.clients.iter().enumerate().filter(|(_, it)| it.nodes[0] == node);
            lanes.extend(of.map(|(client, _)| Lane::Client(client)));
        }
        let mut picture =
            Self { story, settings, lanes, places: BTreeMap::new(), begin: 0, end, width: 0.0 };
        picture.lay_out();
        picture
    }

    fn concerns(&self, lock: Option<&Name>) -> bool {
        match (&self.story.concerned, lock) {
            (Some(wanted), Some(lock)) => wanted == lock,
            _ => true,
        }
    }

    /// The bars of the locks that are drawn.
    fn bars(&self) -> impl Iterator<Item = &Span> {
        self.story.spans.iter().filter(|span| match &span.state {
            State::Holds(lock, _) => self.concerns(Some(lock)),
            State::Off | State::Paused => true,
        })
    }

    /// Choose the moments that are drawn, and give each a place.
    fn lay_out(&mut self) {
        let mut moments = BTreeSet::from([self.end]);
        for span in self.bars() {
            moments.insert(span.begin);
            moments.extend(span.end);
        }
        for arrow in self.story.arrows.iter().filter(|it| self.concerns(it.lock.as_ref())) {
            moments.extend([arrow.sent, arrow.arrived]);
        }
        moments.extend(self.story.marks.iter().map(|mark| mark.at));
        let moments: Vec<u64> = moments.into_iter().filter(|at| *at <= self.end).collect();
        // Clients that hold something at the end are shown from before they entered.
        let open = self.bars().filter(|span| {
            matches!(span.state, State::Holds(..)) && span.end.is_none_or(|end| end >= self.end)
        });
        let first = open.map(|span| span.begin).min().unwrap_or(self.end);
        let from = moments.iter().position(|at| *at >= first).unwrap_or(0).saturating_sub(12);
        let fewest = moments.len().saturating_sub(FEWEST);
        let most = moments.len().saturating_sub(MOST);
        let from = from.min(fewest).max(most);
        let mut place = LEFT + 20.0;
        let mut last = None;
        for at in &moments[from..] {
            if let Some(last) = last {
                let ms = (at - last) as f64 / 1e6;
                place += 7.0 + 9.0 * (1.0 + ms * 10.0).log10();
            }
            self.places.insert(*at, place);
            last = Some(*at);
        }
        self.begin = moments[from];
        self.width = place + 150.0;
    }

    /// The place of a moment; the beginning of the picture for all that was before it.
    fn x(&self, at: u64) -> f64 {
        self.places.range(..=at).next_back().map_or(LEFT + 8.0, |(_, place)| *place)
    }

    fn y(&self, lane: Lane) -> f64 {
        let at = self.lanes.iter().position(|it| *it == lane).unwrap_or(0);
        TOP + LANE * (at as f64 + 0.5)
    }

    fn colour(&self, lock: &Name) -> &'static str {
        let at = self.settings.locks.iter().position(|it| it.name == *lock).unwrap_or(0);
        COLOURS[at % COLOURS.len()]
    }

    fn svg(&self, seed: u64, violation: Option<&str>) -> String {
        let height = TOP + LANE * self.lanes.len() as f64 + 60.0;
        let width = self.width.max(500.0);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" \
             font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        let locks = match &self.story.concerned {
            Some(lock) => format!("lock {lock}"),
            None => "all locks".to_owned(),
        };
        let title = format!(
            "seed {seed}, {locks}: {:.6} s to {:.6} s; the axis is not linear",
            self.begin as f64 / 1e9,
            self.end as f64 / 1e9
        );
        text(&mut out, 10.0, 18.0, "#000", "start", &title, 13);
        if let Some(violation) = violation {
            let what = format!("at the end: {violation}");
            text(&mut out, 10.0, 36.0, "#c00", "start", &what, 12);
        }
        self.axis(&mut out);
        self.lines(&mut out);
        self.boxes(&mut out);
        self.arrows(&mut out);
        self.marks(&mut out);
        if violation.is_some() {
            let (x, bottom) = (self.x(self.end), height - 45.0);
            let _ = writeln!(
                out,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#c00\" \
                 stroke-width=\"2\"/>"
            );
        }
        out + "</svg>\n"
    }

    /// The times, where there is room for them.
    fn axis(&self, out: &mut String) {
        let y = TOP + LANE * self.lanes.len() as f64 + 16.0;
        let mut last = 0.0;
        for (at, x) in &self.places {
            if x - last >= 58.0 {
                last = *x;
                text(out, *x, y, "#666", "middle", &format!("{:.4} s", *at as f64 / 1e9), 9);
            }
        }
    }

    fn lines(&self, out: &mut String) {
        for lane in &self.lanes {
            let y = self.y(*lane);
            let about = match lane {
                Lane::Node(_) => String::new(),
                Lane::Client(client) => {
                    format!("{:?}", self.settings.clients[*client].life).to_lowercase()
                }
            };
            text(out, 8.0, y + 2.0, "#000", "start", &lane.to_string(), 13);
            text(out, 8.0, y + 14.0, "#666", "start", &about, 9);
            let _ = writeln!(
                out,
                "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#999\"/>",
                self.width - 120.0
            );
        }
    }

    fn boxes(&self, out: &mut String) {
        let drawn = |span: &&Span| span.end.is_none_or(|end| end >= self.begin);
        let (holds, others): (Vec<_>, Vec<_>) =
            self.bars().filter(drawn).partition(|span| matches!(span.state, State::Holds(..)));
        for span in others {
            let (high, fill, label) = match span.state {
                State::Off => (8.0, "#ffffff", "off"),
                _ => (34.0, "#dddddd", "suspended"),
            };
            let y = self.y(span.lane);
            self.bar(out, span, y - high / 2.0, high, fill);
            text(out, self.x(span.begin) + 1.0, y + 15.0, "#777", "start", label, 9);
        }
        // Bars of the same lane that overlap are drawn one above the other.
        let mut rows: BTreeMap<(Lane, usize), u64> = BTreeMap::new();
        for span in holds {
            let State::Holds(lock, fence) = &span.state else { continue };
            let free =
                |row: &usize| rows.get(&(span.lane, *row)).is_none_or(|end| *end <= span.begin);
            let row = (0..4).find(free).unwrap_or(4);
            rows.insert((span.lane, row), span.end.unwrap_or(u64::MAX));
            let (y, colour) = (self.y(span.lane) - 6.0 + 7.0 * row as f64, self.colour(lock));
            self.bar(out, span, y, 6.0, colour);
            let y = if row == 0 { y - 3.0 } else { y + 14.0 };
            let label = format!("{lock} {fence:?}");
            text(out, self.x(span.begin) + 1.0, y, colour, "start", &label, 9);
        }
    }

    fn bar(&self, out: &mut String, span: &Span, y: f64, high: f64, fill: &str) {
        let from = self.x(span.begin);
        let wide = (self.x(span.end.unwrap_or(self.end).min(self.end)) - from).max(3.0);
        let _ = writeln!(
            out,
            "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{high}\" \
             fill=\"{fill}\"/>"
        );
    }

    fn arrows(&self, out: &mut String) {
        let drawn = self.story.arrows.iter().filter(|arrow| {
            arrow.arrived >= self.begin
                && arrow.arrived <= self.end
                && self.concerns(arrow.lock.as_ref())
        });
        for arrow in drawn {
            let (x1, y1) = (self.x(arrow.sent), self.y(arrow.from));
            let (x2, y2) = (self.x(arrow.arrived), self.y(arrow.to));
            let between = matches!((arrow.from, arrow.to), (Lane::Node(_), Lane::Node(_)));
            let colour = if between { "#aaa" } else { "#333" };
            let _ = writeln!(
                out,
                "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" \
                 stroke=\"{colour}\"/><circle cx=\"{x2:.1}\" cy=\"{y2:.1}\" r=\"2.5\" \
                 fill=\"{colour}\"/>"
            );
            let y = if y2 > y1 { y2 + 16.0 } else { y2 + 24.0 };
            text(out, x2, y, colour, "middle", &arrow.label, 8);
        }
    }

    fn marks(&self, out: &mut String) {
        for mark in self.story.marks.iter().filter(|it| it.at >= self.begin && it.at <= self.end) {
            let x = self.x(mark.at);
            let y = mark.lane.map_or(TOP - 8.0, |lane| self.y(lane) - 18.0);
            if mark.lane.is_none() {
                let bottom = TOP + LANE * self.lanes.len() as f64;
                let _ = writeln!(
                    out,
                    "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" \
                     stroke=\"#c80\" stroke-dasharray=\"3 3\"/>"
                );
            }
            text(out, x, y, "#b60", "start", &mark.label, 9);
        }
    }
}

fn text(out: &mut String, x: f64, y: f64, colour: &str, anchor: &str, what: &str, size: u32) {
    let what = what.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\" text-anchor=\"{anchor}\" \
         font-size=\"{size}\">{what}</text>"
    );
}

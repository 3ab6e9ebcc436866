//! Line plots, in the look of the diagrams.

use serde::Serialize;

use crate::canvas::{COLOURS, Canvas, Point, Px, nice_step, number, text_width};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 380.0;
const MARGIN: f64 = 20.0;
const TOP: f64 = 70.0;
const ROW: f64 = 17.0;
/// The space between the plot and the labels of its curves, for leader lines and markers.
const GUTTER: f64 = 44.0;

/// A picture of curves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The label of the horizontal axis.
    pub x_label: String,
    /// The label of the vertical axis.
    pub y_label: String,
    /// Is the horizontal axis logarithmic? Points at zero or below are then left out.
    pub x_log: bool,
    /// Is the vertical axis logarithmic?
    pub y_log: bool,
    /// The curves. A formula has the colour of the measured curve before it, and is named beside
    /// that curve.
    pub series: Vec<Series>,
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its points from left to right. Points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
    /// The half length of each point's error bar; may be empty.
    pub errors: Vec<f64>,
    /// Is it a formula? It is drawn as pale dashes below the measured curve, so that both are seen
    /// when they agree.
    pub dashed: bool,
}

/// Where the measured points of a plot are drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Places {
    /// The width and the height of the picture.
    pub size: Point,
    /// The points, curve by curve.
    pub marks: Vec<Mark>,
}

/// A measured point of a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// The name of its curve.
    pub series: String,
    /// The first of its two values.
    pub x: f64,
    /// The second of its two values.
    pub y: f64,
    /// Where it is drawn.
    pub at: Point,
}

/// The axes of a plot, and the size of the picture.
struct Layout {
    x: Scale,
    y: Scale,
    size: Point,
}

impl Plot {
    /// The plot as the text of an SVG file.
    pub fn render(&self) -> String {
        let families = self.families();
        let Layout { x, y, size } = self.layout(&families);
        let mut canvas = Canvas::default();
        self.frame(&mut canvas, &x, &y);
        for family in &families {
            family.draw(&mut canvas, &x, &y);
        }
        name_curves(&mut canvas, &families, &x, &y);
        canvas.finish(size, &self.title, &self.description())
    }

    /// Where each measured point is drawn, and the size of the picture, both in pixels.
    pub fn places(&self) -> Places {
        let families = self.families();
        let Layout { x, y, size } = self.layout(&families);
        let measured = families.iter().map(|family| family.measured);
        let marks = measured.filter(|series| !series.dashed).flat_map(|series| {
            let place = |&(px, py): &(f64, f64)| {
                let at = (x.place(px)?, y.place(py)?);
                Some(Mark { series: series.name.clone(), x: px, y: py, at })
            };
            series.points.iter().filter_map(place).collect::<Vec<_>>()
        });
        Places { size: (size.0.ceil(), size.1.ceil()), marks: marks.collect() }
    }

    fn layout(&self, families: &[Family<'_>]) -> Layout {
        let labels = families.iter().map(Family::width);
        let column = labels.fold(60.0, f64::max);
        let height = HEIGHT.max(ROW * families.len() as f64);
        let (mut x, mut y) = (self.horizontal(), self.vertical());
        let ticks = y.ticks(height / 45.0);
        let widest = ticks.iter().map(|(_, text)| text_width(text, 12.0)).fold(0.0, f64::max);
        let left = MARGIN + 22.0 + widest;
        let right = (WIDTH - MARGIN - column - GUTTER).max(left + 300.0);
        (x.from, x.to) = (left, right);
        (y.from, y.to) = (TOP + height, TOP);
        Layout { x, y, size: (right + GUTTER + column + MARGIN, TOP + height + 52.0) }
    }

    fn description(&self) -> String {
        let names: Vec<_> = self.series.iter().map(|series| series.name.as_str()).collect();
        format!("Line plot, {} over {}: {}.", self.y_label, self.x_label, names.join(", "))
    }

    /// The measured curves, each with the formulas that follow it.
    fn families(&self) -> Vec<Family<'_>> {
        let mut families: Vec<Family<'_>> = Vec::new();
        for series in &self.series {
            match families.last_mut() {
                Some(family) if series.dashed => family.formulas.push(series),
                _ => families.push(Family::new(series, families.len())),
            }
        }
        families
    }

    fn horizontal(&self) -> Scale {
        let values = self.series.iter().flat_map(|series| series.points.iter().map(|p| p.0));
        Scale::over(self.x_log, values)
    }

    /// The vertical axis. A linear one begins at zero, so that heights can be compared.
    fn vertical(&self) -> Scale {
        let values = self.series.iter().flat_map(|series| {
            let errors = series.errors.iter().copied().chain(std::iter::repeat(0.0));
            series.points.iter().zip(errors).flat_map(|((_, y), e)| [y - e, y + e])
        });
        let zero = (!self.y_log).then_some(0.0);
        Scale::over(self.y_log, values.chain(zero))
    }

    /// Draw the title, the grid and the axes.
    fn frame(&self, canvas: &mut Canvas, x: &Scale, y: &Scale) {
        canvas.text("text title", (MARGIN, 30.0), &self.title);
        if self.series.iter().any(|series| series.dashed) {
            let key = "lines: measured · pale dashes: formula";
            canvas.text("soft", (MARGIN, 50.0), key);
        }
        for (value, text) in y.ticks((y.from - y.to) / 45.0) {
            let Some(at) = y.place(value) else { continue };
            canvas.line("grid", (x.from, at), (x.to, at));
            canvas.text("soft end", (x.from - 8.0, at + 4.0), &text);
        }
        for (value, text) in x.ticks((x.to - x.from) / 70.0) {
            let Some(at) = x.place(value) else { continue };
            canvas.line("grid", (at, y.to), (at, y.from));
            canvas.text("soft mid", (at, y.from + 16.0), &text);
        }
        canvas.line("lane", (x.from, y.from), (x.to, y.from));
        let middle = f64::midpoint(x.from, x.to);
        canvas.text("soft mid", (middle, y.from + 37.0), &axis_label(&self.x_label, self.x_log));
        let middle = (MARGIN + 8.0, f64::midpoint(y.from, y.to));
        canvas.turned("soft", middle, -90.0, &axis_label(&self.y_label, self.y_log));
    }
}

/// The label of an axis, which says so if the axis is logarithmic.
fn axis_label(label: &str, log: bool) -> String {
    if log { format!("{label} (log scale)") } else { label.to_owned() }
}

/// A measured curve and its formulas, which share a colour and a label.
struct Family<'a> {
    measured: &'a Series,
    formulas: Vec<&'a Series>,
    colour: usize,
    marker: usize,
}

impl<'a> Family<'a> {
    /// The `number`-th family. Once all colours are used, the next marker begins.
    fn new(measured: &'a Series, number: usize) -> Self {
        let (colour, marker) = (number % COLOURS, number / COLOURS);
        Self { measured, formulas: Vec::new(), colour, marker }
    }

    fn remark(&self) -> String {
        let names: Vec<_> = self.formulas.iter().map(|formula| formula.name.as_str()).collect();
        if names.is_empty() { String::new() } else { format!("  {}", names.join(", then ")) }
    }

    fn width(&self) -> f64 {
        text_width(&self.measured.name, 12.0) + text_width(&self.remark(), 12.0)
    }

    fn draw(&self, canvas: &mut Canvas, x: &Scale, y: &Scale) {
        let colour = self.colour;
        for formula in &self.formulas {
            let shape = curve(formula, x, y);
            canvas.path(&format!("formula c{colour}"), &shape, &formula.name);
        }
        let style = if self.measured.dashed { "formula" } else { "curve" };
        let shape = curve(self.measured, x, y);
        canvas.path(&format!("{style} c{colour}"), &shape, &self.measured.name);
        for (&(px, py), error) in self.measured.points.iter().zip(&self.measured.errors) {
            let ends = (x.place(px), y.place(py - error), y.place(py + error));
            let (Some(x), Some(low), Some(high)) = ends else { continue };
            let [from, to, left, right] = [low, high, x - 3.0, x + 3.0].map(Px);
            let caps = format!("M{left} {from}H{right}M{left} {to}H{right}");
            let shape = format!("M{} {from}V{to}{caps}", Px(x));
            canvas.path(&format!("error c{colour}"), &shape, "");
        }
        for &(px, py) in self.measured.points.iter().filter(|_| !self.measured.dashed) {
            let (Some(at), Some(height)) = (x.place(px), y.place(py)) else { continue };
            let tip = format!("{}: {}, {}", self.measured.name, number(px), number(py));
            canvas.path(&format!("f{colour}"), &marker(self.marker, (at, height)), &tip);
        }
    }

    /// The end of the curve, or of its formula if the curve has no points.
    fn end(&self, x: &Scale, y: &Scale) -> Option<Point> {
        let curves = std::iter::once(self.measured).chain(self.formulas.iter().copied());
        let mut ends = curves.filter_map(|series| {
            let points = series.points.iter().rev();
            let mut shown = points.filter_map(|p| Some((x.place(p.0)?, y.place(p.1)?)));
            shown.next()
        });
        ends.next()
    }
}

/// The line through the points, with a gap where a point cannot be shown.
fn curve(series: &Series, x: &Scale, y: &Scale) -> String {
    let mut shape = Vec::new();
    let mut verb = 'M';
    for &(px, py) in &series.points {
        if let (Some(x), Some(y)) = (x.place(px), y.place(py)) {
            shape.push(format!("{verb}{} {}", Px(x), Px(y)));
            verb = 'L';
        } else {
            verb = 'M';
        }
    }
    shape.concat()
}

/// A marker around a point: a disc, a square, a triangle or a diamond.
fn marker(kind: usize, (x, y): Point) -> String {
    let [left, right, up, down] = [x - 3.5, x + 3.5, y - 3.5, y + 3.5].map(Px);
    let (x, y) = (Px(x), Px(y));
    match kind % 4 {
        0 => format!("M{left} {y}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z"),
        1 => format!("M{left} {up}H{right}V{down}H{left}Z"),
        2 => format!("M{x} {up}L{right} {down}H{left}Z"),
        _ => format!("M{x} {up}L{right} {y}L{x} {down}L{left} {y}Z"),
    }
}

/// Write the names of the curves beside their ends, moved apart so that they do not overlap.
fn name_curves(canvas: &mut Canvas, families: &[Family<'_>], x: &Scale, y: &Scale) {
    let mut ends: Vec<_> = families
        .iter()
        .map(|family| (family, family.end(x, y).unwrap_or((x.to, y.from))))
        .collect();
    ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let mut heights: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
    let mut free = y.to;
    for height in &mut heights {
        *height = height.max(free);
        free = *height + ROW;
    }
    free = y.from;
    for height in heights.iter_mut().rev() {
        *height = height.min(free);
        free = *height - ROW;
    }
    let column = x.to + GUTTER;
    for ((family, end), height) in ends.into_iter().zip(heights) {
        let colour = family.colour;
        canvas.line(&format!("leader c{colour}"), (end.0 + 5.0, end.1), (column - 16.0, height));
        let shape = marker(family.marker, (column - 9.0, height));
        canvas.path(&format!("f{colour}"), &shape, "");
        let at = (column, height + 4.0);
        canvas.remarked(at, &family.measured.name, &family.remark());
    }
}

/// An axis: a range of values, and the range of pixels that shows it.
struct Scale {
    log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// An axis that covers all values that can be shown, with a small margin.
    fn over(log: bool, values: impl Iterator<Item = f64>) -> Self {
        let shown = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
        let (low, high) = shown.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = match (low.is_finite(), low < high) {
            (false, _) => (1.0, 10.0),
            (true, false) if log => (low / 2.0, low * 2.0),
            (true, false) => (low - 1.0, low + 1.0),
            (true, true) if log => (low / 1.15, high * 1.15),
            (true, true) => {
                let air = (high - low) * 0.04;
                // Values that are never negative need no margin below zero.
                (if low >= 0.0 { (low - air).max(0.0) } else { low - air }, high + air)
            }
        };
        Self { log, low, high, from: 0.0, to: 1.0 }
    }

    /// The pixel of a value.
    fn place(&self, value: f64) -> Option<f64> {
        let share = if self.log {
            (value / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.is_finite().then_some(self.from + share * (self.to - self.from))
    }

    /// The values to label, about `most` of them.
    fn ticks(&self, most: f64) -> Vec<(f64, String)> {
        let mut ticks = Vec::new();
        let mut value = if self.log {
            10f64.powf(self.low.log10().floor())
        } else {
            let step = nice_step((self.high - self.low) / most);
            return self.every(step);
        };
        // Powers of ten; also two and five times each of them if there is room.
        let fine = 3.0 * (self.high / self.low).log10() <= most;
        while value <= self.high {
            let factors: &[f64] = if fine { &[1.0, 2.0, 5.0] } else { &[1.0] };
            ticks.extend(factors.iter().map(|factor| factor * value));
            value *= 10.0;
        }
        ticks.retain(|tick| (self.low..=self.high).contains(tick));
        ticks.into_iter().map(|tick| (tick, number(tick))).collect()
    }

    fn every(&self, step: f64) -> Vec<(f64, String)> {
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        (first..=last).map(|tick| tick as f64 * step).map(|tick| (tick, number(tick))).collect()
    }
}

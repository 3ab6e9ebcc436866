//! The schedule of processes that share memory: a lane for each process, and the registers beside
//! every step.

use crate::canvas::{Canvas, Point, text_width};

/// What a process does at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// It does not want to enter.
    Outside,
    /// It is on its way in.
    Waiting,
    /// It is inside.
    Inside,
    /// It is on its way out.
    Leaving,
}

/// A step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The process that takes it, from 0.
    pub process: usize,
    /// What it does.
    pub text: String,
    /// What the process does from now on.
    pub then: Stretch,
    /// The values of the registers after the step, in the order of their names.
    pub registers: Vec<String>,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// The heading.
    pub title: String,
    /// The names of the processes.
    pub processes: Vec<String>,
    /// The names of the registers.
    pub registers: Vec<String>,
    /// The values of the registers before the first step.
    pub first: Vec<String>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The index of the first step of those that are then repeated forever, if any.
    pub cycle: Option<usize>,
    /// What the schedule shows.
    pub ending: String,
}

/// The most steps of a picture.
const MOST: usize = 300;

const MARGIN: f64 = 24.0;
const ROW: f64 = 22.0;
/// The width of the bar of a process.
const BAR: f64 = 12.0;

/// The picture of a schedule as SVG.
pub fn lanes(lanes: &Lanes) -> String {
    let Lanes { title, processes, registers, steps, .. } = lanes;
    let shown = &steps[..steps.len().min(MOST)];
    let text_of = |step: &Step| text_width(&step.text, 12.0);
    let lane = shown.iter().map(text_of).fold(60.0, f64::max) + BAR + 24.0;
    let column = |index: usize| {
        let values = shown.iter().map(|step| step.registers.get(index).map_or("", String::as_str));
        let first = lanes.first.get(index).map_or("", String::as_str);
        let widest = values.chain([first, registers[index].as_str()]);
        widest.map(|text| text_width(text, 12.0)).fold(0.0, f64::max) + 14.0
    };
    let widths: Vec<f64> = (0..registers.len()).map(column).collect();
    let number = 28.0;
    let lanes_left = MARGIN + number;
    let registers_left = lanes_left + processes.len() as f64 * lane + 10.0;
    let mut canvas = Canvas::default();
    canvas.text("text title", (MARGIN, MARGIN + 10.0), title);
    canvas.text("soft", (MARGIN, MARGIN + 30.0), KEY);
    let top = MARGIN + 68.0;
    let bottom = top + (shown.len() + 1) as f64 * ROW;
    for (index, name) in processes.iter().enumerate() {
        let x = lanes_left + index as f64 * lane;
        canvas.text("text", (x, top - 14.0), name);
        canvas.line("lane", (x + BAR / 2.0, top), (x + BAR / 2.0, bottom));
    }
    let mut x = registers_left;
    for (name, width) in registers.iter().zip(&widths) {
        canvas.text("text", (x, top - 14.0), name);
        x += width;
    }
    bars(&mut canvas, processes.len(), shown, (lanes_left, top), lane);
    let row = |index: usize| top + (index as f64 + 1.0) * ROW;
    values(&mut canvas, (registers_left, top + 4.0), &widths, &lanes.first, None);
    let mut before = &lanes.first;
    for (index, step) in shown.iter().enumerate() {
        let y = row(index);
        if lanes.cycle == Some(index) {
            let right = x;
            canvas.line("bad", (MARGIN, y - ROW / 2.0), (right, y - ROW / 2.0));
            canvas.text("alarm halo", (MARGIN + 4.0, y - ROW / 2.0 - 3.0), "for ever:");
        }
        canvas.text("soft", (MARGIN, y + 4.0), &(index + 1).to_string());
        let at = lanes_left + step.process as f64 * lane;
        canvas.circle("text", (at + BAR / 2.0, y), 3.0);
        canvas.text("text halo", (at + BAR + 6.0, y + 4.0), &step.text);
        values(&mut canvas, (registers_left, y + 4.0), &widths, &step.registers, Some(before));
        before = &step.registers;
    }
    let left_out = steps.len() - shown.len();
    let more = format!("{left_out} more steps are left out");
    let ending = if left_out > 0 { more.as_str() } else { lanes.ending.as_str() };
    canvas.text("alarm", (MARGIN, bottom + 18.0), ending);
    let widest = [(title.as_str(), 16.0), (KEY, 12.0), (ending, 12.5)];
    let widest = widest.map(|(text, size)| MARGIN + text_width(text, size));
    let right = widest.into_iter().fold(x, f64::max);
    let description = "A lane for each process with its steps, and the registers after each step.";
    canvas.finish((right + MARGIN, bottom + 18.0 + MARGIN), title, description)
}

const KEY: &str = "hatched: on the way in; filled: inside; grey: on the way out; \
                   coloured: a register that has changed";

/// The stretches that each process spends on its way in, inside, and on its way out.
fn bars(canvas: &mut Canvas, processes: usize, steps: &[Step], (left, top): Point, lane: f64) {
    for process in 0..processes {
        let x = left + process as f64 * lane;
        let mut stretch = (Stretch::Outside, 0.0);
        let end = top + (steps.len() + 1) as f64 * ROW;
        let own = steps.iter().enumerate().filter(|(_, step)| step.process == process);
        let changes = own.map(|(index, step)| (step.then, top + (index as f64 + 1.0) * ROW));
        for (then, y) in changes.chain([(Stretch::Outside, end)]) {
            let class = match stretch.0 {
                Stretch::Outside => None,
                Stretch::Waiting => Some("waiting"),
                Stretch::Inside => Some("inside"),
                Stretch::Leaving => Some("shared"),
            };
            if let Some(class) = class {
                canvas.bar(class, (x, stretch.1), (BAR, y - stretch.1), "");
            }
            stretch = (then, y);
        }
    }
}

/// The values of the registers; those that differ from the values before are coloured.
fn values(
    canvas: &mut Canvas,
    (left, y): Point,
    widths: &[f64],
    values: &[String],
    before: Option<&Vec<String>>,
) {
    let mut x = left;
    for (index, (value, width)) in values.iter().zip(widths).enumerate() {
        let changed = before.is_some_and(|before| before.get(index) != Some(value));
        canvas.text(if changed { "f4" } else { "soft" }, (x, y), value);
        x += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_register_is_coloured_and_a_visit_is_a_bar() {
        let step = |process, then, value: &str| Step {
            process,
            text: "turn := 1".to_owned(),
            then,
            registers: vec![value.to_owned()],
        };
        let steps = vec![
            step(0, Stretch::Waiting, "1"),
            step(0, Stretch::Inside, "1"),
            step(1, Stretch::Inside, "2"),
        ];
        let picture = lanes(&Lanes {
            title: "example".to_owned(),
            processes: vec!["P0".to_owned(), "P1".to_owned()],
            registers: vec!["turn".to_owned()],
            first: vec!["0".to_owned()],
            steps,
            cycle: Some(1),
            ending: "two are inside".to_owned(),
        });
        assert_eq!(picture.matches("\"f4\"").count(), 2);
        assert_eq!(picture.matches("<rect class=\"inside\"").count(), 2);
        assert!(picture.contains("for ever:") && picture.contains("two are inside"));
    }
}

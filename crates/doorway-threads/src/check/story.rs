//! A schedule that a person makes step by step: which process goes next, and what the registers and
//! the processes look like after each step.
//!
//! A story is a pure function of the algorithm, the number of processes, the rules and the steps. A
//! step is named by its process and by a number, since a process may have several steps: with store
//! buffers, an old write of it may also reach the memory.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::memory::Row;
use super::model::ProcessModel;
use super::schedule::{self, Line};
use super::{Check, MAX_PROCESSES, Rules};
use crate::Section;

/// The most steps of a story.
pub const MAX_STEPS: usize = 2_000;

/// Which step is taken: a process, and which of its possible steps, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepChoice {
    /// The process.
    pub process: usize,
    /// Which of its steps; 0 is the next access of its own.
    pub which: usize,
}

/// Everything that can be seen after some steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// For each process, the name of its place and the section that the place belongs to.
    pub places: Vec<(String, Section)>,
    /// The registers, each with its name and its value.
    pub registers: Vec<(String, usize)>,
    /// For each process, the writes that wait in its store buffer, the oldest first: register and
    /// value. Only this process sees them. All are empty if the rules have no buffers.
    pub buffers: Vec<Vec<(String, usize)>>,
    /// Every step that can be taken, with what it does.
    pub choices: Vec<(StepChoice, String)>,
    /// Whether all processes inside may be inside together.
    pub right: bool,
    /// The step that led here; `None` at the beginning.
    pub line: Option<Line>,
}

/// Tell a story: its moments, from the beginning to the last step.
///
/// ```
/// use doorway_threads::check::{Rules, StepChoice, tell};
///
/// let choice = |process| StepChoice { process, which: 0 };
/// let told = tell("peterson", 2, &Rules::default(), &[choice(0), choice(1)])?;
/// let line = told[2].line.as_ref().map(|line| line.to_string());
/// assert_eq!(line.as_deref(), Some("P1 flag[1] := 1, fence a"));
/// assert_eq!(told[2].registers[0], ("flag[0]".to_owned(), 1));
/// # Ok::<(), String>(())
/// ```
pub fn tell(
    name: &str,
    n: usize,
    rules: &Rules,
    choices: &[StepChoice],
) -> Result<Vec<Moment>, String> {
    if choices.len() > MAX_STEPS {
        return Err(format!("a story has at most {MAX_STEPS} steps"));
    }
    let unknown = || format!("there is no algorithm '{name}' between threads");
    let mut check = Check::named(name, n).ok_or_else(unknown)?;
    let (fewest, most) = (check.info().fewest, check.info().most.min(MAX_PROCESSES));
    if !(fewest..=most).contains(&n) {
        return Err(format!("{name} has {fewest} to {most} processes here, not {n}"));
    }
    check.rules = rules.clone();
    if !check.fits() {
        return Err(format!("{n} processes do not fit into a state"));
    }
    walk(&check.model(), choices)
}

/// The choices that make a schedule, as [`Report::schedule`](super::Report::schedule) has it.
pub fn choices_of(
    name: &str,
    n: usize,
    rules: &Rules,
    schedule: &[Line],
) -> Result<Vec<StepChoice>, String> {
    let mut choices = Vec::new();
    for line in schedule {
        let here = tell(name, n, rules, &choices)?.pop().ok_or("a story has a beginning")?;
        let same = |(choice, what): &&(StepChoice, String)| {
            choice.process == line.process && *what == line.what
        };
        let (choice, _) =
            here.choices.iter().find(same).ok_or("the schedule cannot be followed")?;
        choices.push(*choice);
    }
    Ok(choices)
}

fn walk(model: &ProcessModel<'_>, choices: &[StepChoice]) -> Result<Vec<Moment>, String> {
    let mut row = model.first_row();
    let mut moments = Vec::new();
    let mut line = None;
    for choice in choices {
        let here = moment(model, &row, line.take());
        let ordinal =
            here.choices.iter().position(|(other, _)| other == choice).ok_or_else(|| {
                format!(
                    "step {}: process {} cannot take this step",
                    moments.len() + 1,
                    choice.process
                )
            })?;
        if !here.right {
            return Err(format!("step {}: the story has ended: two are inside", moments.len() + 1));
        }
        moments.push(here);
        let (told, next) =
            schedule::line(model, &row, model.describe_steps(&row).swap_remove(ordinal));
        line = Some(told);
        row = next;
    }
    moments.push(moment(model, &row, line));
    Ok(moments)
}

fn moment(model: &ProcessModel<'_>, row: &Row, line: Option<Line>) -> Moment {
    let mut choices: Vec<(StepChoice, String)> = Vec::new();
    for (process, what, _) in model.describe_steps(row) {
        let which = choices.iter().filter(|(choice, _)| choice.process == process).count();
        choices.push((StepChoice { process, which }, what));
    }
    let places = (0..model.n()).map(|i| (model.place(row, i), model.section(row, i)));
    Moment {
        places: places.collect(),
        registers: model.registers(row),
        buffers: (0..model.n()).map(|i| model.waiting_writes(row, i)).collect(),
        choices,
        right: model.is_right(row),
        line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(buffers: bool, turns: &[(usize, usize)]) -> Vec<Moment> {
        let rules = Rules { buffers, dropped: "ab".into(), ..Rules::default() };
        let choices: Vec<StepChoice> =
            turns.iter().map(|&(process, which)| StepChoice { process, which }).collect();
        tell("peterson", 2, &rules, &choices).unwrap()
    }

    #[test]
    fn a_moment_has_the_writes_that_wait_in_each_buffer() {
        let moments = told(true, &[(0, 0), (0, 0), (1, 0), (0, 1)]);
        let shown = |moment: &Moment| -> Vec<String> {
            let text = |(name, value): &(String, usize)| format!("{name} := {value}");
            let texts = |writes: &Vec<_>| writes.iter().map(text).collect::<Vec<_>>().join(", ");
            moment.buffers.iter().map(texts).collect()
        };
        assert_eq!(shown(&moments[0]), ["", ""]);
        assert_eq!(shown(&moments[2]), ["flag[0] := 1, turn := 1", ""]);
        assert_eq!(shown(&moments[3]), ["flag[0] := 1, turn := 1", "flag[1] := 1"]);
        // The oldest write reaches the memory.
        assert_eq!(shown(&moments[4]), ["turn := 1", "flag[1] := 1"]);
        assert_eq!(moments[3].registers[0], ("flag[0]".into(), 0));
        assert_eq!(moments[4].registers[0], ("flag[0]".into(), 1));
        let of_memory = |moment: &Moment| moment.line.as_ref().is_some_and(Line::is_of_memory);
        assert!(!of_memory(&moments[3]) && of_memory(&moments[4]));
    }

    #[test]
    fn without_store_buffers_no_write_waits() {
        let moments = told(false, &[(0, 0), (0, 0), (1, 0)]);
        assert!(moments.iter().all(|moment| moment.buffers == [[], []]));
    }
}

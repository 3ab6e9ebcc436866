//! An algorithm as a model for the search: its states, and the steps between them.

use std::string::String;
use std::vec::Vec;

use doorway_search::{ClientEvent, Model, Successors, Tag, fingerprint};

use super::memory::{Layout, ModelMemory, Row, Stop, WORDS};
use super::program::Program;
use super::{MAX_PROCESSES, Rules};
use crate::{Info, Process, Section, Word};

/// An algorithm for a number of processes, under these rules.
pub(super) struct ProcessModel<'a> {
    program: Program,
    layout: Layout,
    rules: &'a Rules,
}

/// A step that can be taken.
struct Step<'s> {
    process: usize,
    /// The state that it leads to; `None` if that is beyond the bound.
    next: Option<&'s Row>,
    client_event: ClientEvent,
    /// Whether weak fairness demands that it is taken if it stays possible.
    due: bool,
    /// What it does, in words, if that was asked for.
    said: String,
}

impl<'a> ProcessModel<'a> {
    pub(super) fn new(program: Program, n: usize, rules: &'a Rules) -> Self {
        Self { program, layout: Layout::new(&program, n, rules), rules }
    }

    /// What the algorithm declares.
    pub(super) fn info(&self) -> &'static Info {
        self.program.info
    }

    /// The number of processes.
    pub(super) fn n(&self) -> usize {
        self.layout.n
    }

    /// Whether the state fits into a row.
    pub(super) fn fits(&self) -> bool {
        self.layout.fits()
    }

    /// The first state.
    pub(super) fn first_row(&self) -> Row {
        self.layout.first(&self.program)
    }

    /// The section that a process is in.
    pub(super) fn section(&self, row: &Row, i: usize) -> Section {
        self.program.section(self.layout.at(row, i))
    }

    /// The place that a process is at, as text.
    pub(super) fn place(&self, row: &Row, i: usize) -> String {
        (self.program.text)(self.layout.at(row, i))
    }

    /// Every register with its value.
    pub(super) fn registers(&self, row: &Row) -> Vec<(String, Word)> {
        self.layout.registers(row)
    }

    /// The writes of a process that wait in its store buffer, the oldest first.
    pub(super) fn waiting_writes(&self, row: &Row, i: usize) -> Vec<(String, Word)> {
        self.layout.waiting_writes(row, i)
    }

    /// For each step that can be taken, its process if weak fairness demands the step.
    pub(super) fn duties(&self, row: &Row) -> Vec<Option<usize>> {
        let mut duties = Vec::new();
        self.steps(row, false, |step| duties.push(step.due.then_some(step.process)));
        duties
    }

    /// Every step that can be taken: its process, what it does, and the next state.
    pub(super) fn describe_steps(&self, row: &Row) -> Vec<(usize, String, Row)> {
        let mut described = Vec::new();
        self.steps(row, true, |step| {
            described.push((step.process, step.said, *step.next.unwrap_or(row)));
        });
        described
    }

    /// The words of a row that the search keeps.
    fn words(&self, row: &Row) -> [u32; WORDS] {
        let mut words = [0; WORDS];
        let bytes = row.0.as_chunks().0;
        for (word, bytes) in words.iter_mut().zip(bytes).take(self.layout.width()) {
            *word = u32::from_le_bytes(*bytes);
        }
        words
    }

    /// Whether all processes that are inside may be inside together.
    pub(super) fn is_right(&self, row: &Row) -> bool {
        let mut inside = [0; MAX_PROCESSES];
        let places = (0..self.layout.n).map(|i| self.layout.at(row, i));
        let mut count = 0;
        for at in places.filter(|at| self.program.section(*at) == Section::Inside) {
            inside[count] = at;
            count += 1;
        }
        self.program.may_be_together(&inside[..count])
    }

    /// Call `found` with every step that can be taken, in an order that depends only on the row.
    fn steps(&self, row: &Row, telling: bool, mut found: impl FnMut(Step<'_>)) {
        let used = 4 * self.layout.width();
        let mut next = *row;
        for i in 0..self.layout.n {
            let (mut heir, mut heirs) = (0, 1);
            while heir < heirs {
                let mut memory = self.memory(&mut next, i, heir, telling);
                self.step(&mut memory, &mut found);
                heirs = memory.heirs;
                heir += 1;
                next.0[..used].copy_from_slice(&row.0[..used]);
            }
            if self.rules.buffers {
                let mut memory = self.memory(&mut next, i, 0, telling);
                if memory.flush() {
                    let (said, next) = (memory.log.take().unwrap_or_default(), Some(&*memory.row));
                    found(Step {
                        process: i,
                        next,
                        client_event: ClientEvent::None,
                        due: true,
                        said,
                    });
                }
                next.0[..used].copy_from_slice(&row.0[..used]);
            }
        }
    }

    /// Take the step of the process that sees this memory.
    fn step(&self, memory: &mut ModelMemory<'_>, found: &mut impl FnMut(Step<'_>)) {
        let me = Process { i: memory.i, n: self.layout.n };
        let before = self.layout.at(memory.row, me.i);
        let after = (self.program.step)(before, me, memory);
        if memory.stop == Some(Stop::Blocked) {
            return;
        }
        let before = self.program.section(before);
        let due = before != Section::Outside;
        let mut report = |after: u64, said: String| {
            self.layout.put(memory.row, me.i, after);
            let next = (memory.stop != Some(Stop::Beyond)).then_some(&*memory.row);
            let client_event = client_event(before, self.program.section(after));
            found(Step { process: me.i, next, client_event, due, said });
        };
        let said = memory.log.take().unwrap_or_default();
        let gives_up = self.program.withdraw.filter(|_| memory.waited);
        let said_again = gives_up.map(|_| said.clone() + ", gives up");
        report(after, said);
        if let Some((withdraw, said)) = gives_up.zip(said_again) {
            report(withdraw(after), said);
        }
    }

    fn memory<'m>(
        &'m self,
        row: &'m mut Row,
        i: usize,
        heir: usize,
        telling: bool,
    ) -> ModelMemory<'m> {
        let (layout, rules, log) = (&self.layout, self.rules, telling.then(String::new));
        let (heirs, waited, stop) = (0, false, None);
        ModelMemory { layout, rules, row, i, heir, heirs, waited, stop, log }
    }
}

impl Model for ProcessModel<'_> {
    fn width(&self) -> usize {
        self.layout.width()
    }

    fn first(&self) -> (Vec<u32>, u64) {
        let words = self.words(&self.first_row())[..self.width()].to_vec();
        let print = fingerprint(&words);
        (words, print)
    }

    fn expand(&self, row: &[u32], _print: u64, out: &mut Successors) {
        let row = unpack(row);
        if !self.is_right(&row) {
            out.is_broken();
        }
        self.steps(&row, false, |step| match step.next {
            None => out.leave(),
            Some(next) => {
                let words = self.words(next);
                let words = &words[..self.layout.width()];
                out.push(words, fingerprint(words), Tag::new(step.process, step.client_event, 0));
            }
        });
    }
}

/// The state that a row of the search stands for.
pub(super) fn unpack(words: &[u32]) -> Row {
    let mut row = Row::default();
    for (bytes, word) in row.0.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    row
}

/// What a step from one section to another means for the statistics of waiting.
fn client_event(before: Section, after: Section) -> ClientEvent {
    match (before, after) {
        (Section::Outside, Section::Inside) => ClientEvent::AskedAndEntered,
        (Section::Outside, Section::Doorway | Section::Waiting) => ClientEvent::Asked,
        (Section::Doorway | Section::Waiting, Section::Inside) => ClientEvent::Entered,
        _ => ClientEvent::None,
    }
}

//! What a check has found, as text and as JSON.

use std::io::{self, Write};

use doorway_lab::pictures::{self, Lanes, Step, Stretch};
use doorway_page::lab::Schedule;
use doorway_threads::check::{Line, Report, Rules, tell};
use doorway_threads::{Bypass, Claims, Section, Since, Word};
use indicatif::{HumanBytes, HumanCount};
use serde::Serialize;
use serde_json::Value;

use super::check::{Answer, Memory, Question};
use super::{ClaimRecord, bypass_text, bypass_values, letters};
use crate::checking::{Stop, rate};
use crate::finding::{above, refuted_but_holds};
use crate::table::Table;

/// The most steps of a run that is drawn because nothing is violated.
const MOST_TURNS: usize = 150;

/// A question and its answer.
pub(super) struct Finding<'a> {
    question: &'a Question,
    answer: Answer,
}

/// The answer as JSON, under names that scripts rely on.
#[derive(Serialize)]
pub(super) struct Record {
    name: &'static str,
    n: usize,
    memory: &'static str,
    states: u64,
    exclusion: Option<bool>,
    deadlock_free: Option<bool>,
    lockout_free: Option<bool>,
    bypass_all: Value,
    bypass_one: Value,
    fifo: Option<bool>,
    schedule: Vec<String>,
    cycle: Vec<String>,
    verdict: &'static str,
    violated: Option<&'static str>,
    claimed: ClaimRecord,
    bypass_since: &'static str,
    dropped_fences: String,
    bound: Option<usize>,
    transitions: u64,
    depth: u32,
    seconds: f64,
    memory_bytes: u64,
    mix_up: f64,
    /// The command that finds a violation, if the algorithm is refuted but holds here.
    refuted_by: Option<String>,
}

impl<'a> Finding<'a> {
    pub(super) fn new(question: &'a Question, answer: Answer) -> Self {
        Self { question, answer }
    }

    fn claims(&self) -> &'static Claims {
        &self.question.info.claims
    }

    /// What is violated: exclusion or the absence of deadlock in any case, or anything else that is
    /// claimed.
    pub(super) fn violated(&self) -> Option<&'static str> {
        let (report, claims, n) = (&self.answer.report, self.claims(), self.question.n);
        let refuted = |found: Option<bool>| found == Some(false);
        if refuted(report.exclusion) {
            Some("exclusion: two processes are inside at once")
        } else if refuted(report.deadlock_free) {
            Some("deadlock freedom: some processes want in, and none ever gets in")
        } else if refuted(report.lockout_free) && (claims.lockout_free)(n) {
            Some("lockout freedom: a process wants in and never gets in")
        } else if refuted(report.fifo) && (claims.fifo)(n) {
            Some("first come, first served")
        } else if !report.meets(claims, n) {
            Some("bypass: a process is overtaken more often than is claimed")
        } else {
            None
        }
    }

    /// Why the check gave up.
    pub(super) fn stop(&self) -> Option<String> {
        let limit = self.question.limit;
        Some(match self.answer.stop? {
            Stop::Person => "stopped by Ctrl-C".to_owned(),
            _ if self.answer.report.progress.states > limit => {
                format!("there are more than {} states, the --limit", HumanCount(limit))
            }
            _ => "there are more steps than can be numbered".to_owned(),
        })
    }

    /// The schedule that shows a violation, as the page opens it; none if nothing is violated.
    pub(super) fn schedule(&self) -> Result<Option<Schedule>, String> {
        let Self { question, answer: Answer { report, .. } } = self;
        let (lines, cycle) = (&report.schedule, &report.cycle);
        if lines.is_empty() && cycle.is_empty() {
            return Ok(None);
        }
        let buffers = question.memory == Memory::Tso;
        let (name, n) = (question.info.name, question.n);
        Schedule::new(name, n, buffers, &question.dropped, lines, cycle).map(Some)
    }

    /// The verdict in a word.
    fn verdict(&self) -> &'static str {
        match (self.violated(), self.answer.stop) {
            (Some(_), _) => "violated",
            (None, Some(_)) => "not exhausted",
            (None, None) => "holds",
        }
    }

    pub(super) fn record(&self) -> Record {
        let Self { question, answer: Answer { report, seconds, .. } } = self;
        let progress = report.progress;
        let (bypass_all, bypass_one) = bypass_values(report.bypass);
        let told = |lines: &[Line]| lines.iter().map(Line::to_string).collect();
        Record {
            name: question.info.name,
            n: question.n,
            memory: match question.memory {
                Memory::Sc => "sc",
                Memory::Tso => "tso",
            },
            states: progress.states,
            exclusion: report.exclusion,
            deadlock_free: report.deadlock_free,
            lockout_free: report.lockout_free,
            bypass_all,
            bypass_one,
            fifo: report.fifo,
            schedule: told(&report.schedule),
            cycle: told(&report.cycle),
            verdict: self.verdict(),
            violated: self.violated(),
            claimed: ClaimRecord::new(self.claims(), question.n),
            bypass_since: self.claims().since.name(),
            dropped_fences: question.dropped.clone(),
            bound: report.bound,
            transitions: progress.steps,
            depth: progress.depth,
            seconds: *seconds,
            memory_bytes: progress.bytes,
            mix_up: report.mix_up(),
            refuted_by: self.refuted_elsewhere().map(|fewest| self.refutation(fewest)),
        }
    }

    /// The least number of processes for which a refuted algorithm fails, if the check found that
    /// it holds here.
    fn refuted_elsewhere(&self) -> Option<usize> {
        let holds = self.violated().is_none() && self.answer.stop.is_none();
        self.question.info.refuted_from.filter(|_| holds)
    }

    /// The command that finds a violation.
    fn refutation(&self, fewest: usize) -> String {
        format!("doorway threads check {} -n {fewest}", self.question.info.name)
    }

    /// Print what was found beside what is claimed, and a schedule that shows the worst of it.
    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let verdict = match self.refuted_elsewhere() {
            None => self.verdict().to_owned(),
            Some(fewest) => refuted_but_holds(&format!("{fewest} processes")),
        };
        writeln!(out, "{verdict}: {}", self.subject())?;
        self.properties().print(out, 2)?;
        writeln!(out)?;
        self.figures().print_body(out, 2)?;
        let Report { schedule, cycle, .. } = &self.answer.report;
        for (nth, line) in schedule.iter().chain(cycle).enumerate() {
            if nth == 0 {
                writeln!(out)?;
            }
            if nth == schedule.len() {
                writeln!(out, "and then for ever:")?;
            }
            writeln!(out, "  {:>4}  {line}", nth + 1)?;
        }
        if self.is_standstill() {
            writeln!(out, "and now no process that is not outside can take a step.")?;
        }
        Ok(())
    }

    /// The schedule as a picture: one that shows what is violated, or if there is none, one in
    /// which the processes take turns.
    pub(super) fn picture(&self) -> Result<String, String> {
        let Report { schedule, cycle, .. } = &self.answer.report;
        if !self.has_schedule() {
            let ending = "no violation was found; here the processes take turns".to_owned();
            return Ok(self.lanes(&self.turns()?, None, ending));
        }
        let lines: Vec<Line> = schedule.iter().chain(cycle).cloned().collect();
        let ending = self.violated().map_or_else(String::new, |what| format!("violated: {what}"));
        Ok(self.lanes(&lines, (!cycle.is_empty()).then_some(schedule.len()), ending))
    }

    /// Whether the check has found a schedule to show.
    pub(super) fn has_schedule(&self) -> bool {
        let Report { schedule, cycle, .. } = &self.answer.report;
        !schedule.is_empty() || !cycle.is_empty()
    }

    /// A run in which one process after the other takes a step, until each has entered and is
    /// outside again, or for as long as a picture has room.
    fn turns(&self) -> Result<Vec<Line>, String> {
        let Question { info, n, memory, dropped, .. } = self.question;
        let buffers = *memory == Memory::Tso;
        let rules = Rules { buffers, dropped: dropped.clone(), ..Rules::default() };
        let (mut choices, mut entered) = (Vec::new(), vec![false; *n]);
        loop {
            let told = tell(info.name, *n, &rules, &choices)?;
            let here = told.last().ok_or("a story has a beginning")?;
            if let Some(line) = &here.line {
                entered[line.process] |= line.enters;
            }
            let next = (0..*n).map(|turn| (choices.len() + turn) % n).find_map(|process| {
                let is_done = entered[process] && here.places[process].1 == Section::Outside;
                let mut possible = here.choices.iter().map(|(choice, _)| *choice);
                possible.find(|choice| choice.process == process).filter(|_| !is_done)
            });
            match next {
                Some(choice) if choices.len() < MOST_TURNS => choices.push(choice),
                _ => return Ok(told.into_iter().filter_map(|moment| moment.line).collect()),
            }
        }
    }

    /// A picture of these steps, with a lane for each process.
    fn lanes(&self, lines: &[Line], cycle: Option<usize>, ending: String) -> String {
        let registers = &self.answer.report.registers;
        let step = |line: &Line| Step {
            process: line.process,
            text: line.what.clone() + if line.enters { ", enters" } else { "" },
            then: match line.section {
                Section::Outside => Stretch::Outside,
                Section::Doorway | Section::Waiting => Stretch::Waiting,
                Section::Inside => Stretch::Inside,
                Section::Leaving => Stretch::Leaving,
            },
            registers: line.values.iter().map(|value| shown(*value)).collect(),
        };
        pictures::lanes(&Lanes {
            title: self.subject(),
            processes: (0..self.question.n).map(|process| format!("P{process}")).collect(),
            registers: registers.iter().map(|(name, _)| name.clone()).collect(),
            first: registers.iter().map(|(_, first)| shown(*first)).collect(),
            steps: lines.iter().map(step).collect(),
            cycle,
            ending,
        })
    }

    /// Whether the schedule ends in a state in which no process can go on.
    fn is_standstill(&self) -> bool {
        let Report { exclusion, schedule, cycle, .. } = &self.answer.report;
        *exclusion == Some(true) && !schedule.is_empty() && cycle.is_empty()
    }

    /// The fences that were left out without harm because store buffers do not need them.
    fn spare_fences(&self) -> Option<String> {
        let Question { info, dropped, .. } = self.question;
        let spare = |fence: &char| info.fences_beyond_tso.contains(*fence);
        let spare: String = dropped.chars().filter(spare).collect();
        (self.answer.report.exclusion == Some(true) && !spare.is_empty()).then_some(spare)
    }

    /// What was checked, and on which memory.
    fn subject(&self) -> String {
        let Question { info, n, memory, dropped, .. } = self.question;
        let memory = match memory {
            Memory::Sc => "writes are seen at once".to_owned(),
            Memory::Tso if dropped.is_empty() => "writes are buffered".to_owned(),
            Memory::Tso => format!("writes are buffered, without fence {}", letters(dropped)),
        };
        format!("{}, {n} processes, {memory}", info.name)
    }

    /// A table of what was found of each property, beside what is claimed.
    fn properties(&self) -> Table {
        let (report, claims, n) = (&self.answer.report, self.claims(), self.question.n);
        let found = |found: Option<bool>| match found {
            None => "not decided",
            Some(true) => "yes",
            Some(false) => "no",
        };
        let claimed = |claimed: bool| if claimed { "yes" } else { "not claimed" };
        let mut table = Table::new(["", "found", "claimed"].map(str::to_owned));
        let mut row = |what: &str, found: &str, claimed: &str| {
            table.row([what, found, claimed].map(str::to_owned));
        };
        row("exclusion", found(report.exclusion), claimed(claims.exclusion));
        row("deadlock-free", found(report.deadlock_free), claimed(claims.deadlock_free));
        row("lockout-free", found(report.lockout_free), claimed((claims.lockout_free)(n)));
        row("first come, first served", found(report.fifo), claimed((claims.fifo)(n)));
        let since = match claims.since {
            Since::FirstStep => "overtaken",
            Since::Doorway => "overtaken after the doorway",
        };
        let bound = (claims.bypass)(n);
        let promised = match bound {
            Bypass::Unbounded => "no bound claimed".to_owned(),
            bound @ Bypass::AtMost { .. } => bypass_text(bound),
        };
        let overtaken = report.bypass.map_or_else(|| found(None).to_owned(), bypass_text);
        row(since, &overtaken, &promised);
        table
    }

    /// A table of the size and duration of the check.
    fn figures(&self) -> Table {
        let Answer { report, seconds, known_before, .. } = &self.answer;
        let progress = report.progress;
        let (states, steps) = (HumanCount(progress.states), HumanCount(progress.steps));
        let rate = HumanCount(rate(&progress, *known_before, *seconds) as u64);
        let memory = HumanBytes(progress.bytes);
        let mut table = Table::new([]);
        let mut row = |what: &str, text: String| table.row([what.to_owned(), text]);
        row("states", format!("{states}, {steps} transitions, depth {}", progress.depth));
        row("took", format!("{seconds:.2} s, {rate} states a second, {memory}"));
        if let Some(bound) = report.bound {
            row("numbers", format!("up to {bound}; what happens beyond is not looked at"));
        }
        if self.answer.stop.is_none() && report.exclusion == Some(true) {
            let told = "states are told apart by 64-bit fingerprints";
            let chance = above(report.mix_up());
            row(
                "certainty",
                format!("{told}; two were taken for one with a chance below {chance}"),
            );
        }
        if let Some(spare) = self.spare_fences() {
            let fences = if spare.len() == 1 { "fence" } else { "fences" };
            let why = "store buffers keep writes in order";
            row("note", format!("{why}, so x86 does not need {fences} {}", letters(&spare)));
            row("", "Rust promises less than x86 does, so the locks keep it".to_owned());
        }
        if let Some(fewest) = self.refuted_elsewhere() {
            row("it fails", self.refutation(fewest));
        }
        if let Some(stop) = self.stop() {
            row("no answer", format!("{stop}; this shows nothing"));
        }
        if let Some(violated) = self.violated() {
            row("violated", violated.to_owned());
        }
        table
    }
}

/// The value of a register; the largest one stands for none.
fn shown(value: Word) -> String {
    if value == Word::MAX { "-".to_owned() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorway_threads::algorithms::ALL;

    /// The text that is printed for this report.
    fn printed(report: Report) -> String {
        let question = Question::new(&ALL[0].info, 2, 1000);
        let finding =
            Finding::new(&question, Answer { report, seconds: 1.0, stop: None, known_before: 0 });
        let mut out = Vec::new();
        finding.print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn report(schedule: usize, cycle: usize) -> Report {
        let lines = |count| {
            let line = |nth| Line {
                process: nth % 2,
                what: format!("x := {nth}"),
                enters: false,
                section: Section::Waiting,
                values: Vec::new(),
            };
            (0..count).map(line).collect()
        };
        Report {
            progress: doorway_threads::check::Progress::default(),
            exhausted: true,
            bound: Some(7),
            exclusion: Some(true),
            deadlock_free: Some(false),
            lockout_free: Some(false),
            bypass: Some(Bypass::AtMost { all: 4, one: 2 }),
            fifo: Some(false),
            schedule: lines(schedule),
            cycle: lines(cycle),
            registers: Vec::new(),
        }
    }

    #[test]
    fn a_cycle_is_printed() {
        let text = printed(report(2, 1));
        let told =
            "\n\n     1  P0 x := 0\n     2  P1 x := 1\nand then for ever:\n     3  P0 x := 0\n";
        assert!(text.ends_with(told), "{text}");
        assert!(text.starts_with("violated: ") && text.contains("deadlock freedom: "), "{text}");
        assert!(text.contains("at most 4 by all, 2 by one") && text.contains("up to 7"), "{text}");
        let text = printed(report(0, 1));
        assert!(text.ends_with("\n\nand then for ever:\n     1  P0 x := 0\n"), "{text}");
    }

    #[test]
    fn a_standstill_is_printed() {
        let text = printed(report(1, 0));
        let end = "     1  P0 x := 0\nand now no process that is not outside can take a step.\n";
        assert!(text.ends_with(end), "{text}");
    }
}

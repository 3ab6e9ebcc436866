//! The page that `doorway threads check --table` writes: what is known of every algorithm.

use std::io::Write;

use doorway_threads::algorithms::{ALL, Entry, Task, with};
use doorway_threads::check::{Alone, Report, alone};
use doorway_threads::{Algorithm, Bypass, Since};
use indicatif::HumanCount;

use super::check::Question;
use super::letters_or_dash;
use super::list::served;
use crate::checking::Interrupt;
use crate::failure::NotExhausted;

/// The numbers of processes that locks are checked for; what is refuted may need more to show it.
const SIZES: &[usize] = &[2, 3];
const REFUTING_SIZES: &[usize] = &[2, 3, 4];

/// How many states a check may have.
const LIMIT: u64 = 2_000_000;

const OPENING: &str = "\
# What is known of the algorithms between threads

Written by `doorway threads check --table`, which goes through every schedule of two processes,
and of three where the algorithm serves so many; of what is refuted, also of four. Where they
differ, the answers for each number are given in turn.

*Registers*: those of one writer, and those that all write, which are called shared. *Needs*: what
the processor has to offer. *Fences*: the places where what was written must be seen by others
before anything else is read, by their letters in the text; without any one of them, two get in.
*Exclusion*: no two are inside at once. *Deadlock*: if some want in, one gets in. *Lockout*:
whoever wants in gets in. *Order*: who has passed the doorway before another begins gets in before
him. *Overtaken*: how often, at most, others enter while one waits, all of them together / any one
of them, counted from its first step, or from the end of its doorway (d). What is said of waiting
assumes that whoever is not outside keeps taking steps. *Alone*: the reads (r), writes (w),
exchanges (x) and fences (f) of an entry and exit that meet nobody. Where something breaks, the
number is the length of a schedule that shows it, the shortest where two get in; nothing else is
decided then (-). Where numbers grow, no schedule is followed beyond the one given with the
states.

";

const COLUMNS: [&str; 13] = [
    "algorithm",
    "origin",
    "n",
    "registers",
    "needs",
    "fences",
    "exclusion",
    "deadlock",
    "lockout",
    "order",
    "overtaken",
    "alone",
    "states",
];

/// Check everything, and write the page.
pub(super) fn print(out: &mut dyn Write, interrupt: &Interrupt) -> anyhow::Result<()> {
    out.write_all(OPENING.as_bytes())?;
    line(out, &COLUMNS.map(str::to_owned))?;
    line(out, &COLUMNS.map(|_| "---".to_owned()))?;
    for entry in ALL {
        let sizes = if entry.lock { SIZES } else { REFUTING_SIZES };
        let sizes = sizes.iter().copied().filter(|n| entry.info.serves(*n));
        let found: Result<Vec<Found>, _> = sizes.map(|n| Found::of(entry, n, interrupt)).collect();
        line(out, &row(entry, &found?))?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, cells: &[String]) -> anyhow::Result<()> {
    Ok(writeln!(out, "| {} |", cells.join(" | "))?)
}

/// What was found for one number of processes.
struct Found {
    report: Report,
    alone: Option<Alone>,
}

impl Found {
    fn of(entry: &'static Entry, n: usize, interrupt: &Interrupt) -> anyhow::Result<Self> {
        let info = &entry.info;
        let answer = Question::new(info, n, LIMIT).answer(interrupt)?;
        anyhow::ensure!(!interrupt.is_raised(), NotExhausted("stopped by Ctrl-C".to_owned()));
        let alone = entry.lock.then(|| with(info.name, Solo(n)).expect("a name of the list"));
        Ok(Self { report: answer.report, alone })
    }

    fn states(&self) -> String {
        let states = HumanCount(self.report.progress.states).to_string();
        if self.report.exhausted { states } else { format!("> {states}") }
    }

    fn exclusion(&self) -> String {
        match self.report.exclusion {
            Some(false) => format!("**no**: {}", self.report.schedule.len()),
            exclusion => verdict(exclusion),
        }
    }

    fn deadlock_free(&self) -> String {
        let Report { deadlock_free, schedule, cycle, .. } = &self.report;
        match deadlock_free {
            Some(false) => format!("**no**: {}", schedule.len() + cycle.len()),
            free => verdict(*free),
        }
    }

    fn overtaken(&self) -> String {
        match self.report.bypass {
            None => "-".to_owned(),
            Some(Bypass::Unbounded) => "unbounded".to_owned(),
            Some(Bypass::AtMost { all, one }) => format!("{all}/{one}"),
        }
    }

    fn alone(&self) -> String {
        let Some(alone) = self.alone else { return "-".to_owned() };
        let counts =
            [(alone.reads, "r"), (alone.writes, "w"), (alone.exchanges, "x"), (alone.fences, "f")];
        let some = counts.iter().filter(|(count, _)| *count > 0);
        some.map(|(count, what)| format!("{count}{what}")).collect::<Vec<_>>().join(" ")
    }
}

struct Solo(usize);

impl Task for Solo {
    type Output = Alone;

    fn run<A: Algorithm>(self) -> Alone {
        alone::<A>(self.0)
    }
}

fn verdict(found: Option<bool>) -> String {
    match found {
        None => "-",
        Some(true) => "yes",
        Some(false) => "no",
    }
    .to_owned()
}

fn row(Entry { info, lock, .. }: &Entry, found: &[Found]) -> Vec<String> {
    // One answer, if all sizes give the same.
    let cell = |of: &dyn Fn(&Found) -> String| {
        let mut answers: Vec<String> = found.iter().map(of).collect();
        if answers.iter().all(|answer| *answer == answers[0]) {
            answers.truncate(1);
        }
        answers.join("; ")
    };
    let since = match info.claims.since {
        Since::FirstStep => "",
        Since::Doorway => " (d)",
    };
    let bound = info.bound.map_or(String::new(), |bound| format!(" (up to {bound})"));
    vec![
        format!("{}`{}`", if *lock { "" } else { "**refuted**: " }, info.name),
        info.origin.to_owned(),
        served(info),
        info.registers.to_owned(),
        info.primitive.name().to_owned(),
        letters_or_dash(info.fences),
        cell(&Found::exclusion),
        cell(&Found::deadlock_free),
        cell(&|found| verdict(found.report.lockout_free)),
        cell(&|found| verdict(found.report.fifo)),
        cell(&Found::overtaken) + since,
        cell(&Found::alone),
        cell(&Found::states) + &bound,
    ]
}

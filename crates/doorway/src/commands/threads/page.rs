//! The page that `doorway threads check --table` writes: what is known of every algorithm.

use std::io::Write;

use doorway_threads::algorithms::{ALL, Entry, Task, with};
use doorway_threads::check::{Report, SoloAccesses, alone};
use doorway_threads::{Algorithm, Bypass, Info, Since};
use indicatif::HumanCount;

use super::check::Question;
use super::list::served;
use crate::checking::Interrupt;
use crate::failure::NotExhausted;

/// The numbers of processes that locks are checked for. A refuted algorithm may need more to show
/// it.
const SIZES: &[usize] = &[2, 3];
const REFUTING_SIZES: &[usize] = &[2, 3, 4];

/// The most states of a check.
const LIMIT: u64 = 2_000_000;

const OPENING: &str = "\
# What is known of the algorithms between threads

This page is written by `doorway threads check --table`, which explores every schedule of two
processes, of three if the algorithm serves three, and of four if the algorithm is refuted. Answers
that differ by the number of processes are given in that order, with semicolons between them.

- **algorithm**: the name that the commands take. An algorithm marked as refuted does not do what
  was claimed of it; it can be explored, and there is no lock of it.
- **n**: the number of processes that it serves. A plain n stands for any number up to 1024.
- **registers**: the memory that the processes share. In an algorithm that only loads and stores, a
  register that is called shared is written by all processes. Any other is written by one process,
  or in a tree by the processes on one side of a node.
- **needs**: what the processor or the operating system has to offer.
- **fences**: the places where a process makes its earlier writes visible to all others before it
  reads again, by their letters in the text of the algorithm. Where writes wait in a store buffer
  (total store order, as on x86), two processes can be inside at once without any one of these
  fences, except those in parentheses. Those in parentheses are needed only by the memory model of
  Rust, which is weaker.
- **exclusion**: no two processes are inside at once.
- **deadlock**: yes if there is none, so that one process gets in whenever some want in.
- **lockout**: yes if there is none, so that each process that wants in gets in.
- **order**: first come, first served. A process that has passed the doorway before another begins
  gets in before that other one.
- **overtaken**: how often, at most, others get in while one process waits: all others together /
  any single one of them. This is counted from the first step of the waiting process, or from the
  end of its doorway (d).
- **alone**: the reads (r), writes (w), exchanges (x) and fences (f) of an entry and exit while no
  other process wants in.
- **states**: how many different states were explored. With a limit in parentheses, the numbers of
  the algorithm grow without end, and no schedule is followed beyond that number.

The answers on deadlock, lockout and overtaking assume that every process that is not outside keeps
taking steps. The number after a **no** is the length of a schedule that shows it; for exclusion it
is a shortest one. If exclusion fails, nothing else is decided (-).

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
        let found: Result<Vec<SizeFinding>, _> =
            sizes.map(|n| SizeFinding::of(entry, n, interrupt)).collect();
        line(out, &row(entry, &found?))?;
    }
    Ok(())
}

fn line(out: &mut dyn Write, cells: &[String]) -> anyhow::Result<()> {
    Ok(writeln!(out, "| {} |", cells.join(" | "))?)
}

/// What was found for one number of processes.
struct SizeFinding {
    report: Report,
    alone: Option<SoloAccesses>,
}

impl SizeFinding {
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
    type Output = SoloAccesses;

    fn run<A: Algorithm>(self) -> SoloAccesses {
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

/// The letters of the fences; those that store buffers do not need are in parentheses.
fn fences(info: &Info) -> String {
    let shown = |fence: char| {
        if info.fences_beyond_tso.contains(fence) {
            format!("({fence})")
        } else {
            fence.to_string()
        }
    };
    match info.fences {
        "" => "-".to_owned(),
        fences => fences.chars().map(shown).collect::<Vec<_>>().join(", "),
    }
}

fn row(Entry { info, lock, .. }: &Entry, found: &[SizeFinding]) -> Vec<String> {
    // One answer is enough if all sizes give the same.
    let cell = |of: &dyn Fn(&SizeFinding) -> String| {
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
        fences(info),
        cell(&SizeFinding::exclusion),
        cell(&SizeFinding::deadlock_free),
        cell(&|found| verdict(found.report.lockout_free)),
        cell(&|found| verdict(found.report.fifo)),
        cell(&SizeFinding::overtaken) + since,
        cell(&SizeFinding::alone),
        cell(&SizeFinding::states) + &bound,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page says of each fence that store buffers need it, or that only the language does. That
    /// this is true of every algorithm is tested in the crate doorway-threads (fences, loom).
    #[test]
    fn fences_that_store_buffers_do_not_need_are_in_parentheses() {
        let cell = |name: &str| {
            let entry = ALL.iter().find(|entry| entry.info.name == name);
            fences(&entry.expect("a name of the list").info)
        };
        assert_eq!(["peterson", "dekker", "ticket"].map(cell), ["(a), b", "a, c", "-"]);
        let spare = ALL.iter().filter(|entry| fences(&entry.info).contains('('));
        let spare: Vec<_> = spare.map(|entry| entry.info.name).collect();
        assert_eq!(spare, ["peterson", "peterson-n", "peterson-tree"]);
    }
}

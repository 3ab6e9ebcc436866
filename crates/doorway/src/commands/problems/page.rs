//! The page that `doorway problems check --table` writes: what is known of every problem.

use std::io::Write;

use doorway_lab::numbers::grouped;
use doorway_lab::problems::buffer::{Buffer, Variant, items_per_delay};
use doorway_lab::problems::exchange::Faults;

use super::check::{Effort, Finding, answer};
use super::problem::{DaemonName, Problem, Question, RingKind, all};
use crate::checking::{Interrupt, cores};

const OPENING: &str = "\
# Problems besides mutual exclusion

This page is written by `doorway problems check --table`, which visits every state of each problem
at several sizes. `doorway problems list` names the problems, `show` draws a run, a counterexample
or the longest way home, and `run` lets them run.

- **Buffers by messages**: a producer and a consumer each own a counter and have a late image of the
  other's (`doorway_core::buffer`). Checked: no item is lost, doubled or taken for another, no image
  is ahead, the buffer never has more items than places, and from every state a way leads on by
  which all items are consumed. Producers of `buffer-locked` and `buffer-naive` have two items each.
  All others never stop; their counters grow, and the check makes them small again. The token of
  `buffer-token` and the messages of the lock are never lost or doubled.
- **Between threads**: every schedule. Checked: no two processes at one place, items in order, no
  process waits for ever. A unit of a semaphore goes to the process that has slept longest.
- **Rings**: all states, wherever the ring begins. Checked: every run reaches a state after which
  there is exactly one privilege, and it visits all machines. Where machines move one at a time or
  any number at once, the longest way to such a state is given.

";

/// The rows of one problem.
fn questions(problem: &Problem) -> Vec<Question> {
    let usual = Question::usual(problem);
    match usual {
        Question::Buffer(buffer) => buffers(buffer).into_iter().map(Question::Buffer).collect(),
        Question::ThreadBuffer { .. } => [(1, 1, 2), (2, 1, 2), (3, 1, 2), (2, 1, 3), (2, 2, 4)]
            .map(|(slots, senders, n)| Question::ThreadBuffer { slots, senders, n })
            .into(),
        Question::ReadersWriters { .. } => [(1, 2), (1, 3), (2, 3), (2, 4), (2, 5)]
            .map(|(writers, n)| Question::ReadersWriters { writers, n })
            .into(),
        Question::Ring { kind, .. } => rings(kind),
    }
}

fn buffers(usual: Buffer) -> Vec<Buffer> {
    let with = |capacity, producers| Buffer { capacity, producers, ..usual };
    let faults = |faults| Buffer { faults, ..usual };
    let unordered = Faults { overtake: true, ..Faults::NONE };
    match usual.variant {
        Variant::Pair => vec![
            with(1, 1),
            with(2, 1),
            with(3, 1),
            faults(Faults::NONE),
            faults(unordered),
            faults(Faults { crash: true, ..Faults::NONE }),
            faults(Faults { crash: true, ..Faults::ALL }),
            // Without sending again, one lost message can be too many.
            faults(Faults { lose: true, ..unordered }),
        ],
        Variant::Split => vec![with(2, 2), with(3, 2), with(3, 3)],
        Variant::Token => vec![with(1, 2), with(2, 2), with(1, 3)],
        Variant::Locked => {
            vec![with(1, 2), with(2, 2), Buffer { faults: Faults::ALL, ..with(1, 2) }]
        }
        Variant::Naive => vec![with(1, 1), with(1, 2), with(2, 2), with(2, 3)],
    }
}

fn rings(kind: RingKind) -> Vec<Question> {
    use DaemonName::{Central, Distributed, ReadWrite};
    let ring = |n, states, daemon| Question::Ring { kind, n, states, daemon };
    let states = |n| match kind {
        RingKind::K => n,
        RingKind::Four => 4,
        RingKind::Three => 3,
    };
    let mut rows: Vec<_> = (3..=6).map(|n| ring(n, states(n), Central)).collect();
    if kind == RingKind::K {
        rows.extend([ring(5, 4, Central), ring(5, 3, Central), ring(4, 3, Distributed)]);
        rows.extend([ring(3, 5, ReadWrite), ring(3, 4, ReadWrite)]);
    }
    rows.extend([ring(4, states(4), Distributed)]);
    if kind != RingKind::K {
        rows.push(ring(3, states(3), ReadWrite));
    }
    rows
}

/// The most states of a row.
const LIMIT: u64 = 5_000_000;

/// Check everything, and write the page.
pub(super) fn print(out: &mut dyn Write) -> anyhow::Result<()> {
    out.write_all(OPENING.as_bytes())?;
    writeln!(out, "| problem | question | verdict | states | also |\n|---|---|---|--:|---|")?;
    let effort = Effort { limit: LIMIT, threads: cores(), interrupt: &Interrupt::default() };
    for problem in all() {
        for question in questions(&problem) {
            let finding = answer(problem.name, &question, &effort)?;
            writeln!(out, "{}", row(&problem, &finding))?;
        }
    }
    pace(out)
}

fn row(problem: &Problem, finding: &Finding) -> String {
    let refuted = if problem.refuted().is_some() { "**refuted**: " } else { "" };
    let mut verdict = finding.verdict();
    if finding.violated.is_some() && !finding.path.is_empty() {
        verdict = format!("**{verdict}**");
    }
    let facts: Vec<_> =
        finding.facts.iter().map(|(what, value)| format!("{what}: {value}")).collect();
    format!(
        "| {refuted}`{}` | {} | {verdict} | {} | {} |",
        finding.problem,
        finding.question,
        grouped(finding.states),
        facts.join(", ")
    )
}

/// How fast items pass, by the capacity.
fn pace(out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(
        out,
        "\n## The capacity is a window\n\nEach item needs one ITEM and one CREDIT, and a place is \
         free again after a round trip. So a\nbuffer of C places passes at most C items in a round \
         trip, two message delays. Measured with\n`doorway_core::buffer` where producing and \
         consuming take a thousandth of a message delay each:\n\n\
         | places | items in a message delay |\n|--:|--:|"
    )?;
    for capacity in [1, 2, 4, 8, 16, 64, 1024, 4096] {
        let pace = items_per_delay(capacity, 0.001, 1_000.0);
        writeln!(out, "| {} | {pace:.1} |", grouped(capacity))?;
    }
    Ok(out.write_all(OVER_A_LINK.as_bytes())?)
}

/// Where the buffer is measured over a link: a measurement does not belong on a generated page.
const OVER_A_LINK: &str = "
## Over a real link

The example `buffer` of `doorway-node` passes the lines of a file between two processes, over TCP on
this machine. With one place it is a window of one: each line waits for the credit of the line
before.

```sh
cargo build -p doorway-node --example buffer
target/debug/examples/buffer consume 127.0.0.1:7500 out.txt 256 &
target/debug/examples/buffer produce 127.0.0.1:7500 in.txt 256
```

`cargo xtask bench buffer` measures it with 1, 16 and 256 places, and
[benchmarks.md](benchmarks.md#a-buffer-over-a-link) has the results.
";

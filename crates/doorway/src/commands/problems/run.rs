//! `doorway problems run`: lets a problem run, on real threads or with messages that take a time.

use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doorway_lab::numbers::{grouped, short};
use doorway_lab::problems::buffer::{Buffer, Variant, items_per_delay};
use doorway_lab::trace::EventKind;
use doorway_threads::problems::{Buffer as ThreadBuffer, ReadersWriters};
use doorway_threads::ring::TokenRing;
use serde::Serialize;

use super::problem::{Problem, ProblemArgs, Question, RingKind};
use super::ring_walk;
use super::show::parse_steps;
use crate::commands::print_json;
use crate::failure::Usage;
use crate::names;
use crate::numbers::whole;
use crate::table::Table;

const EXAMPLES: &str = "\
Examples:
  doorway problems run buffer-pair --capacity 8
  doorway problems run buffer-threads --seconds 2
  doorway problems run ring-k-state -n 6
  doorway problems run ring-three-state -n 6 --seed 7";

/// Run a problem and count: random steps of buffers by messages and of rings of four and three
/// states, real threads for the others
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The problem (`doorway problems list` shows them all)
    #[arg(value_name = "NAME", value_parser = names::problems(), hide_possible_values = true)]
    problem: Problem,
    #[command(flatten)]
    options: ProblemArgs,
    /// Choose the random run; the same seed gives the same random steps
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    seed: u64,
    /// Take this number of random steps, at most 10000
    #[arg(long, value_name = "STEPS", default_value_t = 2_000, value_parser = parse_steps)]
    steps: usize,
    /// Let threads run for this number of seconds, at most 3600
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = parse_seconds)]
    seconds: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_seconds(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=3_600).contains(number));
    number.ok_or_else(|| "say 1 to 3600 seconds".to_owned())
}

/// What a run has counted, each as a name and a number.
#[derive(Serialize)]
struct RunCounts {
    problem: &'static str,
    question: String,
    counts: Vec<(&'static str, f64)>,
}

/// Run the problem and print what was counted. A violation is a failure.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let question = args.options.question(&args.problem)?;
    let time = Duration::from_secs(args.seconds);
    let (counts, wrong) = match question {
        Question::Buffer(buffer) => walk(&buffer, args.seed, args.steps)?,
        Question::ThreadBuffer { slots, senders, n } => buffer(slots, senders, n, time)?,
        Question::ReadersWriters { writers, n } => readers_writers(writers, n, time),
        Question::Ring { kind: RingKind::K, n, .. } => ring(n, args.seed, time)?,
        Question::Ring { kind, n, daemon, .. } => {
            ring_walk::walk(kind, n, daemon, args.seed, args.steps)?
        }
    };
    let counted = RunCounts { problem: args.problem.name, question: question.words(), counts };
    if args.json {
        print_json(out, &counted)?;
    } else {
        writeln!(out, "{}: {}", counted.problem, counted.question)?;
        let mut table = Table::new([]);
        for (what, count) in &counted.counts {
            let count = if count.fract() == 0.0 { grouped(*count as u64) } else { short(*count) };
            table.row([(*what).to_owned(), count]);
        }
        table.print_body(out, 2)?;
    }
    out.flush()?;
    wrong.map_or(Ok(()), |wrong| Err(anyhow::anyhow!("{}: {wrong}", args.problem.name)))
}

/// What was counted, and what went wrong if something did.
pub(super) type Outcome = (Vec<(&'static str, f64)>, Option<String>);

/// Random steps of a buffer by messages, and how fast items pass by its capacity.
fn walk(buffer: &Buffer, seed: u64, steps: usize) -> anyhow::Result<Outcome> {
    let trace = buffer.walk(seed, steps).map_err(Usage)?;
    let count = |wanted: &dyn Fn(&EventKind) -> bool| {
        trace.events.iter().filter(|event| wanted(&event.what)).count() as f64
    };
    let acts = |text: &str| {
        count(&|what| match what {
            EventKind::Act(action) => action.starts_with(text),
            _ => false,
        })
    };
    let sends = |name: &str| {
        count(&|what| match what {
            EventKind::Send { message, .. } => message.contains(name),
            _ => false,
        })
    };
    let mut counts = vec![
        ("items produced", acts("produces")),
        ("items consumed", acts("consumes")),
        ("crashes", acts("crashes")),
        ("messages sent", count(&|what| matches!(what, EventKind::Send { .. }))),
        ("of these items", sends("Item")),
        ("of these credits", sends("Credit")),
        ("messages lost", count(&|what| matches!(what, EventKind::Lose { .. }))),
        ("messages received", count(&|what| matches!(what, EventKind::Receive { .. }))),
    ];
    if buffer.variant == Variant::Pair {
        // Producing and consuming take a thousandth of the time of a message.
        let pace = |capacity| items_per_delay(capacity, 0.001, 1_000.0);
        counts.push(("items in the time of a message", pace(buffer.capacity)));
        counts.push(("the same with one place", pace(1)));
    }
    let wrong = trace.events.iter().find_map(|event| match &event.what {
        EventKind::Violate(violation) => Some(violation.to_string()),
        _ => None,
    });
    Ok((counts, wrong))
}

/// Senders and receivers on real threads. Each sender numbers its items, and each receiver checks
/// that those of one sender come in order.
fn buffer(slots: usize, senders: usize, n: usize, time: Duration) -> anyhow::Result<Outcome> {
    let paced = |slots: usize| -> anyhow::Result<(f64, u64)> {
        let buffer = ThreadBuffer::new(slots).map_err(|error| Usage(error.to_string()))?;
        let (received, wrong) = (AtomicU64::new(0), AtomicU64::new(0));
        let end = Instant::now() + time;
        thread::scope(|scope| {
            let sending: Vec<_> = (0..senders)
                .map(|sender| {
                    let buffer = &buffer;
                    scope.spawn(move || {
                        let mut number = 0_u64;
                        while Instant::now() < end {
                            buffer.send(Some((sender, number)));
                            number += 1;
                        }
                    })
                })
                .collect();
            for _ in senders..n {
                scope.spawn(|| {
                    let mut last = vec![None; senders];
                    while let Some((sender, number)) = buffer.receive() {
                        let late = last[sender].is_some_and(|last| number <= last);
                        wrong.fetch_add(u64::from(late), Ordering::Relaxed);
                        last[sender] = Some(number);
                        received.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for sender in sending {
                let _ = sender.join();
            }
            (senders..n).for_each(|_| buffer.send(None)); // Each receiver ends.
        });
        let received = received.into_inner() as f64;
        Ok((received / time.as_secs_f64(), wrong.into_inner()))
    };
    let (rate, wrong) = paced(slots)?;
    let (one, also) = paced(1)?;
    let counts = vec![("items a second", rate.round()), ("the same with one place", one.round())];
    let wrong = (wrong + also > 0).then(|| format!("{} items came too late", wrong + also));
    Ok((counts, wrong))
}

/// Readers and writers on real threads. A writer leaves two numbers equal; a reader that finds them
/// different was inside together with a writer.
fn readers_writers(writers: usize, n: usize, time: Duration) -> Outcome {
    let value = ReadersWriters::new((0_u64, 0_u64));
    let (read, written, wrong) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let end = Instant::now() + time;
    thread::scope(|scope| {
        for number in 0..n {
            let (value, read, written, wrong) = (&value, &read, &written, &wrong);
            scope.spawn(move || {
                while Instant::now() < end {
                    if number < writers {
                        let mut pair = value.write();
                        pair.0 += 1;
                        thread::yield_now();
                        pair.1 += 1;
                        written.fetch_add(1, Ordering::Relaxed);
                    } else {
                        let pair = value.read();
                        wrong.fetch_add(u64::from(pair.0 != pair.1), Ordering::Relaxed);
                        read.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let second = |count: AtomicU64| (count.into_inner() as f64 / time.as_secs_f64()).round();
    let wrong = wrong.into_inner();
    let counts = vec![("reads a second", second(read)), ("writes a second", second(written))];
    (counts, (wrong > 0).then(|| format!("{wrong} readers were inside with a writer")))
}

/// A ring on real threads, which begins with arbitrary registers.
fn ring(n: usize, seed: u64, time: Duration) -> anyhow::Result<Outcome> {
    // Numbers that look random: each is made of the one before (splitmix64).
    let mut last = seed;
    let words: Vec<usize> = (0..n)
        .map(|_| {
            last = last.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (last ^ (last >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ (mixed >> 27)) as usize
        })
        .collect();
    let mut ring = TokenRing::holding(&words).map_err(|error| Usage(error.to_string()))?;
    let states = ring.states();
    let (privileged, moves, together) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    // The number of moves after which two stations were last seen privileged at the same time.
    let last_together = AtomicU64::new(0);
    let end = Instant::now() + time;
    thread::scope(|scope| {
        for mut station in ring.stations() {
            let (privileged, moves) = (&privileged, &moves);
            let (together, last_together) = (&together, &last_together);
            scope.spawn(move || {
                while Instant::now() < end {
                    let Some(privilege) = station.poll() else {
                        thread::yield_now();
                        continue;
                    };
                    let others = privileged.fetch_add(1, Ordering::SeqCst);
                    let made = moves.fetch_add(1, Ordering::SeqCst);
                    if others > 0 {
                        together.fetch_add(1, Ordering::SeqCst);
                        last_together.fetch_max(made, Ordering::SeqCst);
                    }
                    privileged.fetch_sub(1, Ordering::SeqCst);
                    drop(privilege);
                }
            });
        }
    });
    let (moves, last) = (moves.into_inner(), last_together.into_inner());
    let counts = vec![
        ("states of a machine on real memory", states as f64),
        ("moves", moves as f64),
        ("moves that met another privilege", together.into_inner() as f64),
        ("moves until the last of these", last as f64),
    ];
    // The first station moves at most K + 1 times until then, and each other station at most once
    // more than the one before it.
    let most = ((states + 1 + n) * n) as u64;
    let wrong = (last > most).then(|| format!("two privileges after {last} moves, not {most}"));
    Ok((counts, wrong))
}

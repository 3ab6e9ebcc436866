//! Runs seeds on all cores until a time is over or a run fails, and says how far it has got.

use std::num::NonZero;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doorway_simulation::{Counts, Outcome};

const HELP: &str = "\
Usage: soak [--for TIME] [--seed N] [--seeds N] [--threads N]
       soak --one SEED [--diagram FILE]

  --for TIME    run for this long, such as 90s, 10m or 1h; 1 minute unless said otherwise
  --seed N      begin with this seed instead of 0
  --seeds N     run this many seeds, however long that takes
  --threads N   use this many threads instead of one for each core
  --one SEED    run one seed and print everything that happens in it
  --diagram FILE
                draw the end of that run to this SVG file: who held what, and which messages came
";

/// How many lines of a failing run are shown.
const SHOWN: usize = 60;

/// What is to be run.
struct Job {
    seeds: Range<u64>,
    time: Option<Duration>,
    threads: usize,
}

/// What all threads have done.
#[derive(Default)]
struct Progress {
    next: AtomicU64,
    done: AtomicU64,
    counts: Mutex<Counts>,
    /// The lowest seed that failed, and why.
    failed: Mutex<Option<(u64, String)>>,
}

/// Make the run of a seed. A panic is a violation too.
fn run(seed: u64, logs: bool) -> Outcome {
    let done = std::panic::catch_unwind(|| doorway_simulation::run(seed, logs));
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        let violation = Some(format!("panic: {}", text.unwrap_or_default()));
        Outcome { counts: Counts::default(), violation, log: String::new() }
    })
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [one, seed] = &args[..]
        && one == "--one"
        && let Ok(seed) = seed.parse()
    {
        let outcome = run(seed, true);
        print!("{}", outcome.log);
        return ExitCode::from(u8::from(outcome.violation.is_some()));
    }
    if let [one, seed, diagram, path] = &args[..]
        && (one.as_str(), diagram.as_str()) == ("--one", "--diagram")
        && let Ok(seed) = seed.parse()
    {
        return draw(seed, path);
    }
    let Some(job) = parse(&args) else {
        eprint!("{HELP}");
        return ExitCode::from(2);
    };
    soak(&job)
}

/// Draw the run of a seed.
fn draw(seed: u64, path: &str) -> ExitCode {
    let Ok(picture) = std::panic::catch_unwind(|| doorway_simulation::draw(seed)) else {
        eprintln!("soak: seed {seed} panics, so there is no picture; see `--one {seed}`");
        return ExitCode::FAILURE;
    };
    match std::fs::write(path, picture) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("soak: cannot write {path}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: &[String]) -> Option<Job> {
    let (mut first, mut count, mut time, mut threads) = (0, None, None, None);
    for pair in args.chunks(2) {
        let [option, value] = pair else { return None };
        match option.as_str() {
            "--for" => time = Some(humantime::parse_duration(value).ok()?),
            "--seed" => first = value.parse().ok()?,
            "--seeds" => count = Some(value.parse::<u64>().ok()?),
            "--threads" => threads = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    let time = time.or(count.is_none().then_some(Duration::from_mins(1)));
    let seeds = first..count.map_or(u64::MAX, |count| first.saturating_add(count));
    let threads = threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get);
    Some(Job { seeds, time, threads })
}

fn soak(job: &Job) -> ExitCode {
    let began = Instant::now();
    let progress = Progress { next: AtomicU64::new(job.seeds.start), ..Progress::default() };
    let over = || job.time.is_some_and(|time| began.elapsed() >= time);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..job.threads)
            .map(|_| {
                scope.spawn(|| {
                    while !over() && progress.failure().is_none() {
                        let seed = progress.next.fetch_add(1, Ordering::Relaxed);
                        if seed >= job.seeds.end {
                            return;
                        }
                        progress.note(seed, &run(seed, false));
                    }
                })
            })
            .collect();
        let mut shown = Instant::now();
        while workers.iter().any(|worker| !worker.is_finished()) {
            thread::sleep(Duration::from_millis(100));
            if shown.elapsed() >= Duration::from_secs(5) {
                shown = Instant::now();
                println!("{}", progress.line(began.elapsed()));
            }
        }
    });
    println!("{}", progress.line(began.elapsed()));
    let Some((seed, violation)) = progress.failure() else { return ExitCode::SUCCESS };
    let log = run(seed, true).log;
    let lines: Vec<_> = log.lines().collect();
    println!("\nseed {seed} fails. Its last {SHOWN} events:");
    for line in &lines[lines.len().saturating_sub(SHOWN)..] {
        println!("{line}");
    }
    println!("\nFAILED: seed {seed}: {violation}");
    println!("To repeat it with its whole log: cargo xtask soak --one {seed}");
    println!("To draw its end: cargo xtask soak --one {seed} --diagram {seed}.svg");
    ExitCode::FAILURE
}

impl Progress {
    fn note(&self, seed: u64, outcome: &Outcome) {
        self.done.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut counts) = self.counts.lock() {
            *counts += outcome.counts;
        }
        if let (Some(violation), Ok(mut failed)) = (&outcome.violation, self.failed.lock())
            && failed.as_ref().is_none_or(|(known, _)| seed < *known)
        {
            *failed = Some((seed, violation.clone()));
        }
    }

    fn failure(&self) -> Option<(u64, String)> {
        self.failed.lock().ok().and_then(|failed| failed.clone())
    }

    fn line(&self, time: Duration) -> String {
        let counts = self.counts.lock().map(|counts| *counts).unwrap_or_default();
        format!(
            "{:>7.1} s: {} seeds, {:.2} simulated hours, {} entries ({} of kept locks, {} of locks \
             without end), {} faults, {} losses, {} broken, {} fenced off, {} events",
            time.as_secs_f64(),
            self.done.load(Ordering::Relaxed),
            counts.time as f64 / 3.6e12,
            counts.entries,
            counts.kept,
            counts.endless,
            counts.faults,
            counts.lost,
            counts.broken,
            counts.fenced,
            counts.events,
        )
    }
}

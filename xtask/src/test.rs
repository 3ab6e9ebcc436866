//! `cargo xtask test`: the one test command, stage by stage.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};

use crate::run::{ci, skips, target};
use crate::{dependencies, docs, files, programs, publish, tidy};

mod stages;
mod tools;

pub(crate) use tools::{have, venv};

/// How a stage ended, if it did not fail.
enum Outcome {
    Passed,
    /// Passed, with something that the reader should know.
    Noted(String),
    /// Did not run, because this is missing. With `CI=true` that is a failure.
    Skipped(String),
    /// Did not run, because this is missing, and no run can install it. That is never a failure.
    Unavailable(&'static str),
}

use Outcome::{Noted, Passed, Skipped, Unavailable};

type Stage = (&'static str, fn() -> anyhow::Result<Outcome>);

/// These come first, one after the other, the quick ones before the others.
const FIRST: [Stage; 6] = [
    ("tidy", || tidy::run().map(passed)),
    ("format", || format(true).map(passed)),
    ("dependencies: used, licensed, from crates.io", || dependencies::check().map(passed)),
    ("manifests, as for crates.io", || publish::check().map(passed)),
    ("lints", stages::lints),
    ("build of the tests", stages::build),
];

/// These run what was built.
const TESTS: [Stage; 3] = [
    ("tests", stages::tests),
    ("a group in network namespaces", stages::namespaces),
    ("advisories", stages::advisories),
];

/// These run what was built together with other programs. They wait for them most of the time, so
/// they run beside the tests.
const WITH_OTHERS: [Stage; 10] = [
    ("tests with Spin", stages::spin),
    ("tests with SQLite and PostgreSQL", stages::databases),
    ("tests with etcd", stages::etcd),
    ("tests with curl", stages::curl),
    ("tests with Terraform", stages::terraform),
    ("tests with Python", stages::python),
    ("tests with Schemathesis", stages::schemathesis),
    ("tests with Redis clients", stages::redis_clients),
    ("tests with etcd clients", stages::etcd_clients),
    ("tests with Chromium", stages::chromium),
];

/// These build something with cargo, one after the other, because cargo lets only one process build
/// in a directory. They do not care how long that takes. They run beside the tests, with low
/// priority, so that the tests get the cores when they need them.
const BUILDS: [Stage; 4] = [
    ("documentation", stages::documentation),
    ("examples in the documentation", stages::doctests),
    ("benchmarks, once around", stages::benchmarks),
    ("Debian package", stages::debian_package),
];

/// These compute something, or build in a directory of their own. They run beside the tests too.
const COMPUTATIONS: [Stage; 4] = [
    ("core without the standard library", stages::no_std),
    ("the walk-through of CONTRIBUTING.md", stages::walk_through),
    ("simulation of the whole product", stages::simulation),
    ("generated documents", || docs::check().map(passed)),
];

/// Every stage.
fn stages() -> impl Iterator<Item = &'static Stage> {
    FIRST.iter().chain(&TESTS).chain(&WITH_OTHERS).chain(&BUILDS).chain(&COMPUTATIONS)
}

/// How a stage went.
struct StageResult {
    verdict: Verdict,
    /// Its line in the summary.
    line: String,
}

/// Whether a stage counts as a failure, and if so, whether another run may end otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Success,
    Failure,
    /// It did not run, because something is missing, and that is a failure here.
    MissingTool,
}

impl Verdict {
    /// With what the process of a stage ends.
    fn exit_code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::MissingTool => 3,
        }
    }

    /// The verdict of the process of a stage. A process that was killed has no code.
    fn of_exit_code(code: Option<i32>) -> Self {
        let all = [Self::Success, Self::MissingTool];
        let known = all.into_iter().find(|it| code == Some(it.exit_code().into()));
        known.unwrap_or(Self::Failure)
    }
}

/// Run all stages, even after one has failed, and print at the end how each of them went.
pub(crate) fn all() -> anyhow::Result<()> {
    let mut done: Vec<StageResult> = FIRST.iter().map(run).collect();
    thread::scope(|scope| {
        let others = scope.spawn(|| run_beside(&WITH_OTHERS, 0));
        let builds = scope.spawn(|| run_beside(&BUILDS, 19));
        let computations = scope.spawn(|| run_beside(&COMPUTATIONS, 19));
        done.extend(TESTS.iter().map(run));
        let join = |lane: thread::ScopedJoinHandle<'_, _>| {
            lane.join().map_err(|_| anyhow!("the stages beside the tests panicked"))
        };
        let lanes: [Vec<StageResult>; 3] = [join(others)?, join(builds)?, join(computations)?];
        let beside = WITH_OTHERS.iter().chain(&BUILDS).chain(&COMPUTATIONS);
        done.extend(beside.zip(lanes.into_iter().flatten()).map(|(it, done)| run_alone(it, done)));
        summary(&done)
    })
}

/// Run a stage again, now alone, if it failed. Other programs and leases have deadlines, which they
/// may miss while the tests take the cores. The summary tells if that was so. A tool that is
/// missing is still missing.
fn run_alone(stage: &Stage, first: StageResult) -> StageResult {
    if first.verdict != Verdict::Failure {
        return first;
    }
    let second = run(stage);
    StageResult { line: format!("{}, after it had failed beside the tests", second.line), ..second }
}

/// Run the stages that have `only` in their names, one after the other.
pub(crate) fn some(only: &str) -> anyhow::Result<()> {
    let done: Vec<StageResult> =
        stages().filter(|(name, _)| name.contains(only)).map(run).collect();
    ensure!(!done.is_empty(), "no stage has \"{only}\" in its name");
    summary(&done)
}

/// Run the one stage with this name, in a process that ends with this code.
pub(crate) fn one(name: &str) -> anyhow::Result<ExitCode> {
    let stage = stages().find(|(its, _)| *its == name);
    let done = run(stage.with_context(|| format!("no stage is called \"{name}\""))?);
    Ok(done.verdict.exit_code().into())
}

fn summary(done: &[StageResult]) -> anyhow::Result<()> {
    println!("\n== summary");
    for stage in done {
        println!("{}", stage.line);
    }
    let failures = done.iter().filter(|stage| stage.verdict != Verdict::Success).count();
    ensure!(failures == 0, "{failures} of {} stages failed", done.len());
    Ok(())
}

fn run((name, stage): &Stage) -> StageResult {
    println!("\n== {name}");
    let begin = Instant::now();
    let (verdict, mut word) = match stage() {
        Ok(Passed) => (Verdict::Success, "ok".to_owned()),
        Ok(Noted(what)) => (Verdict::Success, format!("ok ({what})")),
        Ok(Skipped(what)) => {
            let verdict = if ci() { Verdict::MissingTool } else { Verdict::Success };
            (verdict, format!("SKIPPED ({what})"))
        }
        Ok(Unavailable(what)) => (Verdict::Success, format!("SKIPPED ({what})")),
        Err(error) => (Verdict::Failure, format!("FAILED ({error:#})")),
    };
    let skipped = fs::read_to_string(skips()).ok().and_then(|lines| skipped_tests(&lines));
    let _ = fs::remove_file(skips()); // The next stage writes its own.
    if let Some(skipped) = skipped.filter(|_| verdict == Verdict::Success) {
        word = format!("{word}, SKIPPED ({skipped})");
    }
    let line = format!("{:7.1} s  {name}: {word}", begin.elapsed().as_secs_f64());
    println!("{line}");
    StageResult { verdict, line }
}

/// Which tests were skipped, at least in part, and why. Each line has a test and the reason.
fn skipped_tests(lines: &str) -> Option<String> {
    let mut reasons: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let lines: BTreeSet<(&str, &str)> =
        lines.lines().filter_map(|line| line.split_once('\t')).collect();
    for (test, why) in &lines {
        reasons.entry(why).or_default().insert(test);
    }
    let tests: BTreeSet<&str> = lines.iter().map(|(test, _)| *test).collect();
    let reasons: Vec<String> = reasons
        .into_iter()
        .map(|(why, tests)| format!("{why}: {}", Vec::from_iter(tests).join(", ")))
        .collect();
    (!tests.is_empty()).then(|| format!("{} tests: {}", tests.len(), reasons.join("; ")))
}

/// Run stages one after the other, each in a process of its own with this priority (19 is the
/// lowest). What a stage has printed is printed when it is done.
fn run_beside(stages: &[Stage], niceness: u32) -> Vec<StageResult> {
    stages.iter().map(|(name, _)| run_apart(name, niceness)).collect()
}

fn run_apart(name: &str, niceness: u32) -> StageResult {
    // `2>&1` keeps the lines in their order.
    let words = ["-c", "exec nice -n \"$1\" \"$0\" test --one \"$2\" 2>&1"];
    let mut stage = Command::new("sh");
    stage.args(words).arg(target().join("debug/xtask")).arg(niceness.to_string()).arg(name);
    let output = programs::hand_over(&mut stage).output();
    let (verdict, said) = match output {
        Ok(output) => (
            Verdict::of_exit_code(output.status.code()),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        ),
        Err(error) => (Verdict::Failure, format!("cannot start a process for this stage: {error}")),
    };
    print!("{said}");
    // The line of the summary is the last but for the message of a failure, which may be long.
    let marker = format!(" s  {name}: ");
    let line = said.lines().rfind(|line| line.contains(&marker));
    let line = line.map_or_else(|| format!("      ?{marker}FAILED"), ToOwned::to_owned);
    StageResult { verdict, line }
}

fn passed(_: ()) -> Outcome {
    Passed
}

/// Format every source file, or check its format. `cargo fmt` finds modules by their `mod` lines,
/// and a macro writes those of the algorithms.
pub(crate) fn format(check: bool) -> anyhow::Result<()> {
    let mut command = Command::new("rustfmt");
    command.args(["--edition", "2024"]).args(check.then_some("--check"));
    let files = files::all()?;
    let sources = files.iter().filter(|file| file.is_source());
    let sources: Vec<&str> = sources.map(|file| file.path.as_str()).collect();
    println!("$ rustfmt, {} files", sources.len());
    let status = command.args(sources).status()?;
    ensure!(status.success(), "not formatted; `cargo xtask fmt` formats all files");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Outcome, StageResult, Verdict, run_alone, skipped_tests};

    /// How a second run of a stage ends that would succeed now.
    fn again(verdict: Verdict, line: &str) -> Verdict {
        let first = StageResult { verdict, line: line.to_owned() };
        run_alone(&("a stage of the tests", || Ok(Outcome::Passed)), first).verdict
    }

    #[test]
    fn a_failure_is_run_again_whatever_its_text_says() {
        assert_eq!(again(Verdict::Failure, "FAILED (it printed SKIPPED)"), Verdict::Success);
        assert_eq!(again(Verdict::MissingTool, "there is no spin"), Verdict::MissingTool);
    }

    #[test]
    fn the_code_of_a_process_has_the_verdict_of_its_stage() {
        for verdict in [Verdict::Success, Verdict::Failure, Verdict::MissingTool] {
            assert_eq!(Verdict::of_exit_code(Some(verdict.exit_code().into())), verdict);
        }
        for other in [None, Some(2), Some(101)] {
            assert_eq!(Verdict::of_exit_code(other), Verdict::Failure);
        }
    }

    #[test]
    fn skipped_tests_are_counted_and_listed_by_reason() {
        assert_eq!(skipped_tests(""), None);
        // A test may say it twice, and may lack two things.
        let lines = "a::x\tthere is no zsh\nb\tit needs root\na::x\tthere is no zsh\n\
                     a::y\tthere is no zsh\na::x\tthere is no busybox\n";
        let told = "3 tests: it needs root: b; there is no busybox: a::x; \
                    there is no zsh: a::x, a::y";
        assert_eq!(skipped_tests(lines).as_deref(), Some(told));
    }
}

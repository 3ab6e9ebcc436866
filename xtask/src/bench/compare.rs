//! `cargo xtask bench NAME --before`: two builds of a benchmark take turns, so that other load on
//! the machine affects both in the same way.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::revision;
use crate::run::{cargo, command, output, shown};

/// How many times each of the two builds is measured.
const TURNS: usize = 10;

/// A benchmark of which two builds can be compared.
struct Benchmark {
    name: &'static str,
    package: &'static str,
    /// By how much a row may become slower.
    tolerance: f64,
}

const BENCHMARKS: [Benchmark; 4] = [
    Benchmark { name: "node", package: "doorway-node", tolerance: 0.02 },
    Benchmark { name: "daemon", package: "doorway-daemon", tolerance: 0.02 },
    Benchmark { name: "check", package: "doorway-lab", tolerance: 0.03 },
    Benchmark { name: "simulate", package: "doorway-lab", tolerance: 0.03 },
];

/// The results of one run.
#[derive(Deserialize)]
struct Results {
    rows: Vec<Row>,
}

/// What the benchmark says about one thing.
#[derive(Clone, Deserialize)]
struct Row {
    what: String,
    #[serde(default)]
    placement: String,
    p50_ns: Option<f64>,
    per_second: Option<f64>,
    goal: Option<String>,
}

impl Row {
    /// How long the thing takes, in nanoseconds; none if the row is about something else.
    fn time(&self) -> Option<f64> {
        self.p50_ns.or_else(|| self.per_second.map(|rate| 1e9 / rate))
    }

    /// A row with a rate and nothing else.
    fn of_rate(what: String, per_second: f64) -> Self {
        let (placement, p50_ns, goal) = (String::new(), None, None);
        Self { what, placement, p50_ns, per_second: Some(per_second), goal }
    }

    /// Whether it is about our code. The others show what the machine or another program does.
    fn is_ours(&self) -> bool {
        self.goal.is_some() || self.p50_ns.is_none()
    }
}

/// The times of one thing in all runs of both builds.
#[derive(Debug, Default)]
struct Times {
    before: Vec<f64>,
    now: Vec<f64>,
}

impl Times {
    /// How many times as long it takes now.
    fn ratio(&self) -> f64 {
        median(&self.now) / median(&self.before)
    }

    /// By how much the runs of the build before differ among themselves.
    fn spread(&self) -> f64 {
        let least = self.before.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.before.iter().copied().fold(0.0, f64::max);
        (most - least) / median(&self.before)
    }

    /// How many times as long the build before takes in its odd turns as in its even turns; none
    /// after a single turn.
    fn itself(&self) -> Option<f64> {
        let every_other = |from: usize| -> Vec<f64> {
            self.before.iter().copied().skip(from).step_by(2).collect()
        };
        (self.before.len() > 1).then(|| median(&every_other(0)) / median(&every_other(1)))
    }

    fn is_met(&self, tolerance: f64) -> bool {
        self.ratio() <= 1.0 + tolerance.max(self.spread())
    }
}

/// Whether two builds of this benchmark can be compared.
pub(crate) fn knows(name: &str) -> bool {
    BENCHMARKS.iter().any(|benchmark| benchmark.name == name)
}

/// Compare this tree with another build of a benchmark, or with a revision, which is built first.
pub(crate) fn run(name: &str, before: &str, options: &[&str]) -> anyhow::Result<()> {
    let benchmark = BENCHMARKS.iter().find(|benchmark| benchmark.name == name);
    let benchmark = benchmark.with_context(|| format!("builds of `{name}` cannot be compared"))?;
    let smoke = options.contains(&"--smoke");
    let before = if Path::new(before).is_file() {
        PathBuf::from(before)
    } else {
        benchmark.build_revision(before, smoke)?
    };
    eprintln!("... building this tree");
    let now = benchmark.build(&env::current_dir()?, None, smoke)?;
    let mut all: BTreeMap<usize, (Row, Times)> = BTreeMap::new();
    let turns = if smoke { 1 } else { TURNS };
    for turn in 1..=turns {
        eprintln!("... before, {turn} of {turns}");
        let earlier = measure(&before, options)?;
        eprintln!("... now, {turn} of {turns}");
        for (at, row) in measure(&now, options)?.into_iter().enumerate() {
            let same = |it: &&Row| it.what == row.what && it.placement == row.placement;
            let (Some(other), Some(time)) = (earlier.iter().find(same), row.time()) else {
                continue;
            };
            let Some(other) = other.time() else { continue };
            let (_, times) = all.entry(at).or_insert_with(|| (row, Times::default()));
            times.before.push(other);
            times.now.push(time);
        }
    }
    ensure!(!all.is_empty(), "the two builds have measured nothing that both know");
    print!("{}", benchmark.table(&all.into_values().collect::<Vec<_>>()));
    Ok(())
}

impl Benchmark {
    /// Build the benchmark of a revision. Returns the program.
    fn build_revision(&self, revision: &str, smoke: bool) -> anyhow::Result<PathBuf> {
        let mut name = command("git rev-parse --verify --quiet");
        let commit = output(name.arg(format!("{revision}^{{commit}}")))
            .with_context(|| format!("`{revision}` is neither a program nor a revision"))?;
        let place = env::current_dir()?.join("target/before");
        let source = place.join(commit.trim());
        revision::extract(commit.trim(), &source)?;
        eprintln!("... building {revision}");
        self.build(&source, Some(&place.join("target")), smoke)
    }

    /// Build the benchmark of the tree in a directory. Returns the program. A smoke test measures
    /// nothing, so it takes the profile of the tests, which have built most of it already.
    fn build(&self, source: &Path, target: Option<&Path>, smoke: bool) -> anyhow::Result<PathBuf> {
        let Self { name, package, .. } = self;
        if *name == "daemon" && !smoke {
            // The benchmark measures the command beside it.
            built(cargo("build --release --quiet --package doorway"), source, target)?;
        }
        let what = if smoke {
            "--profile dev --workspace --all-features".to_owned()
        } else {
            format!("--package {package}")
        };
        let words = format!("bench --no-run --quiet {what} --bench {name}");
        let build = cargo(&format!("{words} --message-format json"));
        let said = built(build, source, target)?;
        program(&said, name).with_context(|| format!("`cargo {words}` names no program"))
    }

    /// All rows as a table, and a last row for those of our code together.
    fn table(&self, all: &[(Row, Times)]) -> String {
        let columns = "before | now | now / before | before / before | spread before | at most";
        let most = 1.0 + self.tolerance;
        let mut lines = vec![
            format!("| what | placement | {columns} {most:.2} |"),
            "|---|---|--:|--:|--:|--:|--:|---|".to_owned(),
        ];
        lines.extend(all.iter().map(|(row, times)| self.line(row, times)));
        let ours = || all.iter().filter(|(row, _)| row.is_ours()).map(|(_, times)| times);
        let now = mean(ours().map(Times::ratio));
        let itself = ratio(ours().map(Times::itself).collect::<Option<Vec<_>>>().map(mean));
        lines.push(format!("| geometric mean | | | | {now:.3} | {itself} | | |"));
        lines.join("\n") + "\n"
    }

    fn line(&self, row: &Row, times: &Times) -> String {
        let verdict = match (row.is_ours(), times.is_met(self.tolerance)) {
            (false, _) => "not ours",
            (true, true) if times.ratio() <= 1.0 + self.tolerance => "met",
            (true, true) => "within the spread",
            (true, false) => "MISSED",
        };
        let [before, now] = [&times.before, &times.now].map(|times| median(times) / 1000.0);
        format!(
            "| {} | {} | {before:.3} us | {now:.3} us | {:.3} | {} | {:.1} % | {verdict} |",
            row.what,
            row.placement,
            times.ratio(),
            ratio(times.itself()),
            times.spread() * 100.0
        )
    }
}

/// Run a build of a benchmark without the programs of other projects.
fn measure(program: &Path, options: &[&str]) -> anyhow::Result<Vec<Row>> {
    let mut run = Command::new(program);
    let text = output(run.args(["--bench", "--json", "--alone"]).args(options))?;
    if !text.starts_with('{') {
        // Benchmarks of the laboratory knew no `--json` in version 0.1.0.
        return Ok(text.lines().flat_map(rows_of_line).collect());
    }
    let results: Results = serde_json::from_str(&text).context("not the rows of results")?;
    Ok(results.rows)
}

/// Run cargo in a directory. Returns what it prints on standard output.
fn built(mut build: Command, source: &Path, target: Option<&Path>) -> anyhow::Result<String> {
    build.current_dir(source).stderr(Stdio::inherit());
    build.envs(target.map(|target| ("CARGO_TARGET_DIR", target)));
    let done = build.output()?;
    ensure!(done.status.success(), "`{}` failed", shown(&build));
    Ok(String::from_utf8(done.stdout)?)
}

/// The program in the messages of cargo, the last one of this name.
fn program(messages: &str, name: &str) -> Option<PathBuf> {
    let messages = messages.lines().rev();
    let messages = messages.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == name);
    programs.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// The rows in a line that a benchmark of the laboratory prints for people: one of the simulator
/// (`NAME SIZE DELAY 4.56 M/s ...`), or two of the checker with its seven figures after the
/// requests of each node.
fn rows_of_line(line: &str) -> Vec<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
    if let Some(at) = words.iter().position(|word| *word == "M/s") {
        let rate = number(at.wrapping_sub(1));
        return rate
            .filter(|_| at > 3)
            .map(|rate| Row::of_rate(words[..at - 1].join(" "), rate * 1e6))
            .into_iter()
            .collect();
    }
    let Some(figures) = words.len().checked_sub(7).filter(|figures| *figures > 1) else {
        return Vec::new();
    };
    let all_are_numbers = (1..words.len()).all(|at| number(at).is_some());
    let rates = [("one thread", figures + 2), ("two threads", figures + 4)];
    let row = |(threads, at)| {
        let what = format!("{}, {threads}", words[..figures].join(" "));
        Some(Row::of_rate(what, number(at)? * 1e3))
    };
    rates.into_iter().filter(|_| all_are_numbers).filter_map(row).collect()
}

/// A ratio, if it is known.
fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "unknown".to_owned(), |ratio| format!("{ratio:.3}"))
}

/// The geometric mean.
fn mean(ratios: impl IntoIterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = ratios.into_iter().map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(before: &[f64], now: &[f64]) -> Times {
        Times { before: before.to_vec(), now: now.to_vec() }
    }

    const NODE: &Benchmark = &BENCHMARKS[0];

    #[test]
    fn a_row_may_be_slower_by_two_per_cent_or_by_the_spread_before() {
        assert!(times(&[100.0, 100.0, 100.0], &[102.0]).is_met(0.02));
        assert!(!times(&[100.0, 100.0, 100.0], &[103.0]).is_met(0.02));
        assert!(times(&[98.0, 100.0, 102.0], &[103.0]).is_met(0.02));
        assert!(!times(&[98.0, 100.0, 102.0], &[105.0]).is_met(0.02));
        assert!(times(&[100.0], &[50.0]).is_met(0.02), "a row may be faster");
    }

    #[test]
    fn a_build_is_compared_with_itself_by_every_other_turn() {
        let four = times(&[100.0, 80.0, 102.0, 84.0], &[90.0]);
        assert_eq!(four.itself(), Some(102.0 / 84.0));
        assert_eq!(times(&[100.0], &[100.0]).itself(), None);
        let row = || Row::of_rate("x".to_owned(), 1.0);
        let all = [(row(), times(&[100.0, 100.0], &[200.0])), (row(), times(&[8.0, 4.0], &[4.0]))];
        let table = NODE.table(&all);
        assert!(table.contains("| now / before | before / before |"), "{table}");
        // The ratios are 2 and 0.5; those of the build before are 1 and 2.
        assert!(table.ends_with("| geometric mean | | | | 1.000 | 1.414 | | |\n"), "{table}");
    }

    #[test]
    fn lines_for_people_are_read_where_a_build_prints_no_json() {
        let rows = |line: &str| -> Vec<(String, Option<f64>)> {
            rows_of_line(line).into_iter().map(|row| (row.what, row.per_second)).collect()
        };
        let line =
            "maekawa             10303 uniform:0.5,1.5      4.25 M/s  0.81    612.345   99 MiB";
        assert_eq!(rows(line), [("maekawa 10303 uniform:0.5,1.5".to_owned(), Some(4.25e6))]);
        let line =
            "maekawa          2 1 1 1     123456      50      400   8.00     700   1.75   20.1";
        let what = |threads| format!("maekawa 2 1 1 1, {threads}");
        let expected =
            [(what("one thread"), Some(400_000.0)), (what("two threads"), Some(700_000.0))];
        assert_eq!(rows(line), expected);
        for other in ["a binary heap of 10,000 events alone: 32.10 M/s", "algorithm  n delay", ""] {
            assert!(rows(other).iter().all(|(what, _)| what.starts_with("a binary heap")));
        }
        assert_eq!(rows("Thousand worlds a second: Stateright on one thread, ours on two."), []);
    }

    #[test]
    fn what_is_not_of_a_node_is_not_judged() {
        let text = r#"{"rows": [
            {"what": "TLS round trip", "placement": "one core", "p50_ns": 100.0},
            {"what": "8 tasks", "per_second": 1000.0},
            {"what": "lock + unlock", "p50_ns": 200.0, "goal": "300 ns"},
            {"what": "memory", "bytes_each": 100.0}], "notes": []}"#;
        let results: Results = serde_json::from_str(text).expect("results");
        let slower = times(&[100.0], &[200.0]);
        let judged = |at: usize| NODE.line(&results.rows[at], &slower).contains("MISSED");
        assert_eq!([0, 1, 2].map(judged), [false, true, true]);
        assert_eq!(results.rows[1].time(), Some(1e6), "nanoseconds for each");
        assert_eq!(results.rows[3].time(), None);
    }

    #[test]
    fn cargo_names_the_program() {
        let said = r#"{"reason":"compiler-artifact","target":{"name":"node"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/x/other"}
{"reason":"compiler-artifact","target":{"name":"node"},"executable":"/x/node-1"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(program(said, "node"), Some(PathBuf::from("/x/node-1")));
    }
}

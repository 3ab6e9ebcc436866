//! `cargo xtask bench node --before`: two builds of the benchmark of the node take turns, so that
//! other load on the machine affects both in the same way.

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
const TURNS: usize = 5;

/// By how much a row may become slower.
const TOLERANCE: f64 = 0.02;

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

    /// Whether it is about a node. The others show what the machine does.
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

    fn is_met(&self) -> bool {
        self.ratio() <= 1.0 + TOLERANCE.max(self.spread())
    }
}

/// Compare this tree with another build of the benchmark, or with a revision, which is built first.
pub(crate) fn run(before: &str, options: &[&str]) -> anyhow::Result<()> {
    let before =
        if Path::new(before).is_file() { PathBuf::from(before) } else { build_revision(before)? };
    eprintln!("... building this tree");
    let now = build(&env::current_dir()?, None)?;
    let mut all: BTreeMap<usize, (Row, Times)> = BTreeMap::new();
    let turns = if options.is_empty() { TURNS } else { 1 };
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
    println!("{}", heading());
    for (row, times) in all.values() {
        println!("{}", line(row, times));
    }
    Ok(())
}

/// Build the benchmark of a revision. Returns the program.
fn build_revision(revision: &str) -> anyhow::Result<PathBuf> {
    let mut name = command("git rev-parse --verify --quiet");
    let commit = output(name.arg(format!("{revision}^{{commit}}")))
        .with_context(|| format!("`{revision}` is neither a program nor a revision"))?;
    let place = env::current_dir()?.join("target/before");
    let source = place.join(commit.trim());
    revision::extract(commit.trim(), &source)?;
    eprintln!("... building {revision}");
    build(&source, Some(&place.join("target")))
}

/// Build the benchmark of the tree in a directory. Returns the program.
fn build(source: &Path, target: Option<&Path>) -> anyhow::Result<PathBuf> {
    let words = "bench --no-run --quiet --package doorway-node --bench node";
    let mut build = cargo(&format!("{words} --message-format json"));
    build.current_dir(source).stderr(Stdio::inherit());
    build.envs(target.map(|target| ("CARGO_TARGET_DIR", target)));
    let done = build.output()?;
    ensure!(done.status.success(), "`{}` failed", shown(&build));
    let said = String::from_utf8(done.stdout)?;
    program(&said).with_context(|| format!("`{}` names no program", shown(&build)))
}

/// The program in the messages of cargo, the last one of this name.
fn program(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().rev();
    let messages = messages.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter(|message| message["target"]["name"] == "node");
    programs.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

fn measure(program: &Path, options: &[&str]) -> anyhow::Result<Vec<Row>> {
    let mut run = Command::new(program);
    let text = output(run.args(["--bench", "--json", "--alone"]).args(options))?;
    let results: Results = serde_json::from_str(&text).context("it has printed something else")?;
    Ok(results.rows)
}

fn heading() -> String {
    let columns = "| placement | before | now | now / before | spread before | at most 1.02 |";
    format!("| what {columns}\n|---|---|--:|--:|--:|--:|---|")
}

fn line(row: &Row, times: &Times) -> String {
    let verdict = match (row.is_ours(), times.is_met()) {
        (false, _) => "not of a node",
        (true, true) if times.ratio() <= 1.0 + TOLERANCE => "met",
        (true, true) => "within the spread",
        (true, false) => "MISSED",
    };
    let [before, now] = [&times.before, &times.now].map(|times| median(times) / 1000.0);
    format!(
        "| {} | {} | {before:.3} us | {now:.3} us | {:.3} | {:.1} % | {verdict} |",
        row.what,
        row.placement,
        times.ratio(),
        times.spread() * 100.0
    )
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

    #[test]
    fn a_row_may_be_slower_by_two_per_cent_or_by_the_spread_before() {
        assert!(times(&[100.0, 100.0, 100.0], &[102.0]).is_met());
        assert!(!times(&[100.0, 100.0, 100.0], &[103.0]).is_met());
        assert!(times(&[98.0, 100.0, 102.0], &[103.0]).is_met());
        assert!(!times(&[98.0, 100.0, 102.0], &[105.0]).is_met());
        assert!(times(&[100.0], &[50.0]).is_met(), "a row may be faster");
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
        let judged = |at: usize| line(&results.rows[at], &slower).contains("MISSED");
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
        assert_eq!(program(said), Some(PathBuf::from("/x/node-1")));
    }
}

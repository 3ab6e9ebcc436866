//! `cargo xtask bench buffer`: how many lines a second pass between two processes, by the capacity
//! of the buffer between them. It runs the example `buffer` of `doorway-node`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, ensure};

use crate::run::{cargo, shown, target};

/// The capacities that are measured in turns, the window of one first.
const CAPACITIES: [u32; 3] = [1, 16, 256];

/// How much is measured.
struct Plan {
    /// How often each capacity is measured.
    runs: usize,
    /// How many lines pass in a run.
    lines: usize,
    /// How the example is built.
    profile: &'static str,
    /// The folder in which cargo puts what it has built so.
    folder: &'static str,
}

const FULL: Plan = Plan { runs: 10, lines: 100_000, profile: "release", folder: "release" };
const SMOKE: Plan = Plan { runs: 1, lines: 2_000, profile: "dev", folder: "debug" };

/// Measure all capacities, and print a table. The full measurement fails if the buffer of 16 places
/// is not faster than the window of one.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    ensure!(!options.contains(&"--json"), "this benchmark prints no JSON");
    let smoke = options.contains(&"--smoke");
    let plan = if smoke { SMOKE } else { FULL };
    let words =
        format!("build --quiet --profile {} --package doorway-node --example buffer", plan.profile);
    let mut build = cargo(&words);
    ensure!(build.status()?.success(), "`{}` failed", shown(&build));
    let program = target().join(plan.folder).join("examples/buffer");
    let place = target().join("tmp/bench-buffer");
    fs::create_dir_all(&place)?;
    // Lines of 55 bytes.
    let line = |number| format!("{number:>8} {:46}\n", "line");
    let text = (0..plan.lines).map(line).collect::<Vec<_>>().concat();
    let input = place.join("in.txt");
    fs::write(&input, &text)?;
    let mut rates = CAPACITIES.map(|_| Vec::new());
    for _ in 0..plan.runs {
        for (capacity, rates) in CAPACITIES.iter().zip(&mut rates) {
            let output = place.join("out.txt");
            let _ = fs::remove_file(&output);
            rates.push(pass(&program, &input, &output, *capacity)?);
            ensure!(fs::read_to_string(&output)? == text, "the lines did not arrive as they were");
        }
    }
    fs::remove_dir_all(&place)?;
    let rates = rates.map(Rates::new);
    print!("{}", table(&rates));
    let (one, sixteen) = (rates[0].median, rates[1].median);
    let faster = sixteen > one;
    ensure!(smoke || faster, "16 places pass {sixteen:.0} lines a second, and one {one:.0}");
    Ok(())
}

/// Let the lines of a file pass, and return how many passed in a second.
fn pass(program: &Path, input: &Path, output: &Path, capacity: u32) -> anyhow::Result<f64> {
    let capacity = capacity.to_string();
    let mut consume = Command::new(program);
    consume.arg("consume").arg("127.0.0.1:0").arg(output).arg(&capacity);
    let consumer = consume.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut consumer = Consumer(consumer.with_context(|| shown(&consume))?);
    let mut opening = String::new();
    let said = consumer.0.stdout.take().context("the consumer has an output")?;
    BufReader::new(said).read_line(&mut opening)?;
    let (_, address) = opening.trim().rsplit_once(' ').context("the consumer tells its address")?;
    let mut produce = Command::new(program);
    produce.arg("produce").arg(address).arg(input).arg(&capacity);
    let done = produce.output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    ensure!(done.status.success(), "`{}` failed: {said}", shown(&produce));
    let rate = said.trim().strip_suffix(" a second").and_then(|text| text.rsplit(' ').next());
    Ok(rate.context("the producer tells its rate")?.parse()?)
}

/// The process that consumes until it is killed.
struct Consumer(Child);

impl Drop for Consumer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lines a second of one capacity.
struct Rates {
    median: f64,
    fastest: f64,
}

impl Rates {
    fn new(mut all: Vec<f64>) -> Self {
        all.sort_by(f64::total_cmp);
        let fastest = all.last().copied().unwrap_or_default();
        Self { median: all.get(all.len() / 2).copied().unwrap_or_default(), fastest }
    }
}

/// The table, in Markdown.
fn table(rates: &[Rates; 3]) -> String {
    let row = |(places, Rates { median, fastest }): (&u32, &Rates)| {
        let ratio = median / rates[0].median;
        format!("| {places} | {median:.0} | {fastest:.0} | {ratio:.1} |\n")
    };
    let head = "| places | lines in a second, median | fastest | against one place |\n\
                |--:|--:|--:|--:|\n";
    let rows = CAPACITIES.iter().zip(rates).map(row);
    head.to_owned() + &rows.collect::<Vec<_>>().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_the_median_the_fastest_and_the_ratio() {
        let rates = [vec![3.0, 1.0, 2.0], vec![40.0], vec![80.0, 60.0]].map(Rates::new);
        let table = table(&rates);
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            ["| 1 | 2 | 3 | 1.0 |", "| 16 | 40 | 40 | 20.0 |", "| 256 | 80 | 80 | 40.0 |"]
        );
    }
}

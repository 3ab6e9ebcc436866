//! `cargo xtask bench`: run a benchmark, which prints a table.

pub(crate) mod buffer;
pub(crate) mod compare;

use std::process::Command;

use anyhow::ensure;

use crate::redis_clients;
use crate::run::{cargo, shown};

/// Run the benchmark of the node. Only the benchmark itself prints on standard output.
pub(crate) fn node(options: &[&str]) -> anyhow::Result<()> {
    bench("doorway-node", "node", options)
}

/// Run the benchmark of the daemon. It also measures runs of the `doorway` command, which is
/// therefore built first.
pub(crate) fn daemon(options: &[&str]) -> anyhow::Result<()> {
    if !options.contains(&"--smoke") {
        eprintln!("... building the command");
        let mut build = cargo("build --release --quiet --package doorway");
        ensure!(build.status()?.success(), "`{}` failed", shown(&build));
    }
    bench("doorway-daemon", "daemon", options)
}

/// Run the benchmark of the checker.
pub(crate) fn check(options: &[&str]) -> anyhow::Result<()> {
    bench("doorway-lab", "check", options)
}

/// Run the benchmark of the simulator.
pub(crate) fn simulate(options: &[&str]) -> anyhow::Result<()> {
    bench("doorway-lab", "simulate", options)
}

/// Run the benchmark of the doors. redis-py is fetched for it, if that is possible.
pub(crate) fn doors(options: &[&str]) -> anyhow::Result<()> {
    let python = redis_clients::redis_py().filter(|_| !options.contains(&"--smoke"));
    let mut bench = command("doorway-daemon", "doors", options);
    bench.envs(python.map(|python| ("REDIS_PYTHON", python)));
    run(bench)
}

/// Run the benchmark of groups that agree on their members.
pub(crate) fn members(options: &[&str]) -> anyhow::Result<()> {
    bench("doorway", "members", options)
}

/// Run the benchmarks of the page: of the laboratory, and of the live page. They need Chromium.
pub(crate) fn page(options: &[&str]) -> anyhow::Result<()> {
    bench("doorway-page", "page", options)?;
    bench("doorway", "live", options)
}

fn bench(package: &str, which: &str, options: &[&str]) -> anyhow::Result<()> {
    run(command(package, which, options))
}

fn command(package: &str, which: &str, options: &[&str]) -> Command {
    let words = format!("bench --quiet --package {package} --bench {which} --");
    let mut bench = cargo(&words);
    bench.args(options);
    bench
}

fn run(mut bench: Command) -> anyhow::Result<()> {
    ensure!(bench.status()?.success(), "`{}` failed", shown(&bench));
    Ok(())
}

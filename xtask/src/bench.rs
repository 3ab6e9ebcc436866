//! `cargo xtask bench`: run a benchmark, which prints a table.

use anyhow::ensure;

use crate::run::{cargo, shown};

/// Run the benchmark of the node. Only the benchmark itself prints on standard output.
pub(crate) fn node(options: &[&str]) -> anyhow::Result<()> {
    bench("node", options)
}

/// Run the benchmark of the daemon. It also measures runs of the `doorway` command, which is
/// therefore built first.
pub(crate) fn daemon(options: &[&str]) -> anyhow::Result<()> {
    if !options.contains(&"--smoke") {
        eprintln!("... building the command");
        let mut build = cargo("build --release --quiet --package doorway");
        ensure!(build.status()?.success(), "`{}` failed", shown(&build));
    }
    bench("daemon", options)
}

fn bench(which: &str, options: &[&str]) -> anyhow::Result<()> {
    let words = format!("bench --quiet --package doorway-{which} --bench {which} --");
    let mut bench = cargo(&words);
    bench.args(options);
    ensure!(bench.status()?.success(), "`{}` failed", shown(&bench));
    Ok(())
}

//! `cargo xtask bench`: measure, and print a table.

use anyhow::ensure;

use crate::run::{cargo, shown};

/// Run the benchmark of the node. What it prints on standard output is all that appears there.
pub(crate) fn node(options: &[&str]) -> anyhow::Result<()> {
    let mut bench = cargo("bench --quiet --package doorway-node --bench node --");
    bench.args(options);
    ensure!(bench.status()?.success(), "`{}` failed", shown(&bench));
    Ok(())
}

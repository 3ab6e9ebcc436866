//! `cargo xtask publish --dry-run`: can the library crates be published to crates.io?

use crate::run::{cargo, succeed};

/// The crates that other projects depend on, and the crates that these depend on.
const CRATES: [&str; 6] = [
    "doorway-client",
    "doorway-core",
    "doorway-node",
    "doorway-protocol",
    "doorway-search",
    "doorway-threads",
];

/// Package the crates as for crates.io, and build each of them from its package alone.
pub(crate) fn dry_run() -> anyhow::Result<()> {
    package(&[])
}

/// Package the crates as for crates.io, without a build. This finds a manifest that crates.io would
/// refuse, and takes seconds.
pub(crate) fn check() -> anyhow::Result<()> {
    package(&["--no-verify", "--quiet"])
}

fn package(options: &[&str]) -> anyhow::Result<()> {
    // Changes that are not committed do not make a dry run fail.
    let mut package = cargo("package --locked --allow-dirty");
    package.args(CRATES.iter().flat_map(|name| ["--package", name])).args(options);
    succeed(&mut package)
}

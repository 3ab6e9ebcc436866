//! `cargo xtask upgrade`: a group of the first release becomes one of this version, under load.

use std::env;

use crate::revision;
use crate::run::{cargo, succeed};

/// The commit that 0.1.0 was built from.
const RELEASED: &str = "8b86226";

/// Build 0.1.0 from its commit, and run the test that upgrades a group of it.
pub(crate) fn run() -> anyhow::Result<()> {
    let place = env::current_dir()?.join("target/upgrade");
    let (source, target) = (place.join("source"), place.join("target"));
    revision::extract(RELEASED, &source)?;
    let mut build = cargo("build --locked -p doorway");
    succeed(build.current_dir(&source).env("CARGO_TARGET_DIR", &target))?;
    let mut test = cargo("test -p doorway --test run upgraded_under_load -- --ignored --nocapture");
    succeed(test.env("DOORWAY_0_1_0", target.join("debug/doorway")))
}

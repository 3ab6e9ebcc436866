//! `cargo xtask faults`: five nodes in network namespaces under faults, and the table about them.

use std::env;
use std::fs;

use anyhow::{Context as _, ensure};

use crate::run::{cargo, command, quietly, succeed};

/// The page with the table, and the marks around the table.
const PAGE: &str = "docs/faults.md";
const TABLE_BEGIN: &str = "<!-- faults: written by `cargo xtask faults` -->\n";
const TABLE_END: &str = "<!-- end of faults -->\n";

/// The target with the test, and the name of the test.
pub(crate) const TEST: (&str, &str) = ("faults", "a_group_in_network_namespaces");

/// The Debian packages with the programs that it needs.
pub(crate) const PACKAGES: &str = "iproute2 nftables";

/// Are the programs there?
pub(crate) fn programs() -> bool {
    let known = ["ip -V", "nft --version", "unshare --version", "nsenter --version"];
    known.iter().all(|words| quietly(&mut command(words)))
}

/// May this user make network namespaces, inside of a user namespace or as root?
pub(crate) fn allowed() -> bool {
    let tried = ["unshare --user --map-root-user --net --mount true", "unshare --net --mount true"];
    tried.iter().any(|words| quietly(&mut command(words)))
}

/// Kill nodes this often, let other faults happen more rarely, and write the table into the page,
/// also if a fault cost more than it may.
pub(crate) fn run(times: &str) -> anyhow::Result<()> {
    times.parse::<u32>().with_context(|| format!("`{times}` is not a number of times"))?;
    ensure!(programs(), "`apt-get install {PACKAGES}` installs what it needs");
    ensure!(allowed(), "this user cannot make network namespaces");
    let table = env::current_dir()?.join("target/faults.md");
    let (program, test) = TEST;
    let words = format!("test --release -p doorway --test {program} {test} -- --ignored");
    let mut test = cargo(&words);
    test.args(["--exact", "--nocapture"]);
    test.env("DOORWAY_FAULTS_TIMES", times).env("DOORWAY_FAULTS_TABLE", &table);
    if table.exists() {
        fs::remove_file(&table)?;
    }
    let tested = succeed(&mut test);
    if !table.exists() {
        return tested; // It has not tried all faults.
    }
    let page = fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    let (before, rest) = page.split_once(TABLE_BEGIN).context("the page has no place for it")?;
    let (_, after) = rest.split_once(TABLE_END).context("the place for faults has no end")?;
    let table = fs::read_to_string(table)?;
    fs::write(PAGE, format!("{before}{TABLE_BEGIN}{table}{TABLE_END}{after}"))?;
    println!("wrote {PAGE}");
    tested
}

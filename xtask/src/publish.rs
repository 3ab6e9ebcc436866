//! `cargo xtask publish --dry-run`: can the library crates be published to crates.io?

use crate::run::{cargo, succeed};

/// The crates that other projects depend on, and the crates that these depend on. The manifests of
/// all others say `publish = false`.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::CRATES;

    #[test]
    fn the_manifests_and_the_release_checklist_name_the_crates_that_are_published() {
        let mut published = Vec::new();
        for entry in fs::read_dir("../crates").unwrap() {
            let entry = entry.unwrap();
            let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
            if !manifest.contains("\npublish = false\n") {
                published.push(entry.file_name().into_string().unwrap());
            }
        }
        published.sort();
        assert_eq!(published, CRATES);
        let page = fs::read_to_string("../CONTRIBUTING.md").unwrap();
        let (_, step) = page.split_once("Publish the crates to crates.io").unwrap();
        let (step, _) = step.split_once("\n11. ").unwrap();
        let mut listed: Vec<&str> =
            step.split('`').filter(|word| word.starts_with("doorway-")).collect();
        listed.sort_unstable();
        assert_eq!(listed, CRATES);
    }
}

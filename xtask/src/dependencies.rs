//! The dependencies of the workspace: each is used, comes from crates.io, and has a licence that
//! `deny.toml` allows.
//!
//! cargo-machete and cargo-deny do this too, but building them takes longer than many a stage.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use crate::files;
use crate::run::{cargo, output};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// Dependencies that a package uses in a file outside its own directory.
const USED_ELSEWHERE: [(&str, &str, &str); 2] = [
    ("doorway", "rcgen", "a test includes a module of doorway-node's tests"),
    ("doorway-daemon", "doorway-threads", "the examples of the README are tests of this crate"),
];

/// What `cargo metadata` prints, as far as it is needed here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A package of the workspace or one that it depends on.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its licence, as an SPDX expression.
    pub(crate) license: Option<String>,
    /// The registry, or nothing for a package of the workspace.
    pub(crate) source: Option<String>,
    pub(crate) manifest_path: PathBuf,
    targets: Vec<Target>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// The versions that it allows.
    req: String,
    /// The directory of a dependency in the workspace.
    path: Option<PathBuf>,
}

/// The part of `deny.toml` that is needed here.
#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

/// Check every dependency.
pub(crate) fn check() -> anyhow::Result<()> {
    let packages = packages()?;
    let deny: Deny = toml::from_str(&fs::read_to_string("deny.toml")?).context("deny.toml")?;
    let (outside, ours): (Vec<_>, Vec<_>) =
        packages.iter().partition(|package| package.source.is_some());
    let mut complaints: Vec<String> =
        outside.iter().filter_map(|package| package.complaint(&deny.licenses.allow)).collect();
    let libraries = libraries(&packages);
    for package in &ours {
        complaints.extend(package.wildcards());
        complaints.extend(package.unused(&libraries)?);
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    ensure!(complaints.is_empty(), "{} complaints about dependencies", complaints.len());
    println!("{} packages of others are used, licensed and from crates.io", outside.len());
    Ok(())
}

/// Every package of the workspace, and every one that it depends on.
pub(crate) fn packages() -> anyhow::Result<Vec<Package>> {
    let metadata = output(&mut cargo("metadata --format-version 1 --all-features --locked"))?;
    let metadata: Metadata = serde_json::from_str(&metadata)?;
    Ok(metadata.packages)
}

/// The names by which Rust code uses packages: those of their libraries.
fn libraries(packages: &[Package]) -> BTreeMap<&str, String> {
    let is_library = |kind: &String| kind.ends_with("lib") || kind == "proc-macro";
    let named = packages.iter().filter_map(|package| {
        let library = package.targets.iter().find(|target| target.kind.iter().any(is_library))?;
        Some((package.name.as_str(), library.name.replace('-', "_")))
    });
    named.collect()
}

impl Package {
    /// What is wrong with a package from outside.
    fn complaint(&self, allowed: &[String]) -> Option<String> {
        let Self { name, version, license, source, .. } = self;
        if source.as_deref() != Some(CRATES_IO) {
            return Some(format!("{name} {version}: does not come from crates.io"));
        }
        let licence = license.as_deref().unwrap_or("none");
        let fine = permits(licence, allowed);
        (!fine)
            .then(|| format!("{name} {version}: deny.toml does not allow its licence, {licence}"))
    }

    /// Dependencies of any version.
    fn wildcards(&self) -> impl Iterator<Item = String> {
        let any = self.dependencies.iter().filter(|it| it.req == "*" && it.path.is_none());
        any.map(|it| format!("{}: the dependency {} has no version", self.name, it.name))
    }

    /// Dependencies whose library no source file of the package mentions.
    fn unused(&self, libraries: &BTreeMap<&str, String>) -> anyhow::Result<Vec<String>> {
        let files = files::below(self.manifest_path.parent().unwrap_or(Path::new(".")))?;
        let sources = files.iter().filter(|file| file.is_source());
        let mentions = |library: &str| {
            let ways = [format!("{library}::"), format!("use {library}")];
            sources.clone().any(|file| ways.iter().any(|way| file.text.contains(way)))
        };
        let unused = self.dependencies.iter().filter(|dependency| {
            let name = dependency.name.as_str();
            let elsewhere = USED_ELSEWHERE.iter().any(|it| (it.0, it.1) == (&self.name, name));
            !elsewhere && !libraries.get(name).is_some_and(|library| mentions(library))
        });
        let complaints = unused.map(|it| format!("{}: does not use {}", self.name, it.name));
        Ok(complaints.collect())
    }
}

/// Can the terms of this SPDX expression be met with licences that are allowed?
fn permits(expression: &str, allowed: &[String]) -> bool {
    let parsed = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX);
    parsed.is_ok_and(|it| it.evaluate(|one| allowed.iter().any(|known| *known == one.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_expressions() {
        let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        for fine in ["MIT", "GPL-2.0 OR MIT", "MIT/Apache-2.0", "Apache-2.0 WITH LLVM-exception"] {
            assert!(permits(fine, &allowed), "{fine}");
        }
        for wrong in ["GPL-2.0", "MIT AND ISC", "Apache-2.0", "none", ""] {
            assert!(!permits(wrong, &allowed), "{wrong}");
        }
    }

    #[test]
    fn a_dependency_that_is_not_used_or_not_licensed_is_found() {
        let json = r#"{
            "name": "x", "version": "1.0.0", "license": "GPL-2.0", "source": null,
            "manifest_path": "Cargo.toml", "targets": [{"name": "x-y", "kind": ["lib"]}],
            "dependencies": [
                {"name": "anyhow", "req": "^1", "path": null},
                {"name": "x", "req": "*", "path": null}]}"#;
        let mut package: Package = serde_json::from_str(json).unwrap();
        package.manifest_path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into();
        let known = BTreeMap::from([("anyhow", "anyhow".to_owned()), ("x", "x_y".to_owned())]);
        assert_eq!(package.unused(&known).unwrap(), ["x: does not use x"]);
        assert_eq!(package.wildcards().count(), 1);
        assert!(package.complaint(&[]).unwrap().contains("crates.io"));
        package.source = Some(CRATES_IO.to_owned());
        assert!(package.complaint(&[]).unwrap().contains("licence, GPL-2.0"));
        assert_eq!(package.complaint(&["GPL-2.0".to_owned()]), None);
        assert_eq!(libraries(&[package])["x"], "x_y");
    }
}

//! `cargo xtask test`: the one test command, stage by stage.

use std::env;
use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::ensure;

use crate::run::{cargo, command, quietly, succeed};
use crate::{docs, files, tidy};

/// How a stage ended, if it did not fail.
enum Outcome {
    Passed,
    /// Passed, with something to know.
    Noted(&'static str),
    /// Something that should run did not. With `CI=true` that is a failure.
    Skipped(&'static str),
}

use Outcome::{Noted, Passed, Skipped};

type Stage = (&'static str, fn() -> anyhow::Result<Outcome>);

/// The quick ones first.
const STAGES: [Stage; 14] = [
    ("tidy", || tidy::run().map(passed)),
    ("format", || format(true).map(passed)),
    ("lints", lints),
    ("Spin, for the tests that ask it", || Ok(spin())),
    ("databases, for the tests that ask them", || Ok(databases())),
    ("tests", tests),
    ("HTTP against its own document", http),
    ("examples in the documentation", doctests),
    ("documentation", documentation),
    ("core without the standard library", no_std),
    ("licences, bans and sources", licences),
    ("advisories", advisories),
    ("benchmarks, once around", benchmarks),
    ("generated documents", || docs::check().map(passed)),
];

/// Run every stage, also after one has failed, and say at the end how each of them went.
pub(crate) fn run() -> anyhow::Result<()> {
    let mut summary = Vec::new();
    let mut failures = 0;
    for (name, stage) in STAGES {
        println!("\n== {name}");
        let begin = Instant::now();
        let (failed, word) = match stage() {
            Ok(Passed) => (false, "ok".to_owned()),
            Ok(Noted(what)) => (false, format!("ok ({what})")),
            Ok(Skipped(what)) => (ci(), format!("SKIPPED ({what})")),
            Err(error) => (true, format!("FAILED ({error:#})")),
        };
        failures += usize::from(failed);
        let line = format!("{:7.1} s  {name}: {word}", begin.elapsed().as_secs_f64());
        println!("{line}");
        summary.push(line);
    }
    println!("\n== summary\n{}", summary.join("\n"));
    ensure!(failures == 0, "{failures} of {} stages failed", STAGES.len());
    Ok(())
}

fn passed(_: ()) -> Outcome {
    Passed
}

/// Does a machine rather than a person run the tests?
fn ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

/// Is this cargo tool at hand? In CI it is brought if it is not; a person is not made to wait for
/// that.
pub(crate) fn have(tool: &str) -> bool {
    let there = || quietly(&mut cargo(&format!("{tool} --version")));
    there() || ci() && succeed(&mut cargo(&format!("install cargo-{tool} --locked"))).is_ok()
}

/// Format, or check the format of, every source file. `cargo fmt` finds modules by reading `mod`
/// lines, and those of the algorithms come out of a macro.
pub(crate) fn format(check: bool) -> anyhow::Result<()> {
    let mut command = Command::new("rustfmt");
    command.args(["--edition", "2024"]).args(check.then_some("--check"));
    let files = files::all()?;
    let sources = files.iter().filter(|file| file.is_source());
    let sources: Vec<&str> = sources.map(|file| file.path.as_str()).collect();
    println!("$ rustfmt, {} files", sources.len());
    let status = command.args(sources).status()?;
    ensure!(status.success(), "not formatted; `cargo xtask fmt` mends it");
    Ok(())
}

fn lints() -> anyhow::Result<Outcome> {
    succeed(&mut cargo("clippy --workspace --all-targets --all-features -- -D warnings"))
        .map(passed)
}

fn tests() -> anyhow::Result<Outcome> {
    if have("nextest") {
        return succeed(&mut cargo("nextest run --workspace --all-features")).map(passed);
    }
    // The same tests, only slower and less well told.
    succeed(&mut cargo("test --workspace --all-targets --all-features"))?;
    Ok(Noted("with cargo test, since cargo-nextest is not installed"))
}

/// Spin is a program of the system, with a C compiler for what it writes. In CI both are brought if
/// they are not there; a person is told how, and the tests that need them pass without.
fn spin() -> Outcome {
    let there = || ["spin -V", "gcc --version"].iter().all(|words| quietly(&mut command(words)));
    if there() || ci() && install("spin gcc") && there() {
        return Passed;
    }
    Skipped("`apt-get install spin gcc` brings what it needs")
}

/// The statements that check fences are tried on real databases. In CI those are brought if they
/// are not there; a person is told how, and the tests that need them pass without.
fn databases() -> Outcome {
    let there = || {
        let known = ["sqlite3 --version", "psql --version"];
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        known.iter().all(|words| quietly(&mut command(words)))
            && versions.map(|version| version.path()).any(|it| it.join("bin/postgres").exists())
    };
    if there() || ci() && install("sqlite3 postgresql") && there() {
        return Passed;
    }
    Skipped("`apt-get install sqlite3 postgresql` brings what it needs")
}

/// Install packages of Debian, as root or by a `sudo` that asks for no password; elsewhere this
/// fails. A fresh machine has to be told first what there is.
fn install(packages: &str) -> bool {
    let sudo = if quietly(&mut command("sudo -n true")) { "sudo -n " } else { "" };
    let apt = |words: &str| succeed(&mut command(&format!("{sudo}apt-get {words}"))).is_ok();
    let install = || apt(&format!("install -y {packages}"));
    install() || apt("update") && install()
}

/// A program out of `PyPI` asks the HTTP door all that its document allows, and more. It lives in a
/// directory of the build; where it cannot be brought, a person goes on without it.
fn http() -> anyhow::Result<Outcome> {
    const VERSION: &str = "4.32.5";
    let place = env::current_dir()?.join("target/schemathesis").join(VERSION);
    let program = place.join("bin/schemathesis");
    let there = || quietly(Command::new(&program).arg("--version"));
    let bring = || {
        let made = succeed(Command::new("python3").args(["-m", "venv"]).arg(&place)).is_ok();
        let mut pip = Command::new(place.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        made && succeed(pip.arg(format!("schemathesis=={VERSION}"))).is_ok()
    };
    let brought = || bring() || ci() && install("python3-venv") && bring();
    if !(there() || brought() && there()) {
        return Ok(Skipped("`apt-get install python3-venv` and PyPI bring what it needs"));
    }
    let test = "test --workspace --all-features --test http -- --ignored --nocapture \
                --exact documents::the_document_and_the_server_agree";
    succeed(cargo(test).env("SCHEMATHESIS", program)).map(passed)
}

fn doctests() -> anyhow::Result<Outcome> {
    succeed(&mut cargo("test --workspace --all-features --doc --quiet")).map(passed)
}

fn documentation() -> anyhow::Result<Outcome> {
    let mut doc = cargo("doc --workspace --all-features --no-deps");
    succeed(doc.env("RUSTDOCFLAGS", "-D warnings")).map(passed)
}

/// Only the host's target can be assumed, and it has a standard library: see `xtask/no_std` for
/// how its absence is proven nevertheless.
fn no_std() -> anyhow::Result<Outcome> {
    // The versions that everything else is tested with.
    fs::copy("Cargo.lock", "xtask/no_std/Cargo.lock")?;
    let build = "build --manifest-path xtask/no_std/Cargo.toml --target-dir target/no_std";
    succeed(&mut cargo(build)).map(passed)
}

fn licences() -> anyhow::Result<Outcome> {
    if !have("deny") {
        return Ok(Skipped("`cargo install cargo-deny --locked` brings what it needs"));
    }
    // The check itself stays offline; crates of other platforms may not be here yet.
    succeed(&mut cargo("fetch"))?;
    succeed(&mut cargo("deny --offline check licenses bans sources")).map(passed)
}

/// The advisories live in a repository of their own. Where it cannot be reached, nothing can be
/// said about them, and nothing about this tree is wrong: a note, not a skip.
fn advisories() -> anyhow::Result<Outcome> {
    if !have("deny") {
        return Ok(Skipped("`cargo install cargo-deny --locked` brings what it needs"));
    }
    if !quietly(&mut cargo("deny fetch db")) {
        return Ok(Noted("not checked: the advisory database cannot be reached from here"));
    }
    succeed(&mut cargo("deny --offline check advisories")).map(passed)
}

/// Benchmarks are programs that take `--smoke` to do a little of everything and measure nothing.
fn benchmarks() -> anyhow::Result<Outcome> {
    let files = files::all()?;
    if !files.iter().any(|file| file.is_source() && file.path.contains("/benches/")) {
        return Ok(Noted("there are none yet"));
    }
    // Unoptimised: this is about whether they run, and the tests have built most of it already.
    succeed(&mut cargo("bench --profile dev --workspace --all-features --bench * -- --smoke"))
        .map(passed)
}

//! The Python package in `python/`: its wheel, its types and its tests.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context as _;

use crate::programs::built;
use crate::run::{quietly, succeed, target};

/// What the package is checked and built with.
const TOOLS: [&str; 2] = ["mypy==2.4.1", "setuptools==80.9.0"];

/// Where the tools and the wheel are put.
fn place() -> anyhow::Result<PathBuf> {
    Ok(env::current_dir()?.join(target()).join("python"))
}

/// A program of the virtual environment, with these arguments.
fn program(name: &str, words: &str) -> anyhow::Result<Command> {
    let mut program = Command::new(place()?.join("venv/bin").join(name));
    program.args(words.split_whitespace());
    Ok(program)
}

/// Install the tools, unless they are there. False if that is not possible.
pub(crate) fn is_prepared() -> bool {
    let prepare = || {
        if quietly(&mut program("mypy", "--version")?) {
            return Ok(());
        }
        let venv = place()?.join("venv");
        succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv))?;
        succeed(program("pip", "install --quiet --disable-pip-version-check")?.args(TOOLS))
    };
    prepare().is_ok()
}

/// Build and install the package, check its types, and run its tests with the program.
pub(crate) fn check() -> anyhow::Result<()> {
    let place = place()?;
    // Building a package leaves files beside its source, so a copy is built.
    let (source, wheels) = (place.join("source"), place.join("wheel"));
    for old in [&source, &wheels].into_iter().filter(|old| old.exists()) {
        fs::remove_dir_all(old)?;
    }
    succeed(Command::new("cp").args(["-r", "python"]).arg(&source))?;
    let wheel = "wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation";
    succeed(program("pip", wheel)?.arg("--wheel-dir").arg(&wheels).arg(&source))?;
    let wheel = fs::read_dir(&wheels)?.next().context("no wheel was built")??;
    let install = "install --quiet --disable-pip-version-check --no-deps --force-reinstall";
    succeed(program("pip", install)?.arg(wheel.path()))?;
    let mut mypy = program("mypy", "--cache-dir")?;
    succeed(mypy.arg(place.join("mypy")).current_dir("python"))?;
    let mut tests = program("python", "-X dev -B -m unittest discover")?;
    tests.env("DOORWAY", built("doorway")?);
    succeed(tests.current_dir("python/tests"))
}

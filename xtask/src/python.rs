//! The Python package in `python/`: its wheel, its types and its tests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::programs::built;
use crate::run::{succeed, target};

/// What the package is checked and built with. Later versions of mypy cannot check for Python 3.9.
const TOOLS: [&str; 2] = ["mypy==1.19.1", "setuptools==80.9.0"];

/// The newest minor version of Python 3 that is looked for.
const NEWEST: u32 = 30;

/// The oldest minor version of Python 3 that the package supports.
const OLDEST: u32 = 9;

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
        let mypy = text(&mut program("mypy", "--version")?);
        let version = TOOLS[0].rsplit('=').next();
        if mypy.zip(version).is_some_and(|(mypy, version)| mypy.contains(version)) {
            return Ok(());
        }
        let venv = place()?.join("venv");
        succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv))?;
        succeed(program("pip", "install --quiet --disable-pip-version-check")?.args(TOOLS))
    };
    prepare().is_ok()
}

/// What a program prints; `None` if it cannot be run, or fails.
fn text(program: &mut Command) -> Option<String> {
    let run = program.output().ok().filter(|run| run.status.success())?;
    Some(String::from_utf8_lossy(&run.stdout).trim().to_owned())
}

/// The version of a Python, as `3.9.18`; `None` if it cannot be run.
fn version(python: &Path) -> Option<String> {
    let print = "import platform; print(platform.python_version())";
    text(Command::new(python).args(["-c", print]))
}

/// The oldest Python of this machine that the package supports, if it can be found: on the path, or
/// among the versions that pyenv has installed.
fn oldest() -> Option<PathBuf> {
    let root = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".pyenv")));
    let installed = root.and_then(|root| fs::read_dir(root.join("versions")).ok());
    let installed: Vec<_> = installed.into_iter().flatten().flatten().map(|it| it.path()).collect();
    let mut pythons = (OLDEST..=NEWEST).flat_map(|minor| {
        let name = format!("python3.{minor}");
        let of_pyenv = installed.iter().map(|place| place.join("bin").join(&name));
        std::iter::once(PathBuf::from(&name)).chain(of_pyenv).collect::<Vec<_>>()
    });
    pythons.find(|python| version(python).is_some())
}

/// Build and install the package, check its types, and run its tests with the program, by the usual
/// Python and by the oldest one. Returns the versions of both.
pub(crate) fn check() -> anyhow::Result<String> {
    let place = place()?;
    // Building a package leaves files beside its source, so a copy is built.
    let (source, wheels) = (place.join("source"), place.join("wheel"));
    let package = place.join("package");
    for old in [&source, &wheels, &package].into_iter().filter(|old| old.exists()) {
        fs::remove_dir_all(old)?;
    }
    succeed(Command::new("cp").args(["-r", "python"]).arg(&source))?;
    let wheel = "wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation";
    succeed(program("pip", wheel)?.arg("--wheel-dir").arg(&wheels).arg(&source))?;
    let wheel = fs::read_dir(&wheels)?.next().context("no wheel was built")??;
    // Every Python finds the package there. It needs no other package.
    let install = "install --quiet --disable-pip-version-check --no-deps --target";
    succeed(program("pip", install)?.arg(&package).arg(wheel.path()))?;
    let mut mypy = program("mypy", "--cache-dir")?;
    succeed(mypy.arg(place.join("mypy")).current_dir("python"))?;
    let usual = place.join("venv/bin/python");
    let mut pythons = vec![usual.clone()];
    pythons.extend(oldest().filter(|oldest| version(oldest) != version(&usual)));
    let mut versions = Vec::new();
    for python in pythons {
        let version = version(&python).context("the Python has gone")?;
        println!("the tests with Python {version}");
        let mut tests = Command::new(python);
        tests.args(["-X", "dev", "-B", "-m", "unittest", "discover"]);
        tests.env("PYTHONPATH", &package).env("DOORWAY", built("doorway")?);
        succeed(tests.current_dir("python/tests"))?;
        versions.push(version);
    }
    Ok(format!("Python {}", versions.join(" and ")))
}

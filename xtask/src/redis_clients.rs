//! Real Redis clients for the tests of the Redis door. What Debian does not have is put below
//! `target`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{cargo, command, quietly, succeed};
use crate::test::venv;

/// The programs that are needed, and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 4] = [
    ("redis-cli --version", "redis-tools"),
    ("node --version", "nodejs"),
    ("npm --version", "npm"),
    ("python3 -m ensurepip --version", "python3-venv"),
];

/// The Debian packages of the programs that are missing. A machine may have some of the programs
/// from elsewhere, and their Debian packages could conflict with those.
pub(crate) fn missing_packages() -> String {
    let missing = PROGRAMS.iter().filter(|(program, _)| !quietly(&mut command(program)));
    missing.map(|(_, package)| *package).collect::<Vec<_>>().join(" ")
}

/// The version of redis-py.
const REDIS_PY: &str = "8.1.0";

/// The client for Node on which redlock is built.
const IOREDIS: &str = "ioredis@5.11.1";

/// The two versions of redlock that are in use.
const REDLOCK: [&str; 2] = ["4.2.0", "5.0.0-beta.2"];

/// Where the clients are.
pub(crate) struct Clients {
    /// A Python that has redis-py.
    python: PathBuf,
    /// A program with the crate `redis`.
    redis_rs: PathBuf,
    /// Directories with redlock and ioredis, separated by commas.
    node: String,
}

impl Clients {
    /// Find the clients, and fetch what is missing. None if that is not possible.
    pub(crate) fn prepare() -> anyhow::Result<Option<Self>> {
        let root = env::current_dir()?;
        if !missing_packages().is_empty() {
            return Ok(None);
        }
        let node = REDLOCK.iter().map(|version| {
            let place = root.join("target/redlock").join(format!("{version}-{IOREDIS}"));
            redlock(&place, version).then(|| place.join("node_modules").display().to_string())
        });
        let (Some(python), Some(node)) = (redis_py(), node.collect::<Option<Vec<_>>>()) else {
            return Ok(None);
        };
        let build = "build --quiet --locked --manifest-path xtask/redis_rs/Cargo.toml --target-dir";
        let place = root.join("target/redis-rs");
        succeed(cargo(build).arg(&place))?;
        Ok(Some(Self { python, redis_rs: place.join("debug/redis-rs"), node: node.join(",") }))
    }

    /// Tell the tests where the clients are.
    pub(crate) fn tell<'a>(&self, tests: &'a mut Command) -> &'a mut Command {
        let Self { python, redis_rs, node } = self;
        tests.env("REDIS_PYTHON", python).env("REDIS_RS", redis_rs).env("REDIS_NODE", node)
    }
}

/// A Python that has redis-py. It is made if it is missing and that is possible.
pub(crate) fn redis_py() -> Option<PathBuf> {
    let place = env::current_dir().ok()?.join("target/redis-py").join(REDIS_PY);
    let python = place.join("bin/python");
    let there = || quietly(Command::new(&python).args(["-c", "import redis"]));
    let fetch = || venv(&place, &[&format!("redis=={REDIS_PY}")]);
    (there() || fetch() && there()).then_some(python)
}

/// Install a version of redlock, and ioredis, into this place, unless they are there.
fn redlock(place: &Path, version: &str) -> bool {
    let there = || {
        let packages = ["ioredis", "redlock"].map(|name| place.join("node_modules").join(name));
        packages.iter().all(|package| package.join("package.json").exists())
    };
    let fetch = || {
        let mut npm = command("npm install --silent --no-save --no-package-lock --ignore-scripts");
        npm.arg("--prefix").arg(place).args([IOREDIS, &format!("redlock@{version}")]);
        fs::create_dir_all(place).is_ok() && succeed(&mut npm).is_ok()
    };
    there() || fetch() && there()
}

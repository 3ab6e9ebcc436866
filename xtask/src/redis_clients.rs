//! Real Redis clients for the tests of the Redis door. What Debian does not have is put below
//! `target`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{cargo, command, quietly, succeed};

/// The Debian packages that are needed.
pub(crate) const PACKAGES: &str = "redis-tools python3-venv nodejs curl";

/// The version of redis-py.
const REDIS_PY: &str = "8.1.0";

/// ioredis and what it needs, from npm.
const IOREDIS: [(&str, &str); 9] = [
    ("ioredis", "5.11.1"),
    ("@ioredis/commands", "1.10.0"),
    ("cluster-key-slot", "1.1.1"),
    ("debug", "4.4.3"),
    ("denque", "2.1.0"),
    ("ms", "2.1.3"),
    ("redis-errors", "1.2.0"),
    ("redis-parser", "3.0.0"),
    ("standard-as-callback", "2.1.0"),
];

/// The two versions of redlock that are in use, each with what it needs besides ioredis.
const REDLOCK: [[(&str, &str); 2]; 2] = [
    [("redlock", "4.2.0"), ("bluebird", "3.7.2")],
    [("redlock", "5.0.0-beta.2"), ("node-abort-controller", "3.1.1")],
];

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
    pub(crate) fn prepare() -> Option<Self> {
        let root = env::current_dir().ok()?;
        let tools = ["redis-cli --version", "node --version", "curl --version"];
        let there = tools.iter().all(|tool| quietly(&mut command(tool)));
        let python = redis_py().filter(|_| there)?;
        let node = REDLOCK.iter().map(|packages| {
            let place = root.join("target/redlock").join(packages[0].1).join("node_modules");
            npm(&place, packages).then(|| place.display().to_string())
        });
        let node = node.collect::<Option<Vec<_>>>()?.join(",");
        let build = "build --quiet --locked --manifest-path xtask/redis_rs/Cargo.toml --target-dir";
        let place = root.join("target/redis-rs");
        succeed(cargo(build).arg(&place)).ok()?;
        Some(Self { python, redis_rs: place.join("debug/redis-rs"), node })
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
    let fetch = || {
        let made = succeed(Command::new("python3").args(["-m", "venv"]).arg(&place)).is_ok();
        let mut pip = Command::new(place.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        made && succeed(pip.arg(format!("redis=={REDIS_PY}"))).is_ok()
    };
    (there() || fetch() && there()).then_some(python)
}

/// Fetch packages and ioredis from npm into this place. npm itself, which would do the same, comes
/// with hundreds of Debian packages.
fn npm(place: &Path, packages: &[(&str, &str)]) -> bool {
    let fetch = |(name, version): &(&str, &str)| {
        let directory = place.join(name);
        if directory.join("package.json").exists() {
            return true;
        }
        let file = name.rsplit('/').next().unwrap_or(name);
        let url = format!("https://registry.npmjs.org/{name}/-/{file}-{version}.tgz");
        let archive = place.join("archive.tgz");
        let mut curl = command("curl --fail --silent --show-error --location --max-time 60");
        let mut tar = command("tar --extract --gzip --strip-components=1");
        fs::create_dir_all(&directory).is_ok()
            && succeed(curl.arg("--output").arg(&archive).arg(url)).is_ok()
            && succeed(tar.arg("--file").arg(&archive).arg("--directory").arg(&directory)).is_ok()
    };
    IOREDIS.iter().chain(packages).all(fetch)
}

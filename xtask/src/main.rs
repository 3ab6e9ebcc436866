//! `cargo xtask test` is everything CI does; the other tasks are parts of it, or help to pass it.

use std::env;
use std::path::Path;
use std::process::ExitCode;

mod bench;
mod docs;
mod files;
mod mutants;
mod run;
mod test;
mod tidy;

const HELP: &str = "\
Usage: cargo xtask TASK

  test            everything CI does; with CI=true nothing may be skipped
  tidy            the rules of style that no other tool knows
  fmt             format every file, also those that cargo fmt does not find
  docs [--check]  write the generated documents, or say which are stale
  bench node [--json] [--smoke]
                  how fast a node is, beside what people use instead; takes two minutes
  bench daemon [--json] [--smoke]
                  the same through the socket of the service; takes two minutes
  mutants [FILE]  change the algorithms in small ways and see the tests fail; takes hours
";

fn main() -> ExitCode {
    // Tasks speak of files by their path in the repository.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    if let Err(error) = env::set_current_dir(root) {
        eprintln!("xtask: {error}");
        return ExitCode::FAILURE;
    }
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args[..] {
        ["test"] => test::run(),
        ["tidy"] => tidy::run(),
        ["fmt"] => test::format(false),
        ["docs"] => docs::write(),
        ["docs", "--check"] => docs::check(),
        ["bench", "node", ref options @ ..] if for_benches(options) => bench::node(options),
        ["bench", "daemon", ref options @ ..] if for_benches(options) => bench::daemon(options),
        ["mutants"] => mutants::run(None),
        ["mutants", file] => mutants::run(Some(file)),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Are these the words that a benchmark knows?
fn for_benches(options: &[&str]) -> bool {
    options.iter().all(|option| ["--json", "--smoke"].contains(option))
}

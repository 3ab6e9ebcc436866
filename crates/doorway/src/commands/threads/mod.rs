//! `doorway threads`: mutual exclusion in shared memory.

pub(crate) mod bench;
pub(crate) mod check;
mod finding;
pub(crate) mod list;
mod page;

use std::io::Write;

use clap::Subcommand;
use doorway_threads::{Bypass, Claims};
use serde::Serialize;
use serde_json::{Value, json};

/// Threads in one memory: list the algorithms, check every schedule, measure the locks
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::Args),
    Check(check::Args),
    Bench(bench::Args),
}

/// Do what was asked.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.command {
        Command::List(args) => list::run(args, out),
        Command::Check(args) => check::run(args, out),
        Command::Bench(args) => bench::run(args, out),
    }
}

/// What is claimed of an algorithm for so many processes, under the names that scripts rely on.
#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "these are the fields of a JSON object")]
struct ClaimRecord {
    n: usize,
    exclusion: bool,
    deadlock_free: bool,
    lockout_free: bool,
    bypass_all: Value,
    bypass_one: Value,
    fifo: bool,
}

impl ClaimRecord {
    fn new(claims: &Claims, n: usize) -> Self {
        let (bypass_all, bypass_one) = bypass_values(Some((claims.bypass)(n)));
        Self {
            n,
            exclusion: claims.exclusion,
            deadlock_free: claims.deadlock_free,
            lockout_free: (claims.lockout_free)(n),
            bypass_all,
            bypass_one,
            fifo: (claims.fifo)(n),
        }
    }
}

/// How often one is overtaken by all others and by one of them, as JSON.
fn bypass_values(bypass: Option<Bypass>) -> (Value, Value) {
    match bypass {
        None => (Value::Null, Value::Null),
        Some(Bypass::Unbounded) => (json!("unbounded"), json!("unbounded")),
        Some(Bypass::AtMost { all, one }) => (json!(all), json!(one)),
    }
}

/// The letters of fences, as they are written in a sentence.
fn letters(fences: &str) -> String {
    fences.chars().map(String::from).collect::<Vec<_>>().join(", ")
}

/// The same for a table, where nothing would look forgotten.
fn letters_or_dash(fences: &str) -> String {
    if fences.is_empty() { "-".to_owned() } else { letters(fences) }
}

/// How often one is overtaken, for a person.
fn bypass_text(bypass: Bypass) -> String {
    match bypass {
        Bypass::Unbounded => "unbounded".to_owned(),
        Bypass::AtMost { all, one } => format!("at most {all} by all, {one} by one"),
    }
}

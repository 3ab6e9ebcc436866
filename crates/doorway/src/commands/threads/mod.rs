//! `doorway threads`: mutual exclusion in shared memory.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod explain;
mod finding;
pub(crate) mod list;
mod page;

use std::io::Write;

use clap::Subcommand;
use doorway_threads::{Bypass, Claims};
use serde::Serialize;
use serde_json::{Value, json};

/// Algorithms and locks between threads: list, explain, check every schedule, measure
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::Args),
    Explain(explain::Args),
    Check(check::Args),
    Bench(bench::Args),
}

/// Run the subcommand.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    match &args.command {
        Command::List(args) => list::run(args, out),
        Command::Explain(args) => explain::run(args, out),
        Command::Check(args) => check::run(args, out),
        Command::Bench(args) => bench::run(args, out),
    }
}

/// What is claimed of an algorithm for `n` processes, under names that scripts rely on.
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

/// How often a waiting process is overtaken, by all others and by a single one, as JSON.
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

/// The letters of fences for a table, or a dash if there are none.
fn letters_or_dash(fences: &str) -> String {
    if fences.is_empty() { "-".to_owned() } else { letters(fences) }
}

/// How often a waiting process is overtaken, as text.
fn bypass_text(bypass: Bypass) -> String {
    match bypass {
        Bypass::Unbounded => "unbounded".to_owned(),
        Bypass::AtMost { all, one } => format!("at most {all} by all, {one} by one"),
    }
}

//! `doorway problems list`: every problem, with what it is.

use std::io::Write;

use serde::Serialize;

use super::problem::{Problem, all};
use crate::commands::print_json;
use crate::table::Table;

/// List the problems
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A row of the list, under the names that scripts rely on.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    summary: &'static str,
    origin: &'static str,
    refuted: bool,
}

impl Row {
    fn new(problem: &Problem) -> Self {
        let Problem { name, summary, origin, .. } = *problem;
        Self { name, summary, origin, refuted: problem.refuted().is_some() }
    }
}

/// Print the list.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let rows: Vec<Row> = all().iter().map(Row::new).collect();
    if args.json {
        return print_json(out, &rows);
    }
    let mut table = Table::new(["NAME", "ORIGIN", "WHAT IT IS", ""].map(str::to_owned));
    for Row { name, summary, origin, refuted } in rows {
        let refuted = if refuted { "refuted" } else { "" };
        table.row([name, origin, summary, refuted].map(str::to_owned));
    }
    Ok(table.print(out, 0)?)
}

//! `doorway threads list`: every algorithm between threads, one line each.

use std::io::Write;

use doorway_threads::algorithms::{ALL, Entry};
use doorway_threads::{Info, MOST};
use serde::Serialize;

use super::{ClaimRecord, letters_or_dash};
use crate::commands::print_json;
use crate::table::Table;

/// List the algorithms
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What an algorithm declares, under the names that scripts rely on.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    origin: &'static str,
    year: Option<u16>,
    fewest: usize,
    most: usize,
    registers: &'static str,
    primitive: &'static str,
    fences: &'static str,
    fences_beyond_tso: &'static str,
    refuted: bool,
    claims: Vec<ClaimRecord>,
}

impl Row {
    fn new(Entry { info, lock, .. }: &Entry) -> Self {
        let claimed = [2, 3].into_iter().filter(|n| info.serves(*n));
        Self {
            name: info.name,
            origin: info.origin,
            year: info.year(),
            fewest: info.fewest,
            most: info.most,
            registers: info.registers,
            primitive: info.primitive.name(),
            fences: info.fences,
            fences_beyond_tso: info.fences_beyond_tso,
            refuted: !lock,
            claims: claimed.map(|n| ClaimRecord::new(&info.claims, n)).collect(),
        }
    }
}

/// How many processes it serves, in words.
pub(super) fn served(info: &Info) -> String {
    match (info.fewest, info.most) {
        (fewest, most) if fewest == most => format!("{most}"),
        (_, MOST) => "n".to_owned(),
        (fewest, most) => format!("{fewest} to {most}"),
    }
}

/// What is claimed of it, in a few words: for three processes, which some serve worse than two.
fn claims(info: &Info) -> &'static str {
    let n = info.most.min(3);
    if (info.claims.fifo)(n) {
        "first come, first served"
    } else if (info.claims.lockout_free)(n) {
        "everyone gets in"
    } else {
        "one gets in"
    }
}

/// Print the list.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.json {
        return print_json(out, &ALL.iter().map(Row::new).collect::<Vec<_>>());
    }
    let heading = ["NAME", "ORIGIN", "N", "REGISTERS", "NEEDS", "FENCES", "CLAIMED", ""];
    let mut table = Table::new(heading.map(str::to_owned));
    for Entry { info, lock, .. } in ALL {
        table.row([
            info.name.to_owned(),
            info.origin.to_owned(),
            served(info),
            info.registers.to_owned(),
            info.primitive.name().to_owned(),
            letters_or_dash(info.fences),
            claims(info).to_owned(),
            if *lock { "" } else { "refuted" }.to_owned(),
        ]);
    }
    Ok(table.print(out, 0)?)
}

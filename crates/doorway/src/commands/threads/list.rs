//! `doorway threads list`: lists every algorithm between threads, one line each.

use std::io::{self, Write};

use doorway_threads::algorithms::{ALL, Entry};
use doorway_threads::{Info, MOST};
use rustix::termios::tcgetwinsize;
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

/// What an algorithm declares, under names that scripts rely on.
#[derive(Serialize)]
pub(super) struct Row {
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
    pub(super) fn new(Entry { info, lock, .. }: &Entry) -> Self {
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

/// The number of processes that an algorithm serves, in words.
pub(super) fn served(info: &Info) -> String {
    match (info.fewest, info.most) {
        (fewest, most) if fewest == most => format!("{most}"),
        (_, MOST) => "n".to_owned(),
        (fewest, most) => format!("{fewest} to {most}"),
    }
}

/// What is claimed of an algorithm, in a few words: for three processes, if it serves three, since
/// some claims hold for two only.
fn claims(info: &Info) -> &'static str {
    let n = info.most.min(3);
    if (info.claims.fifo)(n) {
        "first come, first served"
    } else if (info.claims.lockout_free)(n) {
        "each one gets in"
    } else {
        "one gets in"
    }
}

/// Print the list.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.json {
        return print_json(out, &ALL.iter().map(Row::new).collect::<Vec<_>>());
    }
    let width = tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
    // A terminal that does not know its width says 0.
    let width = width.filter(|width| *width > 0);
    Ok(out.write_all(&text(width)?)?)
}

/// The list with all columns if it fits this width, or if there is no limit; else with fewer.
fn text(width: Option<usize>) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    wide().print(&mut all, 0)?;
    let widest = String::from_utf8_lossy(&all).lines().map(|line| line.chars().count()).max();
    if width.is_none_or(|width| widest.is_some_and(|widest| widest <= width)) {
        return Ok(all);
    }
    let mut few = Vec::new();
    narrow().print(&mut few, 0)?;
    writeln!(
        few,
        "\nOrigin and registers: in a wider terminal, or `doorway threads explain NAME`."
    )?;
    Ok(few)
}

fn wide() -> Table {
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
    table
}

/// The columns that fit into 80 characters.
fn narrow() -> Table {
    let heading = ["NAME", "N", "NEEDS", "FENCES", "CLAIMED"];
    let mut table = Table::new(heading.map(str::to_owned));
    for Entry { info, lock, .. } in ALL {
        table.row([
            info.name.to_owned(),
            served(info),
            info.primitive.name().to_owned(),
            letters_or_dash(info.fences),
            if *lock { claims(info) } else { "refuted" }.to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_the_terminal() {
        let shown = |width| String::from_utf8(text(width).unwrap()).unwrap();
        let (all, few) = (shown(None), shown(Some(80)));
        assert!(few.lines().all(|line| line.chars().count() <= 80), "{few}");
        for entry in ALL {
            let named = |line: &str| line.starts_with(&format!("{} ", entry.info.name));
            assert!(all.lines().any(named) && few.lines().any(named), "{}", entry.info.name);
        }
        assert_eq!(shown(Some(200)), all);
    }
}

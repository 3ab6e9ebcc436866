//! `doorway list`: every algorithm, in one line each.

use std::io::Write;

use doorway_core::algorithms::ALL;
use doorway_core::{Channel, Formula, Info, Kind, Needs};
use serde::Serialize;

use super::print_json;
use crate::table::Table;

/// List the algorithms between nodes (`doorway threads list` has those between threads)
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What an algorithm declares, as JSON; the names are a promise to scripts.
#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "these are the fields of a JSON object")]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) paper: &'static str,
    pub(crate) year: u16,
    pub(crate) kind: &'static str,
    pub(crate) channel: &'static str,
    pub(crate) needs: &'static str,
    pub(crate) shared: bool,
    pub(crate) permits: bool,
    pub(crate) withdraws: bool,
    pub(crate) served: bool,
    pub(crate) refuted: bool,
    pub(crate) refutation: Option<&'static str>,
    pub(crate) messages_min: &'static str,
    pub(crate) messages_max: &'static str,
    pub(crate) messages_light: Option<&'static str>,
    pub(crate) messages_heavy: Option<&'static str>,
}

impl Row {
    pub(crate) fn new(info: &Info) -> Self {
        let text = |formula: Option<Formula>| formula.map(|formula| formula.text);
        Self {
            name: info.name,
            summary: info.summary,
            paper: info.paper,
            year: info.year,
            kind: kind(info.kind),
            channel: channel(info.channel),
            needs: needs(info.needs),
            shared: info.shared,
            permits: info.permits,
            withdraws: info.withdraws,
            served: info.served,
            refuted: info.refuted.is_some(),
            refutation: info.refuted,
            messages_min: info.messages.least.text,
            messages_max: info.messages.most.text,
            messages_light: text(info.messages.light),
            messages_heavy: text(info.messages.heavy),
        }
    }

    /// The authors: the part of the paper before its title, as in "A", "A & B" or "A, B & C".
    fn authors(&self) -> &'static str {
        let first = self.paper.find(", ").unwrap_or(self.paper.len());
        let rest = self.paper.get(first + 2..).unwrap_or_default();
        let second = rest.find(", ").unwrap_or(rest.len());
        let words: Vec<&str> = rest[..second].split(' ').collect();
        let end = if matches!(words[..], [_, "&", _]) { first + 2 + second } else { first };
        &self.paper[..end]
    }

    /// The modes in which a client may ask.
    pub(crate) fn modes(&self) -> &'static str {
        match (self.shared, self.permits) {
            (false, false) => "exclusive",
            (true, false) => "exclusive, shared",
            (false, true) => "permits",
            (true, true) => "permits, shared",
        }
    }

    fn messages(&self) -> String {
        if self.messages_min == self.messages_max {
            self.messages_min.to_owned()
        } else {
            format!("{} .. {}", self.messages_min, self.messages_max)
        }
    }
}

/// The columns that a narrow terminal leaves out.
const CHANNEL: usize = 3;
const MODES: usize = 4;

/// Print the list.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let rows: Vec<Row> = ALL.iter().map(|entry| Row::new(&entry.info)).collect();
    if args.json {
        return print_json(out, &rows);
    }
    let heading = ["NAME", "PAPER", "KIND", "CHANNEL", "MODES", "MESSAGES", ""];
    let mut table = Table::new(heading.map(str::to_owned)).optional([CHANNEL, MODES]);
    for row in &rows {
        table.row([
            row.name.to_owned(),
            format!("{} {}", row.authors(), row.year),
            row.kind.to_owned(),
            row.channel.to_owned(),
            row.modes().to_owned(),
            row.messages(),
            if row.refuted { "refuted".to_owned() } else { String::new() },
        ]);
    }
    Ok(table.print(out, 0)?)
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Central => "central",
        Kind::Permission => "permission",
        Kind::Quorum => "quorum",
        Kind::Token => "token",
    }
}

/// The name of a channel.
pub(crate) fn channel(channel: Channel) -> &'static str {
    match channel {
        Channel::Fifo => "fifo",
        Channel::Unordered => "unordered",
    }
}

fn needs(needs: Needs) -> &'static str {
    match needs {
        Needs::Nothing => "nothing",
        Needs::Quorums => "quorums",
        Needs::Weights => "weights",
        Needs::Tree => "tree",
        Needs::Wiring => "wiring",
        Needs::Graph => "graph",
    }
}

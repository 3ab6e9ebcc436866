//! `doorway explain ALGORITHM`: assumptions, idea, rules, why it is right, cost, and a picture.

use std::io::{self, IsTerminal as _, Write};

use doorway_core::algorithms::Entry;
use doorway_core::{Channel, Formula, Group, GroupError, Info, Needs, Per, Shape};
use doorway_lab::diagram::{self, Format};
use doorway_lab::numbers::short;
use serde::Serialize;

use super::diagram::example_of;
use super::list::Row;
use super::print_json;
use crate::group_args::{ShapeArgs, parse_size};
use crate::header::{Header, Section};
use crate::names;
use crate::table::Table;

/// Explain an algorithm: what it assumes, its rules, why it is right, what it costs
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The algorithm
    #[arg(value_parser = names::algorithms(), hide_possible_values = true)]
    algorithm: &'static Entry,
    /// Work the formulas out for N nodes [default: for a few sizes]
    #[arg(short = 'n', value_name = "N", value_parser = parse_size)]
    nodes: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shape: ShapeArgs,
}

/// The sizes for which formulas are worked out unless a group is given: tiny, Maekawa's example,
/// and many.
const SIZES: [usize; 3] = [3, 13, 100];

impl Args {
    /// The groups to work formulas out for: the one asked for, or one of each size that can be.
    fn groups(&self) -> Result<Vec<Group>, GroupError> {
        let group = |size: &usize| self.shape.group(&self.algorithm.info, *size);
        if let Some(size) = &self.nodes {
            return Ok(vec![group(size)?]);
        }
        let groups: Vec<Group> = SIZES.iter().filter_map(|size| group(size).ok()).collect();
        if groups.is_empty() { Ok(vec![group(&SIZES[0])?]) } else { Ok(groups) }
    }
}

/// How many nodes the small run has.
const PICTURE_SIZE: usize = 3;

#[derive(Serialize)]
struct Explanation {
    #[serde(flatten)]
    row: Row,
    idea: String,
    sections: Vec<Section>,
    cost: Vec<Cost>,
}

/// One formula, and what it comes to in each of the groups.
#[derive(Serialize)]
struct Cost {
    of: &'static str,
    formula: &'static str,
    values: Vec<Value>,
}

/// A value for a group of `n`; `None` is beyond all bounds.
#[derive(Serialize)]
struct Value {
    n: u32,
    messages: Option<f64>,
}

/// Print the explanation.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let info = &args.algorithm.info;
    let header = Header::of(args.algorithm.source);
    let row = Row::new(info);
    let cost = cost(info, &args.groups()?);
    if args.json {
        let Header { idea, sections, .. } = header;
        return print_json(out, &Explanation { row, idea, sections, cost });
    }
    part(out, info.name, &format!("{}\n\n{}", info.summary, header.paper))?;
    if let Some(how) = info.refuted {
        part(out, "Refuted", how)?;
    }
    part(out, "Assumes", &assumptions(info, &row))?;
    part(out, "Idea", &header.idea)?;
    for Section { title, text } in &header.sections {
        part(out, title, text)?;
    }
    heading(out, "Messages per entry")?;
    print_cost(out, info, &cost)?;
    let group = info.group(PICTURE_SIZE, &Shape::default())?;
    let picture = diagram::render(&example_of(args.algorithm, group)?, Format::Text);
    Ok(part(out, "A small run", &picture)?)
}

/// A part of the page: a heading, and its text set in.
pub(crate) fn part(out: &mut dyn Write, title: &str, text: &str) -> io::Result<()> {
    heading(out, title)?;
    for line in text.lines() {
        writeln!(out, "{}", format!("  {line}").trim_end())?;
    }
    writeln!(out)
}

/// A title, bold where a person reads it.
pub(crate) fn heading(out: &mut dyn Write, title: &str) -> io::Result<()> {
    let (on, off) = if io::stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    writeln!(out, "{on}{title}{off}")
}

fn assumptions(info: &Info, row: &Row) -> String {
    let channel = match info.channel {
        Channel::Fifo => "messages of one node to another arrive in the order sent",
        Channel::Unordered => "messages may overtake each other",
    };
    let group = match info.needs {
        Needs::Nothing => "its members, in order",
        Needs::Quorums => "its members, and a quorum for each (see `doorway quorums`)",
        Needs::Weights => "its members, and the weight of each one's vote",
        Needs::Tree => "its members, spanned by a tree",
        Needs::Wiring => "its members, wired as a mesh, a ring or a tree",
        Needs::Graph => "its members, a connected graph of them, and who starts",
    };
    let modes = row.modes();
    format!(
        "Channels  {channel}; none is lost or doubled\n\
         Modes     {modes}\n\
         Group     {group}"
    )
}

fn cost(info: &Info, groups: &[Group]) -> Vec<Cost> {
    let claim = &info.messages;
    let lines = [
        ("at least", Some(claim.least)),
        ("at most", Some(claim.most)),
        ("asked one at a time", claim.light),
        ("asked by all, always", claim.heavy),
    ];
    let value = |formula: Formula, group: &Group| {
        let messages = Some((formula.of)(group)).filter(|messages| messages.is_finite());
        Value { n: group.size(), messages }
    };
    let line = |(of, formula): (_, Option<Formula>)| {
        let formula = formula?;
        let values = groups.iter().map(|group| value(formula, group)).collect();
        Some(Cost { of, formula: formula.text, values })
    };
    lines.into_iter().filter_map(line).collect()
}

fn print_cost(out: &mut dyn Write, info: &Info, cost: &[Cost]) -> anyhow::Result<()> {
    let sizes = cost[0].values.iter().map(|value| format!("N = {}", value.n));
    let mut table = Table::new(["", ""].into_iter().map(str::to_owned).chain(sizes));
    for Cost { of, formula, values } in cost {
        let values = values.iter().map(|value| value.messages.map_or("-".to_owned(), short));
        table.row([of, formula].into_iter().map(|cell| (*cell).to_owned()).chain(values));
    }
    table.print(out, 2)?;
    let bound = match info.messages.per {
        Per::Entry => "The bounds hold for every single entry.",
        Per::Run => "The bounds hold for the mean over a run.",
    };
    Ok(writeln!(out, "\n  {bound}\n")?)
}

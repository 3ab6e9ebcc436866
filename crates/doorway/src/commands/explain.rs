//! `doorway explain ALGORITHM`: assumptions, idea, rules, why it is right, cost, and a small run.
//!
//! For a refuted algorithm: what differs from the right one, and a run that shows the flaw.

use std::io::{self, IsTerminal as _, Write};

use anyhow::ensure;
use doorway_core::algorithms::Entry;
use doorway_core::{Channel, Formula, Group, GroupError, Info, Kind, Needs, Per, Shape};
use doorway_lab::diagram::{self, Format};
use doorway_lab::numbers::short;
use doorway_lab::{refutations, script, stories};
use serde::Serialize;

use super::diagram::example_of;
use super::list::Row;
use super::{print_json, threads};
use crate::failure::Usage;
use crate::group_args::{ShapeArgs, parse_size};
use crate::header::{Header, Section};
use crate::names;
use crate::table::Table;
use crate::wrap;

const EXAMPLES: &str = "\
Examples:
  doorway explain ricart-agrawala
  doorway explain maekawa -n 13
  doorway explain knuth";

/// Explain an algorithm: what it assumes, its rules, why it is right, what it costs
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The algorithm, between nodes or between threads
    #[arg(value_parser = names::explained(), hide_possible_values = true)]
    algorithm: Subject,
    /// Compute the numbers of messages for N nodes [default: 3, 13 and 100]
    #[arg(short = 'n', value_name = "N", value_parser = parse_size)]
    nodes: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shape: ShapeArgs,
}

/// An algorithm of either family.
#[derive(Clone, Copy)]
pub(crate) enum Subject {
    Nodes(&'static Entry),
    Threads(&'static doorway_threads::algorithms::Entry),
}

/// The sizes for which messages are counted unless one is given: tiny, Maekawa's example, and many.
const SIZES: [usize; 3] = [3, 13, 100];

impl Args {
    /// The groups for which messages are counted: the one asked for, or one of each possible size.
    fn groups(&self, info: &Info) -> Result<Vec<Group>, GroupError> {
        let group = |size: &usize| self.shape.group(info, *size);
        if let Some(size) = self.nodes.or_else(|| self.shape.quorums_by_hand()) {
            return Ok(vec![group(&size)?]);
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
    /// Why a service does not offer the algorithm, if it is right and not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_served: Option<&'static str>,
    idea: String,
    sections: Vec<Section>,
    cost: Vec<Cost>,
}

/// One formula, and its value for each of the groups.
#[derive(Serialize)]
struct Cost {
    of: &'static str,
    formula: &'static str,
    values: Vec<Value>,
}

/// A value for a group of `n` nodes; `None` if it is unbounded.
#[derive(Serialize)]
struct Value {
    n: u32,
    messages: Option<f64>,
}

/// Print the explanation.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let entry = match args.algorithm {
        Subject::Nodes(entry) => entry,
        Subject::Threads(entry) => {
            let plain = args.nodes.is_none() && args.shape.is_default();
            let name = entry.info.name;
            let reason = format!(
                "'{name}' is an algorithm between threads, which have no group: leave out -n and \
                 the options of groups"
            );
            ensure!(plain, Usage(reason));
            return threads::explain::print(entry, args.json, out);
        }
    };
    let info = &entry.info;
    let header = Header::about(entry);
    let row = Row::new(info);
    let cost = cost(info, &args.groups(info)?);
    let not_served = info.why_not_served();
    if args.json {
        let Header { idea, sections, .. } = header;
        return print_json(out, &Explanation { row, not_served, idea, sections, cost });
    }
    part(out, info.name, &format!("{}\n\n{}", info.summary, header.paper))?;
    if let Some(how) = info.refuted {
        part(out, "Refuted", how)?;
    }
    print_assumptions(out, info, &row)?;
    if let Some(why) = not_served {
        let text = format!("No `[[lock]]` of a service can name it, because {why}.");
        part(out, "Not served", &text)?;
    }
    part(out, "Idea", &header.idea)?;
    for Section { title, text } in &header.sections {
        part(out, title, text)?;
    }
    heading(out, "Messages per entry")?;
    print_cost(out, info, &cost)?;
    let stories = stories::all();
    let names = stories.iter().filter(|story| story.algorithm() == info.name);
    let names: Vec<_> = names.map(|story| format!("doorway story {}", story.name())).collect();
    if !names.is_empty() {
        part(out, "Stories", &names.join("\n"))?;
    }
    if let Some(refutation) = refutations::of(info.name) {
        let played = script::run(refutation.script)?;
        let picture = diagram::render(&played.trace, Format::Text);
        part(out, "A run that shows the flaw", &picture)?;
        return Ok(print_search(out, &refutation.command(), wrap::terminal_width())?);
    }
    let group = info.group(PICTURE_SIZE, &Shape::default())?;
    let picture = diagram::render(&example_of(entry, group)?, Format::Text);
    Ok(part(out, "A small run", &picture)?)
}

/// Print a part of the page: a heading, and its text indented.
pub(crate) fn part(out: &mut dyn Write, title: &str, text: &str) -> io::Result<()> {
    heading(out, title)?;
    if text.contains('│') {
        wrap::print_diagram(out, 2, text)?;
    } else {
        wrap::print_lines(out, 2, text)?;
    }
    writeln!(out)
}

/// Print the command that finds a flaw. If the terminal is too narrow for it, its lines end so that
/// they are one command for a shell.
fn print_search(out: &mut dyn Write, command: &str, most: Option<usize>) -> io::Result<()> {
    let line = format!("To find one by search: {command}");
    match most {
        Some(most) if line.chars().count() > most => {
            let lines = wrap::wrap(command, most.saturating_sub("   \\".len()), 2);
            writeln!(out, "To find one by search:\n  {}", lines.join(" \\\n    "))
        }
        _ => writeln!(out, "{line}"),
    }
}

/// Print a title, in bold on a terminal.
pub(crate) fn heading(out: &mut dyn Write, title: &str) -> io::Result<()> {
    let (on, off) = if io::stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    writeln!(out, "{on}{title}{off}")
}

fn print_assumptions(out: &mut dyn Write, info: &Info, row: &Row) -> io::Result<()> {
    let channel = match info.channel {
        Channel::Fifo => "messages from one node to another arrive in the order sent",
        Channel::Unordered => "messages may overtake each other",
    };
    let group = match info.needs {
        Needs::Nothing => "its members, in order",
        Needs::Quorums => "its members, and a quorum for each (see `doorway quorums`)",
        Needs::Weights => "its members, and the weight of each one's vote",
        Needs::Tree => "its members, spanned by a tree",
        Needs::Wiring => "its members, linked as a mesh, a ring or a tree",
        Needs::Graph => "its members, a connected graph of them, and the nodes that start",
    };
    heading(out, "Assumes")?;
    let mut table = Table::new([]);
    let channels = format!("{channel}; no message is lost or duplicated");
    table.row(["Channels".to_owned(), channels]);
    table.row(["Modes".to_owned(), row.modes().to_owned()]);
    table.row(["Group".to_owned(), group.to_owned()]);
    let giving_up = match info.kind {
        _ if info.withdraws => "a request can be withdrawn, and then keeps no other node waiting",
        Kind::Token | Kind::Central => "a request that waits holds nothing that others need",
        Kind::Permission | Kind::Quorum => {
            "a request cannot be withdrawn: others wait for it until it is granted or a view begins"
        }
    };
    table.row(["Giving up".to_owned(), giving_up.to_owned()]);
    table.print_body(out, 2)?;
    writeln!(out)
}

fn cost(info: &Info, groups: &[Group]) -> Vec<Cost> {
    let claim = &info.messages;
    let lines = [
        ("at least", Some(claim.least)),
        ("at most", Some(claim.most)),
        ("one request at a time", claim.light),
        ("all nodes always ask", claim.heavy),
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

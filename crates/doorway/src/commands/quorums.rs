//! `doorway quorums KIND -n N`: the quorums, their sizes and load, and Maekawa's four properties.

use std::io::{self, Write};

use anyhow::ensure;
use clap::ValueEnum;
use doorway_core::NodeId;
use doorway_core::quorums::{Kind, Properties, Quorums, Scheme};
use doorway_lab::numbers::grouped;
use serde::Serialize;

use super::print_json;
use crate::failure::Usage;
use crate::group_args::{parse_count, parse_size};
use crate::names;
use crate::progress::Busy;

const EXAMPLES: &str = "\
Examples:
  doorway quorums projective-plane -n 7
  doorway quorums weighted -n 3 --weights 2,1,1";

/// Print a quorum for each node, and verify the properties of the quorum system
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The construction
    #[arg(value_name = "KIND", value_parser = names::quorum_kinds())]
    kind: Kind,
    /// Set the number of nodes
    #[arg(short = 'n', value_name = "N", value_parser = parse_size)]
    nodes: usize,
    /// Set the weight of each node's vote, as in 2,1,1
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',', value_parser = parse_count)]
    weights: Option<Vec<u32>>,
    /// Choose one of the two schemes of the triangle [default: both, in turn]
    #[arg(long, value_name = "SCHEME")]
    scheme: Option<SchemeName>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The schemes of the triangular arrangement by name.
#[derive(Clone, Copy, ValueEnum)]
enum SchemeName {
    #[value(name = "1")]
    First,
    #[value(name = "2")]
    Second,
    Both,
}

impl Args {
    fn build(&self) -> anyhow::Result<Quorums> {
        let size = u32::try_from(self.nodes)?;
        let weights = self.weights.as_deref();
        match self.scheme {
            None => Ok(Quorums::build(self.kind, size, weights)?),
            Some(_) if self.kind != Kind::Triangle => {
                let reason =
                    format!("{} quorums have no schemes; only triangle quorums do", self.kind);
                Err(Usage(reason).into())
            }
            Some(_) if weights.is_some() => {
                Err(Usage("triangle quorums have no use for weights".to_owned()).into())
            }
            Some(scheme) => Ok(Quorums::triangle(size, scheme.scheme())?),
        }
    }
}

impl SchemeName {
    fn scheme(self) -> Scheme {
        match self {
            Self::First => Scheme::First,
            Self::Second => Scheme::Second,
            Self::Both => Scheme::Both,
        }
    }
}

/// The work grows with the square of the number of nodes; beyond this it takes more than a second.
const MANY: usize = 10_000;

/// Print the quorums. If two of them do not meet, that is a failure.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let (quorums, properties) = {
        let many = args.nodes > MANY;
        let text =
            || format!("verifying that any two of {} quorums meet", grouped(args.nodes as u64));
        let _busy = many.then(|| Busy::new(text()));
        let quorums = args.build()?;
        let properties = quorums.properties();
        (quorums, properties)
    };
    if args.json {
        print_json(out, &Report::new(args.kind, &quorums, &properties))?;
    } else {
        print(out, args.kind, &quorums, &properties)?;
    }
    ensure!(properties.a, "two of these quorums do not meet");
    Ok(())
}

/// The JSON output; its names are a promise to scripts.
#[derive(Serialize)]
struct Report {
    kind: &'static str,
    n: u32,
    size_min: u32,
    size_max: u32,
    size_mean: f64,
    load_min: u32,
    load_max: u32,
    properties: Letters,
    /// The quorum of node 1 first; with several turns, those of the first.
    quorums: Vec<Vec<u32>>,
    /// The quorums of every turn, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    turns: Vec<Vec<Vec<u32>>>,
}

/// The properties under the letters of the paper.
#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the paper has four properties")]
struct Letters {
    a: bool,
    b: bool,
    c: bool,
    d: bool,
}

impl Report {
    fn new(kind: Kind, quorums: &Quorums, properties: &Properties) -> Self {
        let Properties { a, b, c, d, size_min, size_max, size_mean, load_min, load_max } =
            *properties;
        let number = |node: &NodeId| node.0 + 1;
        let set = |node, turn| quorums.quorum(node, turn).iter().map(number).collect();
        let sets = |turn| (0..quorums.size()).map(|node| set(NodeId(node), turn)).collect();
        Self {
            kind: kind.name(),
            n: quorums.size(),
            size_min,
            size_max,
            size_mean,
            load_min,
            load_max,
            properties: Letters { a, b, c, d },
            quorums: sets(0),
            turns: (0..quorums.turns()).filter(|_| quorums.turns() > 1).map(sets).collect(),
        }
    }
}

fn print(out: &mut dyn Write, kind: Kind, quorums: &Quorums, found: &Properties) -> io::Result<()> {
    let (size, turns) = (quorums.size(), quorums.turns());
    writeln!(out, "{kind} quorums for {size} nodes")?;
    let range = |min: u32, max: u32| {
        if min == max { min.to_string() } else { format!("{min} to {max}") }
    };
    let sizes = range(found.size_min, found.size_max);
    writeln!(out, "\n  size   {sizes} nodes, on the mean {:.2}", found.size_mean)?;
    let load = range(found.load_min, found.load_max);
    writeln!(out, "  load   each node is in {load} quorums\n")?;
    for (letter, holds, meaning) in [
        ('a', found.a, "any two quorums meet"),
        ('b', found.b, "every node is in its own quorum"),
        ('c', found.c, "all quorums are of one size"),
        ('d', found.d, "all nodes are in equally many quorums"),
    ] {
        writeln!(out, "  ({letter})  {:3}  {meaning}", if holds { "yes" } else { "no" })?;
    }
    let width = size.to_string().len();
    for turn in 0..turns {
        writeln!(out)?;
        if turns > 1 {
            writeln!(out, "  turn {}", turn + 1)?;
        }
        for node in (0..size).map(NodeId) {
            write!(out, "  {node:width$}: ")?;
            for member in quorums.quorum(node, turn) {
                write!(out, " {member:width$}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

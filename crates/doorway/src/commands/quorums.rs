//! `doorway quorums KIND -n N`: the quorums, their sizes and load, and Maekawa's four properties.

mod table;

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::ensure;
use clap::ValueEnum;
use doorway_core::NodeId;
use doorway_core::quorums::{Kind, Plan, Properties, Quorums, Scheme};
use doorway_lab::numbers::grouped;
use doorway_lab::pictures;
use serde::Serialize;

use super::print_json;
use crate::failure::Usage;
use crate::files;
use crate::group_args::parse_size;
use crate::names;
use crate::numbers::whole;
use crate::progress::Busy;

const EXAMPLES: &str = "\
Examples:
  doorway quorums projective-plane -n 7 --picture plane.svg
  doorway quorums weighted -n 3 --weights 2,1,1
  doorway quorums '1,2,3;2,3;3'
  doorway quorums --table";

/// Print a quorum for each node, and verify the properties of the quorum system; or compare the
/// constructions
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The construction, or the quorum of every node, as in '1,2,3;2,3;3'
    #[arg(value_name = "KIND|SETS", value_parser = names::quorum_plans())]
    #[arg(required_unless_present = "table")]
    plan: Option<Plan>,
    /// Set the number of nodes; with --table, print sizes up to N [default: 31]
    #[arg(short = 'n', value_name = "N", value_parser = parse_size)]
    nodes: Option<usize>,
    /// Print the mean size of a quorum for each construction and number of nodes, beside the bound
    #[arg(long, conflicts_with_all = ["plan", "weights", "scheme", "picture"])]
    table: bool,
    /// Set the weight of each node's vote, as in 2,1,1
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',', value_parser = whole(0..=u32::MAX))]
    #[arg(allow_hyphen_values = true)]
    weights: Option<Vec<u32>>,
    /// Choose one of the two schemes of the triangle [default: both, in turn]
    #[arg(long, value_name = "SCHEME")]
    scheme: Option<SchemeName>,
    /// Draw the quorum of every node to FILE.svg
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
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
    /// How the quorums are made, and for how many nodes.
    fn plan(&self) -> Result<(Plan, usize), Usage> {
        let plan = match (self.plan.clone(), self.scheme) {
            (None, _) => return Err(Usage("say which quorums to build".to_owned())),
            (Some(plan), None) => plan,
            (Some(Plan::Kind(Kind::Triangle)), Some(scheme)) => Plan::Triangle(scheme.scheme()),
            (Some(plan), Some(_)) => {
                let reason = format!("{plan} quorums have no schemes; only triangle quorums do");
                return Err(Usage(reason));
            }
        };
        let size = self.nodes.or_else(|| plan.size());
        let missing =
            || Usage(format!("say with -n <N> for how many nodes to build {plan} quorums"));
        size.map(|size| (plan.clone(), size)).ok_or_else(missing)
    }
}

/// What the quorums are called in a heading.
fn title(plan: &Plan) -> String {
    match plan {
        Plan::Sets(_) => "hand-made".to_owned(),
        plan => plan.to_string(),
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
    if args.table {
        return table::print(args.nodes, args.json, out);
    }
    if let Some(path) = &args.picture {
        files::ensure_svg(path, "a quorum")?;
    }
    let (plan, size) = args.plan()?;
    let (quorums, properties) = {
        let many = size > MANY;
        let text = || format!("verifying that any two of {} quorums meet", grouped(size as u64));
        let _busy = many.then(|| Busy::new(text()));
        let quorums = plan.build(u32::try_from(size)?, args.weights.as_deref())?;
        let properties = quorums.properties();
        (quorums, properties)
    };
    if let Some(path) = &args.picture {
        files::write(path, &pictures::quorums(&plan, &quorums).map_err(Usage)?)?;
    }
    let title = title(&plan);
    if args.json {
        print_json(out, &Report::new(title, &quorums, &properties))?;
    } else {
        print(out, &title, &quorums, &properties)?;
    }
    ensure!(properties.a, "two of these quorums do not meet");
    Ok(())
}

/// The JSON output; its names are a promise to scripts.
#[derive(Serialize)]
struct Report {
    kind: String,
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
    fn new(kind: String, quorums: &Quorums, properties: &Properties) -> Self {
        let Properties { a, b, c, d, size_min, size_max, size_mean, load_min, load_max } =
            *properties;
        let number = |node: &NodeId| node.0 + 1;
        let set = |node, turn| quorums.quorum(node, turn).iter().map(number).collect();
        let sets = |turn| (0..quorums.size()).map(|node| set(NodeId(node), turn)).collect();
        Self {
            kind,
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

fn print(out: &mut dyn Write, kind: &str, quorums: &Quorums, found: &Properties) -> io::Result<()> {
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

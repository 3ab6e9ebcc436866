//! `doorway paper [NAME]`: the tables printed in the papers, measured again.

use std::io::Write;

use anyhow::bail;
use doorway_lab::numbers::short;
use doorway_lab::papers::{self, Figure, Paper, Table as Measured};
use serde::Serialize;

use super::print_json;
use crate::failure::Usage;
use crate::group_args::parse_size;
use crate::names;
use crate::progress::Progress;
use crate::table::Table;
use crate::wrap;

const EXAMPLES: &str = "\
Examples:
  doorway paper
  doorway paper maekawa-table-1
  doorway paper slides-complexity -n 64";

/// Measure a table of a paper and print both side by side; without a name, list the tables
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The table, or 'all'
    #[arg(value_parser = names::papers(), hide_possible_values = true)]
    name: Option<Choice>,
    /// Measure a group of N nodes instead of the printed sizes, against the paper's formulas
    #[arg(short = 'n', value_name = "N", value_parser = parse_size, requires = "name")]
    nodes: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which tables to measure.
#[derive(Clone, Copy)]
pub(crate) enum Choice {
    One(&'static Paper),
    All,
}

#[derive(Serialize)]
struct Heading {
    name: &'static str,
    title: &'static str,
}

#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    heading: Heading,
    figures: Vec<ComparedFigure>,
    notes: Vec<&'static str>,
}

#[derive(Serialize)]
struct ComparedFigure {
    #[serde(flatten)]
    figure: Figure,
    difference: f64,
    agrees: bool,
}

/// List the tables, or measure some of them. A number that is not met is a failure.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let chosen: &[Paper] = match args.name {
        None => return list(args, out),
        Some(Choice::One(paper)) => std::slice::from_ref(paper),
        Some(Choice::All) => papers::ALL,
    };
    let mut outcomes = Vec::new();
    {
        let progress = Progress::new(chosen.len() as u64, "tables");
        for (done, paper) in chosen.iter().enumerate() {
            progress.at(done as u64);
            let named = |error| Usage(format!("{}: {error}", paper.name));
            let table = (paper.measure)(args.nodes).map_err(named)?;
            outcomes.push(Outcome::new(paper, table));
        }
    }
    match (args.json, args.name) {
        (true, Some(Choice::One(_))) => print_json(out, &outcomes[0])?,
        (true, _) => print_json(out, &outcomes)?,
        (false, _) => outcomes.iter().try_for_each(|outcome| outcome.print(out))?,
    }
    let failed = |outcome: &&Outcome| outcome.figures.iter().any(|figure| !figure.agrees);
    if let Some(outcome) = outcomes.iter().find(failed) {
        out.flush()?;
        bail!("not all numbers of {} were met", outcome.heading.name);
    }
    Ok(())
}

fn list(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let headings: Vec<_> = papers::ALL.iter().map(Heading::new).collect();
    if args.json {
        return print_json(out, &headings);
    }
    let mut table = Table::new(["name", "what it shows"].map(str::to_owned));
    for Heading { name, title } in headings {
        table.row([name.to_owned(), title.to_owned()]);
    }
    Ok(table.print(out, 0)?)
}

impl Heading {
    fn new(paper: &Paper) -> Self {
        Self { name: paper.name, title: paper.title }
    }
}

impl Outcome {
    fn new(paper: &Paper, table: Measured) -> Self {
        let compared = |figure: Figure| ComparedFigure {
            difference: figure.difference(),
            agrees: figure.agrees(),
            figure,
        };
        let figures = table.figures.into_iter().map(compared).collect();
        Self { heading: Heading::new(paper), figures, notes: table.notes }
    }

    fn print(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        wrap::print_lines(out, 0, &format!("{}: {}", self.heading.name, self.heading.title))?;
        writeln!(out)?;
        let heading = ["case", "quantity", "paper", "measured", "difference", ""];
        let mut table = Table::new(heading.map(str::to_owned));
        for ComparedFigure { figure, difference, agrees } in &self.figures {
            table.row([
                figure.case.clone(),
                figure.quantity.to_owned(),
                figure.paper.to_string(),
                short(figure.measured),
                short(*difference),
                if *agrees { String::new() } else { "NOT MET".to_owned() },
            ]);
        }
        table.print(out, 0)?;
        for note in &self.notes {
            writeln!(out)?;
            wrap::print_prose(out, 0, &format!("Note: {note}."))?;
        }
        Ok(writeln!(out)?)
    }
}

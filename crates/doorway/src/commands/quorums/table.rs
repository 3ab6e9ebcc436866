//! `doorway quorums --table`: the size of quorums by construction and number of nodes.

use std::io::Write;

use doorway_core::quorums::{Kind, Quorums, best_kind};
use serde::Serialize;

use crate::commands::print_json;
use crate::failure::Usage;
use crate::table::Table;
use crate::wrap;

/// The largest number of nodes in the table, unless a number is given.
const LARGEST: usize = 31;

/// Beyond this the search for cyclic quorums takes long, and the table has too many lines to read.
const MOST: usize = 200;

/// The constructions of the table. Weighted quorums depend on more than the number of nodes.
const KINDS: [Kind; 6] = [
    Kind::ProjectivePlane,
    Kind::DegeneratePlane,
    Kind::Cyclic,
    Kind::Triangle,
    Kind::Grid,
    Kind::Majority,
];

/// The sizes for one number of nodes, under names that scripts rely on.
#[derive(Serialize)]
struct Line {
    n: u32,
    /// No quorums of one size that give all nodes the same load are smaller than this.
    bound: f64,
    /// For each construction, the mean size of a quorum; `None` if there are no such quorums.
    sizes: Vec<Size>,
    /// The construction with the smallest quorums. Of equals it is the one that groups use unless
    /// another is asked for.
    best: &'static str,
}

#[derive(Serialize)]
struct Size {
    kind: &'static str,
    mean: Option<f64>,
}

/// Print the table up to this number of nodes.
pub(super) fn print(nodes: Option<usize>, json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let largest = nodes.unwrap_or(LARGEST);
    if largest > MOST {
        return Err(Usage(format!("the table has at most {MOST} nodes, not {largest}")).into());
    }
    let lines: Vec<Line> = (1..=largest as u32).map(Line::new).collect();
    if json {
        return print_json(out, &lines);
    }
    let heading = ["N", "bound"].into_iter().chain(KINDS.map(Kind::name)).chain(["smallest"]);
    let mut table = Table::new(heading.map(str::to_owned));
    for Line { n, bound, sizes, best } in &lines {
        let size = |size: &Size| size.mean.map_or_else(|| "-".to_owned(), shown);
        let cells = [n.to_string(), format!("{bound:.2}")].into_iter();
        table.row(cells.chain(sizes.iter().map(size)).chain([(*best).to_owned()]));
    }
    table.print(out, 0)?;
    writeln!(out)?;
    let note = "A number is K, the mean number of nodes in a quorum. The bound is that of \
        Maekawa's section 3: if all quorums have K nodes and all nodes are in K quorums, N is at \
        most K(K-1)+1, so K is at least (1+√(4N-3))/2. Projective planes reach it. A group of two \
        uses `majority` unless another construction is asked for: smaller quorums would give one \
        node more load than the other.";
    Ok(wrap::print_prose(out, 0, note)?)
}

impl Line {
    fn new(n: u32) -> Self {
        let size = |kind: Kind| {
            let quorums = Quorums::build(kind, n, None).ok();
            Size { kind: kind.name(), mean: quorums.map(|quorums| quorums.mean_size()) }
        };
        let sizes = KINDS.map(size);
        let mean = |size: &Size| size.mean.unwrap_or(f64::INFINITY);
        let least = sizes.iter().map(mean).fold(f64::INFINITY, f64::min);
        let smallest = || sizes.iter().filter(|size| mean(size) <= least).map(|size| size.kind);
        let preferred = best_kind(n).name();
        let best = smallest().find(|kind| *kind == preferred).or_else(|| smallest().next());
        Self {
            n,
            bound: f64::midpoint(1.0, (4.0 * f64::from(n) - 3.0).sqrt()),
            best: best.unwrap_or(preferred),
            sizes: sizes.into(),
        }
    }
}

/// A size with two decimals, if it has any.
fn shown(mean: f64) -> String {
    if mean.fract() == 0.0 { format!("{mean}") } else { format!("{mean:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_smaller_than_the_smallest() {
        for n in 1..=60 {
            let Line { sizes, best, .. } = Line::new(n);
            let mean = |kind: &str| sizes.iter().find(|size| size.kind == kind)?.mean;
            let smallest = mean(best).expect("it can be built");
            assert!(KINDS.iter().filter_map(|kind| mean(kind.name())).all(|mean| mean >= smallest));
        }
        assert_eq!(Line::new(2).best, "degenerate-plane");
    }

    #[test]
    fn planes_reach_the_bound_and_nothing_with_equal_loads_is_below_it() {
        for n in 1..=60 {
            let line = Line::new(n);
            for Size { kind, mean } in &line.sizes {
                let Some(mean) = mean else { continue };
                if *kind == "projective-plane" {
                    assert!((mean - line.bound).abs() < 1e-9, "{n}");
                }
                if ["cyclic", "majority"].contains(kind) {
                    assert!(*mean >= line.bound - 1e-9, "{kind} of {n}");
                }
            }
        }
    }
}

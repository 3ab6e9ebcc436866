//! The triangular arrangement: rows of 1, 2, ..., T nodes, and quorums of T ≈ √(2N) nodes.
//!
//! Think of the node in row r and column c as the edge between the corners r and c - 1 of a
//! complete graph with the T + 1 corners 0 to T. The line of corner k, row k and column k + 1, then
//! consists of the edges at k: T of them, and the lines of two corners share the edge between them.
//! A node lies on two lines, and each scheme takes one of them. All lines meet, so the schemes may
//! be mixed.

use alloc::vec::Vec;

use super::{Sets, refuse_huge, shrink};
use crate::{GroupError, NodeId};

/// Which of its two lines is a node's quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// The column of the node, and the row that ends above the top of the column. Node 1 has the
    /// highest load.
    First,
    /// The row of the node, and the column to the right of it. Node 1 has the lowest load.
    Second,
    /// The first and the second in turn: in a full triangle, all nodes have the same load.
    Both,
}

/// The quorums of each turn. An incomplete triangle is made from a full one by dropping nodes.
pub(super) fn turns(size: u32, scheme: Scheme) -> Result<Vec<Sets>, GroupError> {
    let rows = (1..=size).find(|rows| nodes(*rows) >= size).unwrap_or(size);
    refuse_huge(size, 2 * rows)?;
    let first = || (1..=rows).flat_map(|r| (0..r).map(|c| line(c, rows)));
    let second = || (1..=rows).flat_map(|r| (0..r).map(move |_| line(r, rows)));
    let mut turns: Vec<Sets> = match scheme {
        Scheme::First => alloc::vec![first().collect()],
        Scheme::Second => alloc::vec![second().collect()],
        Scheme::Both => alloc::vec![first().collect(), second().collect()],
    };
    for sets in &mut turns {
        shrink(sets, nodes(rows), size);
    }
    Ok(turns)
}

/// The number of nodes in a full triangle.
pub(super) fn nodes(rows: u32) -> u32 {
    rows * (rows + 1) / 2
}

/// The line of a corner. Its edges to lower corners are a row, its edges to higher ones a column.
fn line(corner: u32, rows: u32) -> Vec<NodeId> {
    let row = (0..corner).map(|lower| edge(lower, corner));
    let column = (corner + 1..=rows).map(|higher| edge(corner, higher));
    row.chain(column).collect()
}

/// The node between two corners. Nodes are numbered row by row from the top.
fn edge(lower: u32, higher: u32) -> NodeId {
    NodeId(nodes(higher - 1) + lower)
}

#[cfg(test)]
mod tests {
    use super::super::Quorums;
    use super::*;

    /// The number of quorums in which each node is.
    fn loads(size: u32, scheme: Scheme) -> Vec<usize> {
        let all: Vec<NodeId> = turns(size, scheme).unwrap().concat().concat();
        (0..size).map(|node| all.iter().filter(|member| member.0 == node).count()).collect()
    }

    #[test]
    fn schemes_balance_each_other() {
        let (first, second) = (loads(15, Scheme::First), loads(15, Scheme::Second));
        assert_eq!((first[0], first[14]), (9, 1));
        assert_eq!((second[0], second[14]), (1, 9));
        assert_eq!(loads(15, Scheme::Both), [10; 15]);
    }

    #[test]
    fn the_first_lines_of_fifteen() {
        let quorums = Quorums::triangle(15, Scheme::Both).unwrap();
        let of = |node, turn| alloc::format!("{:?}", quorums.quorum(NodeId(node), turn));
        assert_eq!(of(0, 0), "[1, 2, 4, 7, 11]", "the first column");
        assert_eq!(of(0, 1), "[1, 3, 5, 8, 12]", "the first row and the second column");
        assert_eq!(of(14, 0), "[7, 8, 9, 10, 15]", "the last column and the row above it");
        assert_eq!(of(14, 3), "[11, 12, 13, 14, 15]", "the last row");
    }

    #[test]
    fn each_scheme_serves_alone() {
        for size in 1..=200 {
            for scheme in [Scheme::First, Scheme::Second] {
                let quorums = Quorums::triangle(size, scheme).unwrap();
                assert_eq!(quorums.turns(), 1);
                assert!(quorums.properties().a && quorums.properties().b, "{scheme:?} of {size}");
            }
        }
    }
}

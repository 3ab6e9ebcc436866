//! The grid of Maekawa's section 7 (Method 2): a node's quorum is its row and its column.
//!
//! Of any two nodes, at least one is in a full row, or both are in the last row. So the row of one
//! meets the column of the other even if the last row is short, and the grid need not be completed.

use super::{Sets, refuse_huge};
use crate::{GroupError, NodeId};

/// The quorums of a grid with ⌈√size⌉ columns.
pub(super) fn sets(size: u32) -> Result<Sets, GroupError> {
    let columns = columns(size);
    refuse_huge(size, 2 * columns)?;
    let quorum = |node: u32| {
        let row = node - node % columns;
        let above = (node % columns..row).step_by(columns as usize);
        let within = row..(row + columns).min(size);
        let below = (node + columns..size).step_by(columns as usize);
        above.chain(within).chain(below).map(NodeId).collect()
    };
    Ok((0..size).map(quorum).collect())
}

/// The smallest number of columns for which the grid has no more rows than columns.
pub(super) fn columns(size: u32) -> u32 {
    let root = size.isqrt();
    root + u32::from(root * root < size)
}

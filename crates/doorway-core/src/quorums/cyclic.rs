//! Cyclic quorums: one block of nodes, rotated by i for node i.
//!
//! If every number modulo N is the difference of two members of the block (a difference cover),
//! the quorums of i and j meet: members x and y with x - y = j - i give x + i = y + j. For every N,
//! all quorums have one size and all nodes the same load (Luk & Wong, "Two New Quorum Based
//! Algorithms for Distributed Mutual Exclusion", ICDCS 1997).

use alloc::vec::Vec;

use super::field::Field;
use super::{Sets, plane, refuse_huge};
use crate::{GroupError, NodeId};

/// The block, rotated for each node.
pub(super) fn sets(size: u32) -> Result<Sets, GroupError> {
    refuse_huge(size, size.isqrt())?;
    let block = block(size);
    let turned = |by: u32| {
        let mut set: Vec<_> = block.iter().map(|member| NodeId((member + by) % size)).collect();
        set.sort_unstable();
        set
    };
    Ok((0..size).map(turned).collect())
}

/// A block that contains 0, and whose differences are all numbers modulo `size`.
fn block(size: u32) -> Vec<u32> {
    if let Some(block) = SMALLEST.get(size as usize - 1) {
        return block.iter().copied().map(u32::from).collect();
    }
    match plane::order_of(size).and_then(singer) {
        Some(block) => block,
        None => ruler(size / 2),
    }
}

/// The smallest blocks for 1 to 40 nodes. An exhaustive search found no smaller ones.
const SMALLEST: [&[u8]; 40] = [
    &[0],
    &[0, 1],
    &[0, 1],
    &[0, 1, 2],
    &[0, 1, 2],
    &[0, 1, 3],
    &[0, 1, 3],
    &[0, 1, 2, 4],
    &[0, 1, 2, 4],
    &[0, 1, 2, 5],
    &[0, 1, 2, 5],
    &[0, 1, 3, 7],
    &[0, 1, 3, 9],
    &[0, 1, 2, 3, 7],
    &[0, 1, 2, 3, 7],
    &[0, 1, 2, 5, 8],
    &[0, 1, 2, 4, 12],
    &[0, 1, 2, 5, 11],
    &[0, 1, 2, 6, 9],
    &[0, 1, 2, 3, 6, 10],
    &[0, 1, 4, 14, 16],
    &[0, 1, 2, 3, 7, 11],
    &[0, 1, 2, 3, 7, 11],
    &[0, 1, 2, 3, 7, 15],
    &[0, 1, 2, 3, 8, 12],
    &[0, 1, 2, 5, 9, 15],
    &[0, 1, 2, 5, 13, 22],
    &[0, 1, 4, 15, 20, 22],
    &[0, 1, 2, 3, 4, 9, 14],
    &[0, 1, 2, 3, 4, 9, 19],
    &[0, 1, 3, 8, 12, 18],
    &[0, 1, 2, 3, 7, 11, 19],
    &[0, 1, 2, 3, 6, 16, 27],
    &[0, 1, 2, 3, 7, 12, 20],
    &[0, 1, 2, 3, 8, 12, 21],
    &[0, 1, 2, 5, 12, 14, 20],
    &[0, 1, 2, 4, 10, 15, 22],
    &[0, 1, 2, 3, 4, 8, 14, 23],
    &[0, 1, 2, 4, 13, 18, 33],
    &[0, 1, 2, 3, 4, 9, 14, 24],
];

/// A line of the plane of this order, with the points numbered so that a rotated line is a line.
///
/// Take a sequence over the field in which each element is a fixed combination of the three before
/// it. Three successive elements are the coordinates of a point, and moving on by one maps lines to
/// lines. If the sequence runs through all points of the plane before it repeats, the points whose
/// first coordinate is 0 are a perfect block (Singer, Transactions of the AMS 43, 1938).
fn singer(order: u32) -> Option<Vec<u32>> {
    let field = Field::new(order)?;
    let size = order * (order + 1) + 1;
    let rules = (0..order).flat_map(|c| (0..order).map(move |b| (b, c)));
    let mut rules = rules.flat_map(|(b, c)| (1..order).map(move |a| [a, b, c]));
    rules.find_map(|rule| zeros(&field, rule, size))
}

/// The places at which the sequence that begins 0, 0, 1 is zero; `None` unless it first repeats
/// after `size` points.
fn zeros(field: &Field, rule: [u32; 3], size: u32) -> Option<Vec<u32>> {
    let mut point = [0, 0, 1];
    let mut zeros = Vec::new();
    for step in 0..size {
        if point[0] == 0 {
            zeros.push(step);
        }
        let terms = rule.iter().zip(point).map(|(factor, element)| field.mul(*factor, element));
        point = [point[1], point[2], terms.fold(0, |sum, term| field.add(sum, term))];
        // Proportional coordinates are the same point.
        let round = point[0] == 0 && point[1] == 0;
        if round != (step + 1 == size) {
            return None;
        }
    }
    Some(zeros)
}

/// The Wichmann ruler with the fewest marks that measures every distance up to `length`.
///
/// A ruler that measures half the circle is a difference cover, since a difference and its negative
/// both count (Colbourn & Ling, "Quorums from Difference Covers", Information Processing Letters
/// 75, 2000). It has about √(3N/2) marks.
fn ruler(length: u32) -> Vec<u32> {
    // For each r, the smallest s that suffices. An r beyond the square root needs more marks.
    let candidates = (0..=length.isqrt()).map(|r| {
        let missing = length.saturating_sub(wichmann_length(r, 0));
        (r, missing.div_ceil(4 * r + 3))
    });
    let (r, s) = candidates.min_by_key(|(r, s)| 4 * r + s).unwrap_or_default();
    wichmann(r, s)
}

/// The marks of a ruler that measures every distance up to its length (Wichmann, "A Note on
/// Restricted Difference Bases", Journal of the London Mathematical Society 38, 1963).
fn wichmann(r: u32, s: u32) -> Vec<u32> {
    let spacings = [(1, r), (r + 1, 1), (2 * r + 1, r), (4 * r + 3, s), (2 * r + 2, r + 1), (1, r)];
    let mut marks = alloc::vec![0];
    for (spacing, times) in spacings {
        for _ in 0..times {
            marks.push(marks[marks.len() - 1] + spacing);
        }
    }
    marks
}

/// The last mark of [`wichmann`].
fn wichmann_length(r: u32, s: u32) -> u32 {
    4 * r * (r + s + 2) + 3 * (s + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the numbers up to `length` that are not a difference of two members modulo `size`.
    fn unmeasured(block: &[u32], length: u32, size: u32) -> usize {
        let mut seen = alloc::vec![false; size as usize];
        for x in block {
            for y in block {
                seen[((x + size - y) % size) as usize] = true;
            }
        }
        seen[..=length as usize].iter().filter(|seen| !**seen).count()
    }

    #[test]
    fn wichmann_rulers_are_complete() {
        for r in 0..10 {
            for s in 0..20 {
                let (marks, length) = (wichmann(r, s), wichmann_length(r, s));
                assert_eq!(marks.len() as u32, 4 * r + s + 3);
                assert_eq!(marks.last(), Some(&length));
                assert_eq!(unmeasured(&marks, length, 2 * length + 1), 0, "{r}, {s}");
            }
        }
    }

    #[test]
    fn blocks_are_difference_covers_and_small() {
        for size in (1..=2000).chain([10_000]) {
            let block = block(size);
            assert_eq!(block[0], 0);
            assert!(block.is_sorted() && block[block.len() - 1] < size);
            assert_eq!(unmeasured(&block, size - 1, size), 0, "{size}");
            let expected = (1.5 * f64::from(size)).sqrt();
            assert!(block.len() as f64 <= expected + 2.0, "{} for {size}", block.len());
        }
    }

    #[test]
    fn planes_have_perfect_blocks() {
        for order in (2..=32).chain([97, 101]) {
            let Some(block) = singer(order) else { continue };
            let size = order * (order + 1) + 1;
            assert_eq!(block.len() as u32, order + 1);
            assert_eq!(unmeasured(&block, size - 1, size), 0, "order {order}");
        }
        assert!(singer(101).is_some() && singer(32).is_some() && singer(6).is_none());
    }
}

//! Quorums from finite projective planes, the smallest possible, and planes reduced to any size.
//!
//! A plane of order q has q² + q + 1 points and as many lines; a line has q + 1 points, and any two
//! lines share exactly one point. A quorum is a line, and each node lies on its own line. The
//! numbering is that of Maekawa, "A √N Algorithm for Mutual Exclusion in Decentralized Systems",
//! ACM Transactions on Computer Systems 3(2), 1985, Figure 1, continued to all orders: the averages
//! of his Table II depend on it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::field::{Field, prime_of};
use super::{Sets, refuse_huge, shrink};
use crate::{GroupError, NodeId};

/// The lines of the plane of exactly `size` points.
pub(super) fn projective(size: u32) -> Result<Sets, GroupError> {
    if let Some(order) = order_of(size) {
        return lines(order, size);
    }
    let above = order_from(size);
    let below = (0..above).rev().find(|order| exists(*order)).unwrap_or(0);
    Err(GroupError::new(format!(
        "{}; the nearest planes have {} and {} points. Choose degenerate-plane or cyclic quorums, \
         which exist for every size",
        absence(size),
        points(below),
        points(above)
    )))
}

/// Why there is no plane of `size` points, where none is known.
fn absence(size: u32) -> String {
    let order = size.isqrt().saturating_sub(1)..=size.isqrt();
    let Some(order) = order.into_iter().find(|order| points(*order) == size) else {
        return format!(
            "no projective plane has {size} points, because a plane of order q has q(q+1)+1"
        );
    };
    let plane = format!("a projective plane of {size} points, of order {order},");
    if excluded(order) {
        return format!("{plane} does not exist, by the theorem of Bruck and Ryser");
    }
    if order == 10 {
        return format!("{plane} does not exist, as a search by Lam, Thiel and Swiercz has shown");
    }
    format!("{plane} is not known: no plane is known whose order is not a power of a prime")
}

/// Whether the theorem of Bruck and Ryser (1949) excludes planes of this order: it leaves a
/// remainder of 1 or 2 when divided by 4, and is not the sum of two squares.
fn excluded(order: u32) -> bool {
    let square = |number: u32| number.isqrt().pow(2) == number;
    let is_sum = (0..=order.isqrt()).any(|side| square(order - side.pow(2)));
    matches!(order % 4, 1 | 2) && !is_sum
}

/// The lines of the smallest plane with at least `size` points, reduced to `size` points.
pub(super) fn degenerate(size: u32) -> Result<Sets, GroupError> {
    let order = order_from(size);
    let mut sets = lines(order, size)?;
    shrink(&mut sets, points(order), size);
    Ok(sets)
}

/// The order of the plane of exactly `size` points, or `None` if no such plane is known.
pub(super) fn order_of(size: u32) -> Option<u32> {
    Some(order_from(size)).filter(|order| points(*order) == size)
}

/// The smallest order whose plane has at least `size` points.
fn order_from(size: u32) -> u32 {
    let start = size.isqrt().saturating_sub(1); // Planes of lower order have too few points.
    (start..=2 * start + 2)
        .find(|order| exists(*order) && points(*order) >= size)
        .expect("a prime lies between a number and its double")
}

/// Whether a plane of this order is known: one is for every prime power. A single point and a
/// triangle count as the planes of order 0 and 1.
fn exists(order: u32) -> bool {
    order < 2 || prime_of(order).is_some()
}

fn points(order: u32) -> u32 {
    order * (order + 1) + 1
}

/// The lines of the first `count` nodes in the plane of an order for which a plane exists.
fn lines(order: u32, count: u32) -> Result<Sets, GroupError> {
    refuse_huge(count, order + 1)?;
    let lines: Vec<Vec<u32>> = match Plane::new(order) {
        Some(plane) => (0..count).map(|node| plane.line(node)).collect(),
        None if order == 1 => alloc::vec![alloc::vec![0, 1], alloc::vec![1, 2], alloc::vec![0, 2]],
        None => alloc::vec![alloc::vec![0]],
    };
    let nodes = |line: Vec<u32>| line.into_iter().map(NodeId).collect();
    Ok(lines.into_iter().take(count as usize).map(nodes).collect())
}

/// A plane over a field.
///
/// At point 0 the vertical lines meet, and at points 1 to q the lines of slope 0 to q - 1 meet.
/// Then come q blocks of q points, one block for each vertical line, with the points ordered by
/// height. Block i stands at 1/i, and block 0 at 0.
struct Plane {
    order: u32,
    field: Field,
    /// Where each block stands.
    places: Vec<u32>,
}

impl Plane {
    fn new(order: u32) -> Option<Self> {
        let field = Field::new(order)?;
        let places = (0..order).map(|block| field.inverse(block)).collect();
        Some(Self { order, field, places })
    }

    /// The line that belongs to a node, in ascending order.
    ///
    /// The first node of a block has the block's vertical line. Any other node of block i has the
    /// line of slope i through itself. Of the q lines of slope i, one is left: the line through the
    /// block's first node. It belongs to the point where all lines of slope i meet.
    fn line(&self, node: u32) -> Vec<u32> {
        let q = self.order;
        if node == 0 {
            return (0..=q).collect();
        }
        if node <= q {
            return self.slanted(node - 1, 0);
        }
        let (block, height) = ((node - q - 1) / q, (node - q - 1) % q);
        if height == 0 {
            return core::iter::once(0).chain(node..node + q).collect();
        }
        self.slanted(block, height)
    }

    /// The line of slope i that crosses block i at `height`.
    fn slanted(&self, slope: u32, height: u32) -> Vec<u32> {
        let (q, field) = (self.order, &self.field);
        let here = field.add(height, field.mul(slope, self.places[slope as usize]));
        let heights = self.places.iter().map(|place| field.sub(here, field.mul(slope, *place)));
        let affine = (0..).zip(heights).map(|(block, height)| q + 1 + block * q + height);
        core::iter::once(1 + slope).chain(affine).collect()
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::super::{Kind, Quorums};
    use super::*;

    #[test]
    fn planes_that_do_not_exist_are_told_from_those_that_are_not_known() {
        let error = |size| projective(size).unwrap_err().to_string();
        // Orders 6, 14, 21 and 22 are the first that the theorem excludes.
        let orders: Vec<u32> = (2..30).filter(|order| excluded(*order)).collect();
        assert_eq!(orders, [6, 14, 21, 22]);
        for order in orders {
            let text = error(points(order));
            assert!(text.contains("does not exist, by the theorem of Bruck"), "{text}");
        }
        assert!(error(43).contains("43 points, of order 6, does not exist"), "{}", error(43));
        assert!(error(111).contains("of order 10, does not exist, as a search by Lam"));
        assert!(error(157).contains("of order 12, is not known"), "{}", error(157));
        let between = error(8);
        assert!(between.starts_with("no projective plane has 8 points, because"), "{between}");
        assert!(between.contains("the nearest planes have 7 and 13 points"), "{between}");
        assert!(projective(31).is_ok() && projective(91).is_ok(), "orders 5 and 9");
    }

    /// Figure 1 of the paper: the sets of nodes 1, 2, 3, ... for K = 2, 3, 4 and 5.
    const FIGURE_1: [&[&[u32]]; 4] = [
        &[&[1, 2], &[2, 3], &[1, 3]],
        &[&[1, 2, 3], &[2, 4, 6], &[3, 5, 6], &[1, 4, 5], &[2, 5, 7], &[1, 6, 7], &[3, 4, 7]],
        &[
            &[1, 2, 3, 4],
            &[2, 5, 8, 11],
            &[3, 6, 8, 13],
            &[4, 6, 10, 11],
            &[1, 5, 6, 7],
            &[2, 6, 9, 12],
            &[2, 7, 10, 13],
            &[1, 8, 9, 10],
            &[3, 7, 9, 11],
            &[3, 5, 10, 12],
            &[1, 11, 12, 13],
            &[4, 7, 8, 12],
            &[4, 5, 9, 13],
        ],
        &[
            &[1, 2, 3, 4, 5],
            &[2, 6, 10, 14, 18],
            &[3, 7, 10, 16, 21],
            &[4, 7, 13, 14, 20],
            &[5, 7, 12, 17, 18],
            &[1, 6, 7, 8, 9],
            &[2, 7, 11, 15, 19],
            &[2, 8, 12, 16, 20],
            &[2, 9, 13, 17, 21],
            &[1, 10, 11, 12, 13],
            &[3, 6, 11, 17, 20],
            &[3, 9, 12, 14, 19],
            &[3, 8, 13, 15, 18],
            &[1, 14, 15, 16, 17],
            &[4, 6, 12, 15, 21],
            &[4, 9, 11, 16, 18],
            &[4, 8, 10, 17, 19],
            &[1, 18, 19, 20, 21],
            &[5, 6, 13, 16, 19],
            &[5, 9, 10, 15, 20],
            &[5, 8, 11, 14, 21],
        ],
    ];

    #[test]
    fn the_sets_are_those_of_figure_1() {
        for (order, figure) in (1..).zip(FIGURE_1) {
            let sets = projective(points(order)).unwrap();
            let printed: Sets = figure
                .iter()
                .map(|line| line.iter().map(|node| NodeId(node - 1)).collect())
                .collect();
            assert_eq!(sets, printed);
        }
    }

    #[test]
    fn two_lines_share_exactly_one_point() {
        for order in (1..=16).filter(|order| exists(*order)) {
            let lines = projective(points(order)).unwrap();
            for (i, one) in lines.iter().enumerate() {
                assert!(one.is_sorted() && one.binary_search(&NodeId::at(i)).is_ok());
                assert_eq!(one.len() as u32, order + 1);
                for other in &lines[..i] {
                    let common = other.iter().filter(|node| one.binary_search(node).is_ok());
                    assert_eq!(common.count(), 1, "order {order}");
                }
            }
        }
        assert_eq!(points(5), 31);
    }

    #[test]
    fn planes_of_ten_thousand_points() {
        for size in [9_507, 10_303] {
            let properties =
                Quorums::build(Kind::ProjectivePlane, size, None).unwrap().properties();
            assert!(properties.a && properties.b && properties.c && properties.d);
            assert_eq!(properties.size_max, if size == 9_507 { 98 } else { 102 });
        }
    }

    #[test]
    fn the_averages_are_those_of_table_2() {
        for (size, printed) in [(5, 4.8), (6, 5.5), (10, 8.1), (18, 11.7)] {
            let mean = Quorums::build(Kind::DegeneratePlane, size, None).unwrap().mean_size();
            assert!((3.0 * (mean - 1.0) - printed).abs() < 0.05, "{size}: {mean}");
        }
    }

    #[test]
    fn points_dropped_without_replacement_leave_disjoint_sets() {
        for size in [5, 6, 10, 18] {
            let mut sets = lines(order_from(size), size).unwrap();
            for set in &mut sets {
                set.retain(|node| node.0 < size);
            }
            assert!(Quorums::from_sets(sets).is_err(), "{size}");
        }
    }

    #[test]
    fn the_error_for_a_missing_plane_names_the_nearest_sizes() {
        for (size, below, above) in [(2, 1, 3), (8, 7, 13), (43, 31, 57), (111, 91, 133)] {
            let error = format!("{}", projective(size).unwrap_err());
            let neighbours = format!("have {below} and {above} points.");
            assert!(error.contains(&neighbours), "{error}");
        }
    }

    #[test]
    fn gaps_between_planes_are_as_small_as_the_paper_says() {
        let gap = |k: u32| (k..2 * k).find(|k| exists(k - 1)).unwrap() - k;
        assert_eq!((1..=20).map(gap).max(), Some(gap(15)));
        assert_eq!((1..=50).map(gap).max(), Some(gap(34)));
        assert_eq!((gap(15), gap(34)), (2, 4));
    }
}

//! Keeps arrows apart that would be drawn on top of each other.
//!
//! Several messages may travel between the same two nodes at the same time. Their arrows would lie
//! on one line, and only the last one drawn would be seen. Each is moved to the right until it lies
//! on no other.

use std::collections::BTreeMap;

use crate::canvas::Point;

/// Arrows whose ends are both nearer than this, in pixels, cannot be told apart.
const NEAR: f64 = 4.0;

/// How far an arrow is moved at a time.
const STEP: f64 = 5.0;

/// An arrow is moved at most this often: farther away it would seem to belong to another time.
const MAX_STEPS: usize = 6;

/// The arrows drawn so far, by the heights of the two lanes that they join.
#[derive(Default)]
pub(super) struct ArrowSpacing {
    drawn: BTreeMap<(i64, i64), Vec<(f64, f64)>>,
}

impl ArrowSpacing {
    /// Where to draw the arrow so that it lies on no earlier one between the same `lanes`, whose
    /// heights are given in either order. The arrow ends left of `right`.
    pub(super) fn place(
        &mut self,
        (from, to): (Point, Point),
        lanes: (f64, f64),
        right: f64,
    ) -> (Point, Point) {
        let downward = lanes.0 <= lanes.1;
        let (top, bottom) = if downward { lanes } else { (lanes.1, lanes.0) };
        let drawn = self.drawn.entry((top.round() as i64, bottom.round() as i64)).or_default();
        let ends = if downward { (from.0, to.0) } else { (to.0, from.0) };
        let is_near = |shift: f64| {
            let near = |one: f64, other: f64| (one + shift - other).abs() < NEAR;
            drawn.iter().any(|other| near(ends.0, other.0) && near(ends.1, other.1))
        };
        let shifts = (0..=MAX_STEPS).map(|steps| steps as f64 * STEP);
        let mut free = shifts.filter(|shift| ends.0.max(ends.1) + shift <= right || *shift == 0.0);
        let shift = free.find(|shift| !is_near(*shift)).unwrap_or(0.0);
        drawn.push((ends.0 + shift, ends.1 + shift));
        ((from.0 + shift, from.1), (to.0 + shift, to.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_of_one_time_are_drawn_beside_each_other() {
        let mut apart = ArrowSpacing::default();
        let down = ((10.0, 0.0), (50.0, 40.0));
        let mut place = |line, lanes| apart.place(line, lanes, 100.0).0.0.round() as i64;
        assert_eq!([place(down, (0.0, 40.0)), place(down, (0.0, 40.0))], [10, 15]);
        assert_eq!(place(down, (0.0, 80.0)), 10, "another lane");
        assert_eq!(place(((20.0, 0.0), (60.0, 40.0)), (0.0, 40.0)), 20, "another time");
        // An arrow upward that is just as steep only crosses; a vertical one lies on the other.
        assert_eq!(place(((10.0, 40.0), (50.0, 0.0)), (40.0, 0.0)), 10);
        assert_eq!(place(((70.0, 0.0), (70.0, 40.0)), (0.0, 40.0)), 70);
        assert_eq!(place(((71.0, 40.0), (71.0, 0.0)), (40.0, 0.0)), 76);
    }

    #[test]
    fn no_arrow_leaves_the_picture() {
        let mut apart = ArrowSpacing::default();
        let line = ((10.0, 0.0), (95.0, 40.0));
        for _ in 0..20 {
            assert!(apart.place(line, (0.0, 40.0), 100.0).1.0 <= 100.0);
        }
    }
}

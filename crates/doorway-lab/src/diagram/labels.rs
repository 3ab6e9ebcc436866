//! Finds room for the labels of arrows.
//!
//! Lanes, bars, arrows and labels are all treated as capsules: thick lines with round ends. A label
//! is drawn where it touches no other capsule; if there is no such place, it is left out.

use crate::canvas::Point;

/// A thick line with round ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capsule {
    pub(super) from: Point,
    pub(super) to: Point,
    pub(super) radius: f64,
}

impl Capsule {
    fn touches(&self, other: &Self) -> bool {
        let reach = self.radius + other.radius;
        // Most pairs are far apart, and comparing their boxes is cheaper than measuring distances.
        let apart = |a: (f64, f64), b: (f64, f64)| {
            a.0.min(a.1) > b.0.max(b.1) + reach || b.0.min(b.1) > a.0.max(a.1) + reach
        };
        let beside = apart((self.from.0, self.to.0), (other.from.0, other.to.0));
        let above = apart((self.from.1, self.to.1), (other.from.1, other.to.1));
        !beside && !above && (self.crosses(other) || self.gap(other).min(other.gap(self)) < reach)
    }

    fn crosses(&self, other: &Self) -> bool {
        let splits = |line: &Self, a, b| side(line, a) * side(line, b) < 0.0;
        splits(self, other.from, other.to) && splits(other, self.from, self.to)
    }

    /// The distance of the nearer end of `other` from the middle line of this capsule.
    fn gap(&self, other: &Self) -> f64 {
        [other.from, other.to].map(|end| self.distance(end)).into_iter().fold(f64::MAX, f64::min)
    }

    fn distance(&self, (x, y): Point) -> f64 {
        let (dx, dy) = (self.to.0 - self.from.0, self.to.1 - self.from.1);
        let length = (dx * dx + dy * dy).max(f64::MIN_POSITIVE);
        let along = (((x - self.from.0) * dx + (y - self.from.1) * dy) / length).clamp(0.0, 1.0);
        let (ox, oy) = (x - self.from.0 - along * dx, y - self.from.1 - along * dy);
        (ox * ox + oy * oy).sqrt()
    }
}

/// The side of a line on which a point lies, as a sign.
fn side(line: &Capsule, (x, y): Point) -> f64 {
    let (dx, dy) = (line.to.0 - line.from.0, line.to.1 - line.from.1);
    dx * (y - line.from.1) - dy * (x - line.from.0)
}

/// The place of a label: the middle of its baseline, and its angle in degrees.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) at: Point,
    pub(super) degrees: f64,
}

/// The capsules on the diagram so far.
#[derive(Default)]
pub(super) struct Room {
    taken: Vec<Capsule>,
}

impl Room {
    /// Add a capsule that labels must not touch.
    pub(super) fn take(&mut self, capsule: Capsule) {
        self.taken.push(capsule);
    }

    /// Find and take a place along an arrow for a text of this width and height: near the middle
    /// if possible, on either side.
    pub(super) fn place(&mut self, arrow: &Capsule, width: f64, height: f64) -> Option<Spot> {
        let (dx, dy) = (arrow.to.0 - arrow.from.0, arrow.to.1 - arrow.from.1);
        let length = (dx * dx + dy * dy).sqrt();
        // Keep the text off the head of the arrow, and a little away from its start.
        if length < width + 18.0 {
            return None;
        }
        let (ux, uy) = (dx / length, dy / length);
        let (half, radius) = (width / 2.0 - 4.0, height / 2.0);
        let away = radius + 2.0;
        for share in [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74] {
            for side in [1.0, -1.0] {
                let middle = (
                    arrow.from.0 + share * dx + side * away * uy,
                    arrow.from.1 + share * dy - side * away * ux,
                );
                let from = (middle.0 - half * ux, middle.1 - half * uy);
                let to = (middle.0 + half * ux, middle.1 + half * uy);
                let label = Capsule { from, to, radius };
                let inside = share * length - half >= radius + 4.0
                    && (1.0 - share) * length - half >= radius + 8.0;
                if inside && !self.taken.iter().any(|other| label.touches(other)) {
                    self.take(label);
                    // The baseline is a third of the height below the middle.
                    let drop = height / 3.0;
                    let at = (middle.0 - drop * uy, middle.1 + drop * ux);
                    return Some(Spot { at, degrees: uy.atan2(ux).to_degrees() });
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(from: Point, to: Point) -> Capsule {
        Capsule { from, to, radius: 1.0 }
    }

    #[test]
    fn capsules_touch_when_they_cross_or_are_near() {
        let flat = line((0.0, 0.0), (10.0, 0.0));
        assert!(flat.touches(&line((5.0, -5.0), (5.0, 5.0))));
        assert!(flat.touches(&line((0.0, 1.9), (10.0, 1.9))));
        assert!(!flat.touches(&line((0.0, 2.1), (10.0, 2.1))));
        assert!(!flat.touches(&line((12.5, -5.0), (12.5, 5.0))));
    }

    #[test]
    fn a_label_is_placed_beside_its_arrow_or_left_out() {
        let mut room = Room::default();
        let arrow = line((0.0, 0.0), (100.0, 0.0));
        room.take(arrow);
        // One above, one below; then both sides are full.
        let spots: Vec<_> = (0..4).filter_map(|_| room.place(&arrow, 60.0, 11.0)).collect();
        let heights: Vec<_> = spots.iter().map(|spot| spot.at.1.round()).collect();
        assert_eq!(heights, [-4.0, 11.0]);
        assert!(room.place(&line((0.0, 200.0), (60.0, 200.0)), 60.0, 11.0).is_none(), "too long");
    }
}

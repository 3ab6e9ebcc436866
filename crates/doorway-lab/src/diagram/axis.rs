//! The time axis of a space-time diagram: to scale, except that long pauses are cut.

use super::story::Flight;
use crate::canvas::{Point, nice_step, number, text_width};
use crate::trace::Event;

/// A pause longer than this many times the longest travel time of a message is drawn as
/// `CUT_LENGTH` of them. No message is in transit during such a pause, so no arrow crosses a cut.
const CUT_BEYOND: f64 = 2.0;
const CUT_LENGTH: f64 = 1.0;

/// The smallest distance between two labels of the axis, in pixels.
const TICK_DISTANCE: f64 = 54.0;

/// Maps times to horizontal places.
pub(super) struct Axis {
    /// Each time at which something happens, with its place.
    knots: Vec<Point>,
    /// The middles of the pauses that are cut.
    pub(super) cuts: Vec<f64>,
    /// Pixels for each unit of time, where nothing is cut.
    scale: f64,
    left: f64,
    width: f64,
}

impl Axis {
    /// An axis for these events, which are in order, from `left` over `width` pixels.
    pub(super) fn new<'a>(
        events: &[Event],
        flights: impl Iterator<Item = &'a Flight<'a>>,
        left: f64,
        width: f64,
    ) -> Self {
        let ends = flights.flat_map(|flight| {
            let ends = flight.arrived.iter().chain(&flight.lost);
            ends.map(|end| end - flight.sent)
        });
        let longest = ends.fold(0.0, f64::max);
        let shown = |gap: f64| {
            if longest > 0.0 && gap > CUT_BEYOND * longest { CUT_LENGTH * longest } else { gap }
        };
        let mut moments: Vec<f64> = events.iter().map(|event| event.at).collect();
        moments.dedup();
        let gaps = || moments.windows(2).map(|pair| pair[1] - pair[0]);
        let total: f64 = gaps().map(shown).sum();
        let scale = if total > 0.0 { width / total } else { 0.0 };

        let mut axis = Self { knots: Vec::new(), cuts: Vec::new(), scale, left, width };
        let mut x = left;
        axis.knots.extend(moments.first().map(|first| (*first, x)));
        for (moment, gap) in moments.iter().skip(1).zip(gaps()) {
            let step = shown(gap) * scale;
            if shown(gap) < gap {
                axis.cuts.push(x + step / 2.0);
            }
            x += step;
            axis.knots.push((*moment, x));
        }
        axis
    }

    /// The number of different times at which something happens.
    pub(super) fn moments(events: &[Event]) -> usize {
        events.windows(2).filter(|pair| pair[0].at < pair[1].at).count() + 1
    }

    /// The place of a time at which something happens.
    pub(super) fn x(&self, at: f64) -> f64 {
        let next = self.knots.partition_point(|(moment, _)| *moment < at);
        self.knots.get(next).map_or(self.left + self.width, |(_, x)| *x)
    }

    /// The places of the labels, and their texts. A pause that is cut has no labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let mut ticks: Vec<(f64, String)> = Vec::new();
        if self.scale <= 0.0 {
            return ticks;
        }
        // If every event is at a whole number, as in a run counted in steps, so are the labels.
        let whole = self.knots.iter().all(|(moment, _)| moment.fract() == 0.0);
        let least = if whole { 1.0 } else { 0.0 };
        let step = nice_step((TICK_DISTANCE / self.scale).max(least));
        let mut free_from = f64::NEG_INFINITY;
        for pair in self.knots.windows(2) {
            let ((since, left), (until, right)) = (pair[0], pair[1]);
            let cut = (right - left) < (until - since) * self.scale * 0.999;
            let mut count = (since / step).ceil();
            while !cut && count * step <= until {
                let x = left + (count * step - since) * self.scale;
                let text = number(count * step);
                let half = text_width(&text, 12.0) / 2.0;
                if x - half >= free_from {
                    free_from = x + half + 10.0;
                    ticks.push((x, text));
                }
                count += 1.0;
            }
        }
        ticks
    }
}

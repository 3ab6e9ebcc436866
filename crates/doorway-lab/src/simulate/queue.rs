//! The event queue: a radix heap, which relies on time never going back.

use std::collections::VecDeque;

/// The number of bits of a digit. With more bits an event moves less often, and with fewer the
/// queue needs less memory.
const DIGIT: u32 = 4;
const DIGITS: usize = u64::BITS.div_ceil(DIGIT) as usize;
const VALUES: usize = 1 << DIGIT;

/// Events by time. Events of the same time are taken in the order in which they were added.
///
/// A time is read as 16 digits of four bits. `due` holds the events of the time `now`. Any other
/// event lies in the bucket of the highest digit in which its time differs from `now`, and of the
/// value of that digit. An event moves only towards lower digits, at most once per digit of its
/// distance. Buckets are emptied in order, so events of equal time never change places.
#[derive(Clone, Debug)]
pub(super) struct Queue<T> {
    now: u64,
    due: VecDeque<T>,
    later: [[Vec<(u64, T)>; VALUES]; DIGITS],
    /// Which buckets of each digit are not empty, one bit for each value.
    occupied: [u16; DIGITS],
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self {
            now: 0,
            due: VecDeque::new(),
            later: std::array::from_fn(|_| std::array::from_fn(|_| Vec::new())),
            occupied: [0; DIGITS],
        }
    }

    /// Add an event. Its time must not be before that of the last event taken.
    pub(super) fn push(&mut self, at: u64, event: T) {
        debug_assert!(at >= self.now, "an event cannot lie in the past");
        match (at ^ self.now).checked_ilog2() {
            None => self.due.push_back(event),
            Some(bit) => {
                let digit = bit / DIGIT;
                let value = (at >> (digit * DIGIT)) as usize % VALUES;
                self.later[digit as usize][value].push((at, event));
                self.occupied[digit as usize] |= 1 << value;
            }
        }
    }

    /// Take the earliest event.
    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        if self.due.is_empty() {
            self.advance();
        }
        self.due.pop_front().map(|event| (self.now, event))
    }

    /// Move `now` to the time of the next event, and distribute the events of its bucket anew.
    fn advance(&mut self) {
        let Some(digit) = self.occupied.iter().position(|values| *values != 0) else { return };
        let value = self.occupied[digit].trailing_zeros() as usize;
        self.occupied[digit] &= !(1 << value);
        let mut events = std::mem::take(&mut self.later[digit][value]);
        self.now = events.iter().map(|(at, _)| *at).min().expect("an occupied bucket");
        for (at, event) in events.drain(..) {
            self.push(at, event);
        }
        // All of them have moved to lower digits. The bucket is still empty, and keeps its memory.
        self.later[digit][value] = events;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_by_time_and_then_in_the_order_of_adding() {
        let mut queue = Queue::new();
        let mut sorted = Vec::new();
        let mut random = 1u64;
        let mut now = 0;
        for id in 0..20_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = now + (random >> 40) % if id % 7 == 0 { 100_000 } else { 5 };
            queue.push(at, id);
            sorted.push((at, id));
            if id % 3 != 0 {
                sorted.sort_unstable();
                let expected = sorted.remove(0);
                assert_eq!(queue.pop(), Some(expected));
                now = expected.0;
            }
        }
        sorted.sort_unstable();
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(rest, sorted);
    }
}

//! How long to wait between attempts.

use std::time::Duration;

use fastrand::Rng;

/// Exponential back-off with jitter: the delays between attempts to connect.
///
/// The upper bound doubles with every attempt until it reaches a maximum. Each delay is drawn
/// between half of the bound and all of it, so that clients that lost one node at the same moment
/// do not all come back at the same moment.
///
/// ```
/// use std::time::Duration;
///
/// use doorway_protocol::Backoff;
///
/// let ms = Duration::from_millis;
/// let mut backoff = Backoff::new(ms(5), ms(500));
/// assert!((ms(2)..=ms(5)).contains(&backoff.next_delay()));
/// assert!((ms(5)..=ms(10)).contains(&backoff.next_delay()));
/// backoff.reset(); // The connection is up: begin again when it breaks.
/// assert!((ms(2)..=ms(5)).contains(&backoff.next_delay()));
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    /// The upper bound of the next delay.
    bound: Duration,
    random: Rng,
}

impl Backoff {
    /// Delays of at most `first` to begin with, and never of more than `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, bound: first, random: Rng::new() }
    }

    /// Delays of at most `first` to begin with, and never of more than `longest`, with a seed for
    /// the jitter: the same seed gives the same delays, as simulations need.
    pub fn with_seed(first: Duration, longest: Duration, seed: u64) -> Self {
        Self { first, longest, bound: first, random: Rng::with_seed(seed) }
    }

    /// How long to wait before the next attempt.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.bound.mul_f64(0.5 + self.random.f64() / 2.0);
        self.bound = (self.bound * 2).min(self.longest);
        delay
    }

    /// Begin with short delays again, after an attempt has succeeded.
    pub fn reset(&mut self) {
        self.bound = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn delays_double_up_to_the_longest() {
        let mut backoff = Backoff::new(10 * MS, 50 * MS);
        for bound in [10, 20, 40, 50, 50] {
            let delay = backoff.next_delay();
            assert!((bound * MS / 2..=bound * MS).contains(&delay), "{delay:?}, {bound}");
        }
        backoff.reset();
        assert!(backoff.next_delay() <= 10 * MS);
    }

    #[test]
    fn a_seed_decides_all_delays() {
        let delays = |seed| {
            let mut backoff = Backoff::with_seed(10 * MS, 1000 * MS, seed);
            [(); 8].map(|()| backoff.next_delay())
        };
        assert_eq!(delays(1), delays(1));
        assert_ne!(delays(1), delays(2));
    }
}

//! A token ring on real memory, which finds into order from whatever its registers hold.

use core::fmt;

use super::{KState, Rule, View};
use crate::atomics::{Atomics, Registers};
use crate::{MOST, Memory, Process, Spin, Word, shared};

shared! {
    /// The state of each machine, written by its station only.
    STATE: state[n] = 0;
}

/// Why there is no ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingError {
    /// A ring without stations was asked for.
    NoStations,
    /// More stations were asked for than a ring may have.
    TooManyStations {
        /// So many were asked for.
        asked: usize,
        /// So many there can be.
        most: usize,
    },
}

impl fmt::Display for RingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStations => write!(f, "a ring needs at least one station"),
            Self::TooManyStations { asked, most } => {
                write!(f, "{asked} stations asked for, and a ring has at most {most}")
            }
        }
    }
}

impl core::error::Error for RingError {}

/// A ring of stations around which a privilege goes: Dijkstra's ring of `K` states with
/// `K = 2n - 1`, as few as loads and stores allow.
///
/// The registers may hold anything in the beginning, and anything may happen to them. From then on
/// the first station is privileged at most `K + 1` times until one privilege is left for good. It
/// takes nothing but loads and stores, and no fence.
///
/// ```
/// use doorway_threads::ring::TokenRing;
///
/// let mut ring = TokenRing::holding(&[42, 7, 1])?;
/// let mut stations: Vec<_> = ring.stations().collect();
/// for _ in 0..20 {
///     // Whoever is privileged passes it on when it drops the privilege.
///     stations.iter_mut().for_each(|station| drop(station.poll()));
/// }
/// let privileged: Vec<_> = stations.iter_mut().filter_map(|station| station.poll()).collect();
/// assert_eq!(privileged.len(), 1);
/// # Ok::<(), doorway_threads::ring::RingError>(())
/// ```
#[derive(Debug)]
pub struct TokenRing {
    n: usize,
    registers: Registers,
}

impl TokenRing {
    /// A ring of so many stations, of which the first is privileged.
    pub fn new(stations: usize) -> Result<Self, RingError> {
        match stations {
            0 => Err(RingError::NoStations),
            n if n <= MOST => Ok(Self { n, registers: Registers::declared(SHARED, n) }),
            asked => Err(RingError::TooManyStations { asked, most: MOST }),
        }
    }

    /// A ring whose registers hold any words, one for each station.
    pub fn holding(words: &[Word]) -> Result<Self, RingError> {
        let mut ring = Self::new(words.len())?;
        for (mut station, word) in ring.stations().zip(words) {
            station.disturb(*word);
        }
        Ok(ring)
    }

    /// All stations, for one participant each. The registers stay as they are.
    pub fn stations(&mut self) -> impl ExactSizeIterator<Item = Station<'_>> {
        let ring = &*self;
        (0..ring.n).map(|i| Station { ring, me: Process { i, n: ring.n } })
    }

    /// How many states a machine has.
    pub fn states(&self) -> usize {
        self.rule().k
    }

    const fn rule(&self) -> KState {
        KState { k: 2 * self.n - 1 }
    }

    fn memory(&self) -> Atomics<'_, Spin> {
        Atomics::new(&self.registers)
    }
}

/// The place of one participant in a ring.
///
/// It must be polled again and again, also while its owner wants nothing: a privilege that nobody
/// fetches and drops stays where it is, and all others wait.
#[derive(Debug)]
pub struct Station<'r> {
    ring: &'r TokenRing,
    me: Process,
}

impl Station<'_> {
    /// The privilege, if it is here.
    #[inline]
    pub fn poll(&mut self) -> Option<Privilege<'_>> {
        let (rule, mut memory) = (self.ring.rule(), self.ring.memory());
        // What is no state of a machine stands for one all the same.
        let mut state = |i| memory.read(STATE.of(i)) % rule.k;
        let (own, left) = (state(self.me.i), state(self.me.before(self.me.i)));
        // The rule looks to the left only.
        let [next, _] = rule.moves(self.me, View { left, own, right: own });
        next.map(|next| Privilege { station: self, next })
    }

    /// Put any word into the register of this station, as a fault might.
    pub fn disturb(&mut self, word: Word) {
        self.ring.memory().write(STATE.of(self.me.i), word);
    }
}

/// Whoever has it is privileged, and passes it on by dropping it. One that is forgotten is here
/// again at the next poll.
///
/// While the ring has not yet stabilised, others may have one too.
#[must_use = "the privilege is passed on as soon as it is dropped"]
#[derive(Debug)]
pub struct Privilege<'s> {
    station: &'s Station<'s>,
    next: Word,
}

impl Drop for Privilege<'_> {
    #[inline]
    fn drop(&mut self) {
        self.station.ring.memory().write(STATE.of(self.station.me.i), self.next);
    }
}

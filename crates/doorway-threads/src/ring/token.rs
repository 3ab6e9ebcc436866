//! A token ring on real memory, which stabilises from any contents of its registers.

use core::fmt;

use super::{KState, Rule, View};
use crate::atomics::{Atomics, Registers};
use crate::{MOST, Memory, Process, Spin, Word, shared};

shared! {
    /// The state of each machine, written only by its station.
    STATE: state[n] = 0;
}

/// Why a ring could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingError {
    /// A ring without stations was asked for.
    NoStations,
    /// More stations were asked for than a ring may have.
    TooManyStations {
        /// The number that was asked for.
        asked: usize,
        /// The most stations of a ring.
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

/// A ring of stations around which a privilege goes: Dijkstra's ring of `K` states with `K = 2n -
/// 1`, the fewest with which it stabilises on loads and stores.
///
/// The registers may hold anything in the beginning, and a fault may change them at any time. After
/// the last fault the first station is privileged at most `K + 1` times until exactly one privilege
/// is left for good. The ring uses only loads and stores, and no fence.
///
/// ```
/// use doorway_threads::ring::TokenRing;
///
/// let mut ring = TokenRing::holding(&[42, 7, 1])?;
/// let mut stations: Vec<_> = ring.stations().collect();
/// for _ in 0..20 {
///     // A station passes the privilege on when it drops it.
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
    /// Make a ring of this number of stations, of which the first is privileged.
    pub fn new(stations: usize) -> Result<Self, RingError> {
        match stations {
            0 => Err(RingError::NoStations),
            n if n <= MOST => Ok(Self { n, registers: Registers::declared(SHARED, n) }),
            asked => Err(RingError::TooManyStations { asked, most: MOST }),
        }
    }

    /// Make a ring whose registers hold these words, one for each station.
    pub fn holding(words: &[Word]) -> Result<Self, RingError> {
        let mut ring = Self::new(words.len())?;
        for (mut station, word) in ring.stations().zip(words) {
            station.disturb(*word);
        }
        Ok(ring)
    }

    /// Borrow all stations, one for each participant. The registers stay as they are.
    pub fn stations(&mut self) -> impl ExactSizeIterator<Item = Station<'_>> {
        let ring = &*self;
        (0..ring.n).map(|i| Station { ring, me: Process { i, n: ring.n } })
    }

    /// The number of states of a machine.
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

/// The station of one participant in a ring.
///
/// It must be polled again and again, even while its owner wants nothing: a privilege that is not
/// fetched and dropped stays where it is, and all others wait.
#[derive(Debug)]
pub struct Station<'r> {
    ring: &'r TokenRing,
    me: Process,
}

impl Station<'_> {
    /// Fetch the privilege, if it is at this station.
    #[inline]
    pub fn poll(&mut self) -> Option<Privilege<'_>> {
        let (rule, mut memory) = (self.ring.rule(), self.ring.memory());
        // A word that is not a state of a machine stands for one, by its remainder.
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

/// The privilege of a station. Dropping it passes it on. If it is forgotten, the next poll finds it
/// again.
///
/// Before the ring has stabilised, other stations may have one too.
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

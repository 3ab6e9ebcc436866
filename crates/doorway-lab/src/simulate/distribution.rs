//! Virtual time, the random generator, and the distributions of durations.
//!
//! A seed gives the same run on every machine. That is why time is counted in whole ticks, and why
//! the only function besides the four basic operations is a logarithm written in Rust.

use std::fmt;
use std::str::FromStr;

use doorway_core::NodeId;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Ticks in a mean message delay, the unit of time of a run.
pub(super) const TICKS: f64 = 1_048_576.0;

/// The longest duration. If many durations add up to more than the clock holds, the clock stays at
/// its end.
pub(super) const LONGEST: f64 = 1e9;

/// Convert a time from units to ticks.
pub(super) fn ticks(time: f64) -> u64 {
    (time * TICKS + 0.5) as u64
}

/// The random generator of a run.
#[derive(Clone, Debug)]
pub struct Dice(ChaCha8Rng);

impl Dice {
    /// The generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number from 0 up to, not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }
}

/// The distribution of a duration, in units of time.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always this value.
    Constant(f64),
    /// Uniform between two bounds.
    Uniform(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
}

impl Distribution {
    /// The mean.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant(mean) | Self::Exponential(mean) => *mean,
            Self::Uniform(low, high) => f64::midpoint(*low, *high),
        }
    }

    /// Draw a duration.
    pub(super) fn draw(&self, dice: &mut Dice) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform(low, high) => low + (high - low) * dice.unit(),
            Self::Exponential(mean) => -mean * libm::log(1.0 - dice.unit()),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "constant:{value}"),
            Self::Uniform(low, high) => write!(f, "uniform:{low}..{high}"),
            Self::Exponential(mean) => write!(f, "exponential:{mean}"),
        }
    }
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let distribution = match text.split_once(':') {
            Some(("constant", value)) => number(value).map(Self::Constant),
            Some(("exponential", mean)) => number(mean).map(Self::Exponential),
            Some(("uniform", bounds)) => bounds
                .split_once("..")
                .and_then(|(low, high)| Some((number(low)?, number(high)?)))
                .filter(|(low, high)| low <= high)
                .map(|(low, high)| Self::Uniform(low, high)),
            _ => None,
        };
        distribution.ok_or_else(|| {
            format!(
                "'{text}' is not a distribution; write constant:1, uniform:0.5..1.5 or \
                 exponential:1, with numbers from 0 to {LONGEST:e}"
            )
        })
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value| (0.0..=LONGEST).contains(value))
}

/// How long messages travel.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// One distribution for all pairs of nodes.
    Distribution(Distribution),
    /// A fixed delay for each ordered pair, row by row, as in a wide-area network.
    Matrix {
        /// How many nodes.
        size: usize,
        /// `size * size` delays. Those from a node to itself are not used.
        delays: Vec<f64>,
    },
}

impl Delay {
    /// Parse a matrix from text: a row per line, numbers separated by blanks or commas, `#`
    /// comments.
    pub fn matrix(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
        let rows = lines.map(|(at, line)| (at, line.split('#').next().unwrap_or("").trim()));
        let mut matrix: Vec<Vec<f64>> = Vec::new();
        for (at, row) in rows.filter(|(_, row)| !row.is_empty()) {
            let cells = row.split([',', ' ', '\t']).filter(|cell| !cell.is_empty());
            let parse = |cell| number(cell).ok_or(format!("line {at}: '{cell}' is not a delay"));
            matrix.push(cells.map(parse).collect::<Result<_, _>>()?);
        }
        let size = matrix.len();
        if let Some(row) = matrix.iter().position(|row| row.len() != size) {
            let found = matrix[row].len();
            return Err(format!(
                "row {} has {found} delays, but the matrix has {size} rows",
                row + 1
            ));
        }
        Ok(Self::Matrix { size, delays: matrix.concat() })
    }

    /// The mean over all ordered pairs of different nodes, which is the unit of all reported times.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Distribution(distribution) => distribution.mean(),
            Self::Matrix { size, delays } => {
                let off = |at: &usize| at / size != at % size;
                let sum: f64 = (0..delays.len()).filter(off).map(|at| delays[at]).sum();
                sum / (delays.len() - size).max(1) as f64
            }
        }
    }

    /// Can a message overtake an earlier one of its channel?
    pub(super) fn reorders(&self) -> bool {
        !matches!(self, Self::Distribution(Distribution::Constant(_)) | Self::Matrix { .. })
    }

    pub(super) fn draw(&self, dice: &mut Dice, from: NodeId, to: NodeId) -> f64 {
        match self {
            Self::Distribution(distribution) => distribution.draw(dice),
            Self::Matrix { size, delays } => delays[from.index() * size + to.index()],
        }
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Distribution(distribution) => distribution.fmt(f),
            Self::Matrix { size, .. } => write!(f, "matrix of {size} nodes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_of_their_distribution() {
        let mut dice = Dice::new(7);
        for distribution in ["constant:2", "uniform:0.5..3.5", "exponential:2"] {
            let distribution: Distribution = distribution.parse().unwrap();
            let sum: f64 = (0..200_000).map(|_| distribution.draw(&mut dice)).sum();
            let mean = sum / 200_000.0;
            assert!((mean - 2.0).abs() < 0.02, "{distribution} has mean {mean}");
            assert_eq!(distribution.to_string().parse::<Distribution>().unwrap(), distribution);
        }
    }

    /// A seed gives the same numbers on every machine, to the last bit.
    #[test]
    fn a_seed_gives_exactly_these_numbers() {
        let mut dice = Dice::new(7);
        let mut draw = |distribution: Distribution| ticks(distribution.draw(&mut dice));
        let exponential: Vec<u64> = (0..4).map(|_| draw(Distribution::Exponential(1.0))).collect();
        let uniform: Vec<u64> = (0..2).map(|_| draw(Distribution::Uniform(0.5, 1.5))).collect();
        assert_eq!(exponential, [180_075, 192_844, 1_277_511, 1_360_356]);
        assert_eq!(uniform, [1_154_754, 901_109]);
        assert_eq!(dice.below(1_000_000), 83_059);
    }

    #[test]
    fn invalid_distributions_are_refused() {
        let bad = ["", "1", "constant", "constant:-1", "constant:NaN", "uniform:2..1", "uniform:1"];
        for text in bad.into_iter().chain(["exponential:inf", "exponential:1e10", "gauss:1"]) {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_matrix_must_be_square() {
        let delay = Delay::matrix("0 1 3 # Rome\n1,0,2\n\n3 2 0").unwrap();
        assert!((delay.mean() - 2.0).abs() < 1e-12);
        assert!(Delay::matrix("0 1\n1").unwrap_err().contains("row 2"));
        assert!(Delay::matrix("0 x\n1 0").unwrap_err().contains("line 1"));
    }
}

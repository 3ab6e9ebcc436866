//! What a seed decides: the group and its faults.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// The lease of a new group.
pub(crate) const LEASE: Duration = Duration::from_secs(2);

/// Random numbers from a seed.
pub(crate) struct Dice(ChaCha8Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// A time in whole steps of the simulation.
    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis((from + self.below(to - from)) / 5 * 5)
    }
}

/// All that a seed decides, except for what the clients draw themselves.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// The machines that found the group. One more may be added later.
    pub(crate) seats: usize,
    pub(crate) faults: Vec<Fault>,
    /// When the last machine is added and removed again, if it is.
    pub(crate) guest: Option<(Duration, Duration)>,
    /// When the group gets another lease, if it does.
    pub(crate) other_lease: Option<Duration>,
}

/// A fault that lasts for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    pub(crate) what: FaultKind,
}

/// The kinds of faults, with the numbers of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// What two nodes send each other is lost.
    Cut(usize, usize),
    /// What the first node sends the second is lost.
    CutOneWay(usize, usize),
    /// What two nodes send each other is held back.
    Hold(usize, usize),
    /// A node is cut off from all others.
    Alone(usize),
    /// A node ends without sending anything, as in a power failure. Its clients live on, or end
    /// with it.
    Kill(usize, Clients),
    /// Each write of a node's disk takes this many milliseconds.
    SlowDisk(usize, u64),
    /// The disk of a node has no room.
    FullDisk(usize),
}

/// What becomes of the clients of a node that is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clients {
    /// They end with it.
    End,
    /// They live on and go on with the next process of the node.
    LiveOn,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let seats = if dice.below(4) == 0 { 5 } else { 3 };
        let guest = (dice.below(3) == 0).then(|| {
            let from = dice.millis(2000, 8000);
            (from, from + dice.millis(3000, 8000))
        });
        let other_lease = (dice.below(4) == 0).then(|| dice.millis(3000, 12_000));
        let faults = faults(&mut dice, seats);
        Self { seed, seats, faults, guest, other_lease }
    }

    /// How many machines there are.
    pub(crate) fn size(&self) -> usize {
        self.seats + usize::from(self.guest.is_some())
    }

    /// The time after which there are no more faults.
    pub(crate) fn calm(&self) -> Duration {
        let ends = self.faults.iter().map(|fault| fault.to);
        let guest = self.guest.map(|(_, gone)| gone);
        ends.chain(guest).chain(self.other_lease).max().unwrap_or_default().max(LEASE * 3)
    }
}

/// Up to eight faults. Faults of one kind do not undo each other.
fn faults(dice: &mut Dice, size: usize) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for _ in 0..=dice.below(8) {
        let from = dice.millis(2000, 16_000);
        // Shorter and longer than a lease.
        let to = from + dice.millis(50, 6000);
        let first = dice.below(size as u64) as usize;
        let second = (first + 1 + dice.below(size as u64 - 1) as usize) % size;
        let clients = [Clients::End, Clients::LiveOn][dice.below(2) as usize];
        let what = match dice.below(12) {
            0 => FaultKind::Cut(first, second),
            1 => FaultKind::CutOneWay(first, second),
            2 => FaultKind::Hold(first, second),
            3 | 4 => FaultKind::Alone(first),
            5 => FaultKind::SlowDisk(first, 50 + dice.below(2000)),
            6 => FaultKind::FullDisk(first),
            _ => FaultKind::Kill(first, clients),
        };
        let meets = |other: &Fault| from <= other.to && other.from <= to;
        // The end of one fault must not end another one.
        if !faults.iter().any(|other| meets(other) && collides(what, other.what)) {
            faults.push(Fault { from, to, what });
        }
    }
    faults
}

fn collides(one: FaultKind, other: FaultKind) -> bool {
    let network = |what: FaultKind| match what {
        FaultKind::Cut(a, b) | FaultKind::CutOneWay(a, b) | FaultKind::Hold(a, b) => vec![a, b],
        FaultKind::Alone(a) | FaultKind::Kill(a, _) => vec![a],
        FaultKind::SlowDisk(..) | FaultKind::FullDisk(_) => Vec::new(),
    };
    let disk = |what: FaultKind| match what {
        FaultKind::SlowDisk(a, _) | FaultKind::FullDisk(a) => Some(a),
        _ => None,
    };
    network(one).iter().any(|node| network(other).contains(node))
        || disk(one).is_some() && disk(one) == disk(other)
}

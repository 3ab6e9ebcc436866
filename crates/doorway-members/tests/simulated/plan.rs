//! What a seed decides: the group and its faults.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// The leases of new groups. A removal waits for 250 ms longer than it must for its clocks, so only
/// with a longer lease does it matter how fast they run.
const LEASES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(5)];

/// The rates of the slowest and the fastest clock, in thousandths.
const SLOWEST: u32 = 915;
const FASTEST: u32 = 1001;

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

    /// A time in whole steps of the simulation, between two parts of a lease in thousandths.
    pub(crate) fn part(&mut self, lease: Duration, from: u64, to: u64) -> Duration {
        let millis = (from + self.below(to - from)) * lease.as_millis() as u64 / 1000;
        Duration::from_millis(millis / 5 * 5)
    }
}

/// All that a seed decides, except for what the clients draw themselves.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// The machines that found the group. One more may be added later.
    pub(crate) seats: usize,
    /// The lease of the new group.
    pub(crate) lease: Duration,
    /// How fast the clock of each machine runs, in thousandths.
    pub(crate) rates: Vec<u32>,
    pub(crate) faults: Vec<Fault>,
    /// When the last machine is added and removed again, if it is.
    pub(crate) guest: Option<(Duration, Duration)>,
    /// When the group gets another lease, if it does.
    pub(crate) other_lease: Option<Duration>,
    /// When an operator breaks locks that are closed without end, besides the end of the run.
    pub(crate) breaks: Option<Duration>,
}

/// A fault that lasts for a while.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    pub(crate) what: FaultKind,
}

/// Some of the machines, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machines(u64);

impl Machines {
    pub(crate) fn has(self, machine: usize) -> bool {
        self.0 >> machine & 1 == 1
    }
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
    /// These nodes are cut off from all others.
    Split(Machines),
    /// These nodes are cut off from all others, except for one node that reaches all.
    Bridge(usize, Machines),
    /// A node ends without sending anything, as in a power failure. Its clients live on, or end
    /// with it.
    Kill(usize, Clients),
    /// Nothing runs on a node, and then it goes on.
    Pause(usize),
    /// Each write of a node's disk takes this many milliseconds.
    SlowDisk(usize, u64),
    /// The disk of a node has no room.
    FullDisk(usize),
}

impl FaultKind {
    /// The directions in which nothing arrives.
    pub(crate) fn cuts(self, size: usize) -> Vec<(usize, usize)> {
        let all = (0..size).flat_map(|from| (0..size).map(move |to| (from, to)));
        let is_cut = |&(from, to): &(usize, usize)| match self {
            Self::Cut(one, two) => (from, to) == (one, two) || (from, to) == (two, one),
            Self::CutOneWay(one, two) => (from, to) == (one, two),
            Self::Alone(node) => (from == node) != (to == node),
            Self::Split(apart) => apart.has(from) != apart.has(to),
            Self::Bridge(middle, apart) => {
                from != middle && to != middle && apart.has(from) != apart.has(to)
            }
            _ => false,
        };
        all.filter(is_cut).collect()
    }
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
        let lease = LEASES[dice.below(2) as usize];
        let guest = (dice.below(3) == 0).then(|| {
            let from = dice.part(lease, 1000, 4000);
            (from, from + dice.part(lease, 1500, 4000))
        });
        let other_lease = (dice.below(4) == 0).then(|| dice.part(lease, 1500, 6000));
        let breaks = (dice.below(3) == 0).then(|| dice.part(lease, 3000, 10_000));
        let size = seats + usize::from(guest.is_some());
        let rates = (0..size).map(|_| rate(&mut dice)).collect();
        let faults = faults(&mut dice, seats, lease);
        Self { seed, seats, lease, rates, faults, guest, other_lease, breaks }
    }

    /// The lease that the group gets, if it gets another one.
    pub(crate) fn next_lease(&self) -> Duration {
        self.lease * 3 / 2
    }

    /// How many machines there are.
    pub(crate) fn size(&self) -> usize {
        self.seats + usize::from(self.guest.is_some())
    }

    /// The time after which there are no more faults.
    pub(crate) fn calm(&self) -> Duration {
        let ends = self.faults.iter().map(|fault| fault.to);
        let guest = self.guest.map(|(_, gone)| gone);
        let others = [guest, self.other_lease, self.breaks].into_iter().flatten();
        ends.chain(others).max().unwrap_or_default().max(self.lease * 3)
    }
}

/// How fast a clock runs, in thousandths. A time service slews a clock by up to 8.5 %, and no clock
/// that a member waits with is more than 0.1 % fast.
fn rate(dice: &mut Dice) -> u32 {
    match dice.below(4) {
        0 => SLOWEST,
        1 => FASTEST,
        _ => SLOWEST + dice.below(u64::from(FASTEST - SLOWEST)) as u32,
    }
}

/// Up to eight faults. Several faults may cut one link, but of one process or of one disk there is
/// one fault at a time.
fn faults(dice: &mut Dice, size: usize, lease: Duration) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    for _ in 0..=dice.below(8) {
        let from = dice.part(lease, 1000, 8000);
        // Shorter and longer than a lease.
        let to = from + dice.part(lease, 25, 3000);
        let first = dice.below(size as u64) as usize;
        let second = (first + 1 + dice.below(size as u64 - 1) as usize) % size;
        let clients = [Clients::End, Clients::LiveOn][dice.below(2) as usize];
        let third = (0..size).find(|node| *node != first && *node != second).unwrap_or(first);
        // The first and the third are not on the side of the second.
        let apart = dice.below(1 << size) & !(1 << first) & !(1 << third) | 1 << second;
        let apart = Machines(apart);
        let what = match dice.below(17) {
            0 => FaultKind::Cut(first, second),
            1 => FaultKind::CutOneWay(first, second),
            2 => FaultKind::Hold(first, second),
            3 => FaultKind::Alone(first),
            4 => FaultKind::Split(apart),
            5 | 6 => FaultKind::Bridge(first, apart),
            7 => FaultKind::SlowDisk(first, 50 + dice.below(2000)),
            8 => FaultKind::FullDisk(first),
            9..=11 => FaultKind::Pause(first),
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
    let process = |what: FaultKind| match what {
        FaultKind::Kill(node, _) | FaultKind::Pause(node) => Some(node),
        _ => None,
    };
    let disk = |what: FaultKind| match what {
        FaultKind::SlowDisk(node, _) | FaultKind::FullDisk(node) => Some(node),
        _ => None,
    };
    process(one).is_some() && process(one) == process(other)
        || disk(one).is_some() && disk(one) == disk(other)
}

/// Every kind of fault is drawn by the seeds of the tests.
#[test]
fn every_fault_is_drawn() {
    let plans: Vec<Plan> = (0..super::SEEDS).map(Plan::new).collect();
    let all: Vec<FaultKind> =
        plans.iter().flat_map(|plan| plan.faults.iter().map(|fault| fault.what)).collect();
    let drawn = |kind: &str, is: fn(&FaultKind) -> bool| {
        assert!(all.iter().any(is), "no seed draws {kind}");
    };
    drawn("a cut pair", |what| matches!(what, FaultKind::Cut(..)));
    drawn("a one-way cut", |what| matches!(what, FaultKind::CutOneWay(..)));
    drawn("a link held back", |what| matches!(what, FaultKind::Hold(..)));
    drawn("a node alone", |what| matches!(what, FaultKind::Alone(_)));
    drawn("a split", |what| matches!(what, FaultKind::Split(_)));
    drawn("a bridge", |what| matches!(what, FaultKind::Bridge(..)) && !what.cuts(3).is_empty());
    drawn("a kill", |what| matches!(what, FaultKind::Kill(_, Clients::End)));
    drawn("a kill whose clients live on", |what| {
        matches!(what, FaultKind::Kill(_, Clients::LiveOn))
    });
    drawn("a pause", |what| matches!(what, FaultKind::Pause(_)));
    drawn("a slow disk", |what| matches!(what, FaultKind::SlowDisk(..)));
    drawn("a full disk", |what| matches!(what, FaultKind::FullDisk(_)));
    assert!(plans.iter().any(|plan| plan.guest.is_some()), "no machine joins and leaves");
    assert!(plans.iter().any(|plan| plan.other_lease.is_some()), "no lease changes");
    let rates = || plans.iter().flat_map(|plan| plan.rates.iter().copied());
    assert_eq!((rates().min(), rates().max()), (Some(SLOWEST), Some(FASTEST)));
}

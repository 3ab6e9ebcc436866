//! What the explorer finds of the classical algorithms on plain registers, of texts that differ
//! from them in one place, and of their fences; and that the locks serve as many as they say.

use doorway_threads::algorithms::{
    burns::Burns,
    burns_printed::BurnsPrinted,
    de_bruijn::DeBruijn,
    doran_thomas_1::{self, DoranThomas1},
    doran_thomas_2::DoranThomas2,
    eisenberg_mcguire::{self, EisenbergMcGuire},
    knuth::Knuth,
    peterson::{self, Peterson},
    peterson_n::PetersonN,
    peterson_tree::{self, PetersonTree},
};
use doorway_threads::check::{Check, Report};
use doorway_threads::{Algorithm, Bypass, Claims, Exclusive, Info, Memory, Process, Room, Shared};

/// The algorithm of Eisenberg and `McGuire`, if who leaves begins to seek at the second after it.
enum SeeksTooLate {}

impl Algorithm for SeeksTooLate {
    type At = eisenberg_mcguire::At;

    const INFO: Info = Info { name: "seeks-too-late", ..EisenbergMcGuire::INFO };
    const SHARED: &'static [Shared] = EisenbergMcGuire::SHARED;

    fn outside(me: Process) -> Self::At {
        EisenbergMcGuire::outside(me)
    }

    fn step(at: Self::At, me: Process, memory: &mut impl Memory) -> Self::At {
        let at = match at {
            Self::At::Inside => Self::At::Seek { j: me.after(me.after(me.i)) },
            at => at,
        };
        EisenbergMcGuire::step(at, me, memory)
    }
}

/// The first algorithm of Doran and Thomas, if the turn is asked for without a look at the other.
enum NeverLooks {}

impl Algorithm for NeverLooks {
    type At = doran_thomas_1::At;

    const INFO: Info = Info { name: "never-looks", ..DoranThomas1::INFO };
    const SHARED: &'static [Shared] = DoranThomas1::SHARED;

    fn outside(me: Process) -> Self::At {
        DoranThomas1::outside(me)
    }

    fn step(at: Self::At, me: Process, memory: &mut impl Memory) -> Self::At {
        match DoranThomas1::step(at, me, memory) {
            Self::At::Look => Self::At::AskTurn,
            at => at,
        }
    }
}

/// Peterson's algorithm, if the turn is given before the flag is raised.
enum GivesTurnFirst {}

impl Algorithm for GivesTurnFirst {
    type At = peterson::At;

    const INFO: Info = Info { name: "gives-turn-first", ..Peterson::INFO };
    const SHARED: &'static [Shared] = Peterson::SHARED;

    fn outside(me: Process) -> Self::At {
        Peterson::outside(me)
    }

    fn step(at: Self::At, me: Process, memory: &mut impl Memory) -> Self::At {
        match at {
            Self::At::Outside => {
                Peterson::step(Self::At::GiveTurn, me, memory);
                Self::At::GiveTurn
            }
            Self::At::GiveTurn => {
                Peterson::step(Self::At::Outside, me, memory);
                Self::At::Look
            }
            at => Peterson::step(at, me, memory),
        }
    }
}

/// Peterson's tree, if the flags are lowered from the leaf upwards.
enum LowersUpwards {}

impl Algorithm for LowersUpwards {
    type At = peterson_tree::At;

    const INFO: Info = Info { name: "lowers-upwards", ..PetersonTree::INFO };
    const SHARED: &'static [Shared] = PetersonTree::SHARED;

    fn outside(me: Process) -> Self::At {
        PetersonTree::outside(me)
    }

    fn step(at: Self::At, me: Process, memory: &mut impl Memory) -> Self::At {
        let c = match at {
            Self::At::Inside => me.n + me.i,
            Self::At::Lower { c } => c,
            at => return PetersonTree::step(at, me, memory),
        };
        PetersonTree::step(Self::At::Lower { c }, me, memory);
        if c / 2 == 1 { Self::At::Outside } else { Self::At::Lower { c: c / 2 } }
    }
}

/// What is found of an algorithm for `n` processes.
struct Row {
    check: fn(usize) -> (Info, Report),
    n: usize,
    states: u64,
    found: Found,
    /// If not all is as claimed: how many steps lead to the fault, and how many then happen again
    /// and again.
    fault: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// Two are inside.
    Two,
    /// There may come a time from which on nobody enters.
    Deadlock,
    /// One may wait for ever, while others enter.
    Lockout,
    /// Everyone enters, but not in order, and is overtaken so often.
    Entry(Bypass),
    /// Everyone enters in order, and is overtaken so often.
    Order(Bypass),
}

impl Found {
    fn of(report: &Report) -> Option<Self> {
        if !report.exclusion? {
            return Some(Self::Two);
        }
        match (report.deadlock_free?, report.lockout_free?, report.fifo?, report.bypass?) {
            (false, ..) => Some(Self::Deadlock),
            (true, false, false, Bypass::Unbounded) => Some(Self::Lockout),
            (true, false, ..) => None,
            (true, true, false, bypass) => Some(Self::Entry(bypass)),
            (true, true, true, bypass) => Some(Self::Order(bypass)),
        }
    }

    /// Is this what is claimed for `n` processes, no more and no less?
    fn is_claimed(self, claims: &Claims, n: usize) -> bool {
        let bypass = match self {
            Self::Two | Self::Deadlock => return false,
            Self::Lockout => Bypass::Unbounded,
            Self::Entry(bypass) | Self::Order(bypass) => bypass,
        };
        claims.exclusion
            && claims.deadlock_free
            && (claims.lockout_free)(n) == (self != Self::Lockout)
            && (claims.fifo)(n) == matches!(self, Self::Order(_))
            && (claims.bypass)(n) == bypass
    }
}

fn explore<A: Algorithm>(n: usize) -> (Info, Report) {
    (A::INFO, Check::<A>::new(n).run())
}

const fn row<A: Algorithm>(n: usize, states: u64, found: Found) -> Row {
    Row { check: explore::<A>, n, states, found, fault: None }
}

const fn fault<A: Algorithm>(n: usize, states: u64, found: Found, fault: (usize, usize)) -> Row {
    Row { check: explore::<A>, n, states, found, fault: Some(fault) }
}

const fn entry(all: u32, one: u32) -> Found {
    Found::Entry(Bypass::AtMost { all, one })
}

const ENTRY: Found = Found::Entry(Bypass::Unbounded);
const ORDER: Found = Found::Order(Bypass::AtMost { all: 1, one: 1 });

const TABLE: &[Row] = &[
    row::<Knuth>(2, 108, entry(1, 1)),
    row::<Knuth>(3, 1_923, entry(3, 2)),
    row::<Knuth>(4, 38_770, entry(7, 4)),
    row::<DeBruijn>(2, 142, entry(1, 1)),
    row::<DeBruijn>(3, 2_956, entry(3, 2)),
    row::<DeBruijn>(4, 67_377, entry(6, 3)),
    row::<EisenbergMcGuire>(2, 154, entry(1, 1)),
    row::<EisenbergMcGuire>(3, 3_000, entry(2, 1)),
    row::<EisenbergMcGuire>(4, 60_247, entry(3, 1)),
    fault::<SeeksTooLate>(2, 146, Found::Lockout, (9, 11)),
    fault::<SeeksTooLate>(3, 2_742, Found::Lockout, (11, 11)),
    row::<DoranThomas1>(2, 100, ENTRY),
    fault::<NeverLooks>(2, 68, Found::Deadlock, (3, 1)),
    row::<DoranThomas2>(2, 98, entry(1, 1)),
    fault::<GivesTurnFirst>(2, 48, Found::Two, (7, 0)),
    row::<PetersonN>(2, 32, ORDER),
    row::<PetersonN>(3, 1_605, ENTRY),
    row::<PetersonN>(4, 110_490, ENTRY),
    row::<PetersonTree>(2, 32, ORDER),
    row::<PetersonTree>(3, 480, ENTRY),
    row::<PetersonTree>(4, 7_680, ENTRY),
    fault::<LowersUpwards>(3, 740, Found::Two, (17, 0)),
    row::<Burns>(2, 76, Found::Lockout),
    row::<Burns>(3, 1_816, Found::Lockout),
    row::<Burns>(4, 55_180, Found::Lockout),
    row::<BurnsPrinted>(2, 78, Found::Lockout),
    row::<BurnsPrinted>(3, 1_458, Found::Lockout),
    fault::<BurnsPrinted>(4, 33_072, Found::Deadlock, (12, 42)),
];

#[test]
fn every_schedule_was_explored_and_the_claims_are_what_was_found() {
    for row in TABLE {
        let (info, report) = (row.check)(row.n);
        let name = format!("{} of {}", info.name, row.n);
        assert_eq!(Found::of(&report), Some(row.found), "{name}");
        assert_eq!(row.found.is_claimed(&info.claims, row.n), row.fault.is_none(), "{name}");
        assert_eq!(report.progress.states, row.states, "{name}");
        let fault = (report.schedule.len(), report.cycle.len());
        assert_eq!(fault, row.fault.unwrap_or_default(), "{name}");
    }
}

/// What becomes of an algorithm for `n` processes if writes are buffered.
struct Fences {
    check: fn(usize, &str) -> (Info, Report),
    n: usize,
    states: u64,
    /// How many steps lead two in if a fence is left out, for each fence; `None` for one that is
    /// not needed on this memory.
    without: &'static [(char, Option<usize>)],
}

fn buffer<A: Algorithm>(n: usize, dropped: &str) -> (Info, Report) {
    (A::INFO, Check::<A>::buffered(n, dropped).run())
}

const fn fences<A: Algorithm>(
    n: usize,
    states: u64,
    without: &'static [(char, Option<usize>)],
) -> Fences {
    Fences { check: buffer::<A>, n, states, without }
}

const FENCES: &[Fences] = &[
    fences::<Knuth>(2, 812, &[('b', Some(11))]),
    fences::<Knuth>(3, 34_445, &[('b', Some(13))]),
    fences::<DeBruijn>(2, 800, &[('b', Some(9))]),
    fences::<DeBruijn>(3, 35_122, &[('b', Some(11))]),
    fences::<EisenbergMcGuire>(2, 922, &[('b', Some(14))]),
    fences::<EisenbergMcGuire>(3, 43_462, &[('b', Some(16))]),
    fences::<DoranThomas1>(2, 208, &[('a', Some(4)), ('c', Some(16))]),
    fences::<DoranThomas2>(2, 360, &[('a', Some(4))]),
    fences::<PetersonN>(2, 40, &[('a', None), ('b', Some(9))]),
    fences::<PetersonN>(3, 1_737, &[('a', None), ('b', Some(19))]),
    fences::<PetersonTree>(2, 40, &[('a', None), ('b', Some(9))]),
    fences::<PetersonTree>(3, 672, &[('a', None), ('b', Some(12))]),
    fences::<Burns>(2, 144, &[('b', Some(8))]),
    fences::<Burns>(3, 3_832, &[('b', Some(10))]),
    fences::<BurnsPrinted>(2, 138, &[('b', Some(10))]),
    fences::<BurnsPrinted>(3, 2_969, &[('b', Some(12))]),
];

#[test]
fn buffered_writes_need_the_fences() {
    for row in FENCES {
        let (info, report) = (row.check)(row.n, "");
        let name = format!("{} of {}", info.name, row.n);
        assert_eq!(report.exclusion, Some(true), "{name}");
        assert_eq!(report.progress.states, row.states, "{name}");
        assert!(info.fences.chars().eq(row.without.iter().map(|(fence, _)| *fence)), "{name}");
        for (fence, steps) in row.without {
            let (_, report) = (row.check)(row.n, &fence.to_string());
            assert_eq!(report.exclusion, Some(steps.is_none()), "{name} without {fence}");
            assert_eq!(report.schedule.len(), steps.unwrap_or(0), "{name} without {fence}");
        }
    }
}

/// The first, the last and a middle one of `n` seats use the lock at the same time.
fn crowd<A: Exclusive>(n: usize) {
    const TIMES: usize = 5;
    let mut room: Room<A, usize> = Room::new(n, 0).expect("no more than served");
    let seats = room.seats().enumerate().filter(|(i, _)| [0, n / 2, n - 1].contains(i));
    let seats: Vec<_> = seats.map(|(_, seat)| seat).collect();
    let entries = seats.len() * TIMES;
    std::thread::scope(|scope| {
        for mut seat in seats {
            scope.spawn(move || {
                for _ in 0..TIMES {
                    let mut count = seat.lock();
                    let before = *count;
                    std::thread::yield_now();
                    *count = before + 1;
                }
            });
        }
    });
    assert_eq!(room.into_inner(), entries, "{} of {n}", A::INFO.name);
}

#[test]
fn locks_serve_any_number_up_to_their_most() {
    fn all<A: Exclusive>() {
        for n in [1, 2, 3, 5, 6, 7, 8, 63, 300, 1023, 1024] {
            if n <= A::INFO.most {
                crowd::<A>(n);
            }
        }
    }
    all::<Knuth>();
    all::<DeBruijn>();
    all::<EisenbergMcGuire>();
    all::<DoranThomas1>();
    all::<DoranThomas2>();
    all::<PetersonN>();
    all::<PetersonTree>();
    all::<Burns>();
}

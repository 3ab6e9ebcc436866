//! The bakery and its relatives: every schedule of few processes, and locks of many.

use doorway_threads::algorithms::bakery::{At, Bakery};
use doorway_threads::algorithms::hehner_shyamasundar::{self, HehnerShyamasundar};
use doorway_threads::algorithms::kessels::Kessels;
use doorway_threads::algorithms::{LockTask, Task, with, with_lock};
use doorway_threads::check::{Check, Report};
use doorway_threads::{
    Algorithm, Bypass, Exclusive, Info, Memory, Process, Register, Room, Shared, Word,
};

/// What is found of so many processes on memory that keeps order.
struct Row {
    name: &'static str,
    n: usize,
    states: u64,
    lockout_free: bool,
    /// By all others together and by any one of them, if there is a bound.
    bypass: Option<(u32, u32)>,
    fifo: bool,
}

const fn row(
    name: &'static str,
    n: usize,
    states: u64,
    lockout_free: bool,
    bypass: Option<(u32, u32)>,
    fifo: bool,
) -> Row {
    Row { name, n, states, lockout_free, bypass, fifo }
}

const ROWS: [Row; 20] = [
    row("bakery", 2, 633, true, Some((1, 1)), true),
    row("bakery", 3, 38_929, true, Some((2, 1)), true),
    row("hehner-shyamasundar", 2, 297, true, Some((1, 1)), true),
    row("hehner-shyamasundar", 3, 12_187, true, Some((2, 1)), true),
    row("kessels", 2, 104, true, Some((1, 1)), true),
    row("kessels-tree", 2, 104, true, Some((1, 1)), false),
    row("kessels-tree", 3, 3_952, true, None, false),
    row("kessels-tree", 4, 159_744, true, None, false),
    row("one-bit", 2, 17, false, None, false),
    row("one-bit", 3, 197, false, None, false),
    row("one-bit", 4, 2_828, false, None, false),
    row("three-bit", 2, 1_128, true, Some((2, 2)), false),
    row("three-bit", 3, 324_352, true, Some((8, 6)), false),
    row("lamport-fast", 2, 290, false, None, false),
    row("lamport-fast", 3, 8_660, false, None, false),
    row("lamport-fast", 4, 246_240, false, None, false),
    row("szymanski", 2, 65, true, Some((2, 2)), false),
    row("szymanski", 3, 1_317, true, Some((4, 2)), false),
    row("szymanski", 4, 33_255, true, Some((6, 2)), false),
    row("peterson-fischer", 2, 130, true, Some((1, 1)), true),
];

/// Each fence, and after how many steps two are inside without it, if writes are buffered.
const FENCES: [(&str, &[(char, usize)]); 9] = [
    ("bakery", &[('a', 14), ('c', 16)]),
    ("hehner-shyamasundar", &[('a', 10), ('b', 11)]),
    ("kessels", &[('a', 9), ('b', 10)]),
    ("kessels-tree", &[('a', 9), ('b', 10)]),
    ("one-bit", &[('a', 4)]),
    ("three-bit", &[('b', 10)]),
    ("lamport-fast", &[('a', 10), ('b', 10)]),
    ("szymanski", &[('a', 11), ('b', 12)]),
    ("peterson-fischer", &[('a', 10), ('b', 17), ('c', 23)]),
];

/// Explore, with what is declared; on buffered memory if fences, perhaps none, are to be left out.
struct Explore<'a>(usize, Option<&'a str>);

impl Task for Explore<'_> {
    type Output = (Info, Report);

    fn run<A: Algorithm>(self) -> (Info, Report) {
        let check = match self.1 {
            None => Check::<A>::new(self.0),
            Some(dropped) => Check::<A>::buffered(self.0, dropped),
        };
        (A::INFO, check.run())
    }
}

#[test]
fn every_schedule_is_as_claimed() {
    for Row { name, n, states, lockout_free, bypass, fifo } in ROWS {
        let (info, report) = with(name, Explore(n, None)).unwrap();
        let at_most = |(all, one)| Bypass::AtMost { all, one };
        let bypass = bypass.map_or(Bypass::Unbounded, at_most);
        assert_eq!(report.progress.states, states, "{name} of {n}: states");
        assert_eq!(report.exclusion, Some(true), "{name} of {n}: exclusion");
        assert_eq!(report.deadlock_free, Some(true), "{name} of {n}: deadlock");
        assert_eq!(report.lockout_free, Some(lockout_free), "{name} of {n}: lockout");
        assert_eq!(report.bypass, Some(bypass), "{name} of {n}: bypass");
        assert_eq!(report.fifo, Some(fifo), "{name} of {n}: order");
        assert_eq!((info.claims.lockout_free)(n), lockout_free, "{name} of {n}: claimed lockout");
        assert_eq!((info.claims.bypass)(n), bypass, "{name} of {n}: claimed bypass");
        assert_eq!((info.claims.fifo)(n), fifo, "{name} of {n}: claimed order");
    }
}

#[test]
fn every_fence_is_needed_and_no_other() {
    for (name, fences) in FENCES {
        let (info, _) = with(name, Explore(2, Some(""))).unwrap();
        let names: String = fences.iter().map(|(fence, _)| fence).collect();
        assert_eq!(info.fences, names, "{name}");
        for n in 2..=3.min(info.most) {
            let (_, report) = with(name, Explore(n, Some(""))).unwrap();
            assert_eq!(report.exclusion, Some(true), "{name} of {n}");
        }
        for (fence, steps) in fences {
            let (_, report) = with(name, Explore(2, Some(&fence.to_string()))).unwrap();
            assert_eq!(report.exclusion, Some(false), "{name} without fence {fence}");
            assert_eq!(report.schedule.len(), *steps, "{name} without fence {fence}");
        }
    }
}

#[test]
fn kessels_lets_processes_give_up() {
    let report = Check::<Kessels>::new(2).giving_up().run();
    assert_eq!(report.exclusion, Some(true));
    assert_eq!(report.lockout_free, Some(true), "who goes on waiting gets in");
    assert_eq!(report.bypass, Some(Bypass::AtMost { all: 2, one: 2 }));
    assert_eq!(report.fifo, Some(true));
}

/// The other accesses of memory, which no algorithm of reads and writes makes.
macro_rules! no_other_access {
    () => {
        fn swap(&mut self, _: Register, _: Word) -> Word {
            unreachable!()
        }

        fn add(&mut self, _: Register, _: isize) -> Word {
            unreachable!()
        }

        fn replace(&mut self, _: Register, _: Word, _: Word) -> bool {
            unreachable!()
        }

        fn down(&mut self, _: Register) -> bool {
            unreachable!()
        }

        fn up(&mut self, _: Register) {
            unreachable!()
        }
    };
}

/// The bakery on poor registers: of so many bits, and perhaps none that tell who is choosing.
#[derive(Debug)]
enum Poor<const BITS: u32, const CHOOSING: bool> {}

impl<const BITS: u32, const CHOOSING: bool> Algorithm for Poor<BITS, CHOOSING> {
    type At = At;

    const INFO: Info = Info { bound: None, ..Bakery::INFO };
    const SHARED: &'static [Shared] = Bakery::SHARED;

    fn outside(me: Process) -> At {
        Bakery::outside(me)
    }

    /// Go on until there is an access to a register that exists.
    fn step(mut at: At, me: Process, memory: &mut impl Memory) -> At {
        let mut poor = PoorMemory::<_, BITS, CHOOSING> { memory, accessed: false };
        while !poor.accessed {
            at = Bakery::step(at, me, &mut poor);
        }
        at
    }
}

struct PoorMemory<'m, M, const BITS: u32, const CHOOSING: bool> {
    memory: &'m mut M,
    accessed: bool,
}

impl<const BITS: u32, const CHOOSING: bool> Poor<BITS, CHOOSING> {
    fn has(register: Register) -> bool {
        CHOOSING || Self::SHARED[register.array].name != "choosing"
    }
}

impl<M: Memory, const BITS: u32, const CHOOSING: bool> Memory
    for PoorMemory<'_, M, BITS, CHOOSING>
{
    fn read(&mut self, register: Register) -> Word {
        self.accessed = Poor::<BITS, CHOOSING>::has(register);
        if self.accessed { self.memory.read(register) } else { 0 }
    }

    fn write(&mut self, register: Register, word: Word) {
        self.accessed = Poor::<BITS, CHOOSING>::has(register);
        if self.accessed {
            self.memory.write(register, word % (1 << BITS));
        }
    }

    fn fence(&mut self, name: char) {
        self.memory.fence(name);
    }

    fn wait(&mut self) {
        self.memory.wait();
    }

    no_other_access!();
}

#[test]
fn the_bakery_without_choosing_lets_two_in() {
    let report = Check::<Poor<7, false>>::new(2).run();
    assert_eq!(report.exclusion, Some(false));
    assert_eq!(report.schedule.len(), 8);
}

#[test]
fn the_bakery_lets_two_in_when_its_numbers_begin_again() {
    let report = Check::<Poor<7, true>>::new(2).run();
    assert_eq!(report.exclusion, Some(false));
    assert_eq!(report.schedule.len(), 1030);
}

/// The registers of one number: the same all over.
struct All(Word);

impl Memory for All {
    fn read(&mut self, _: Register) -> Word {
        self.0
    }

    fn write(&mut self, _: Register, _: Word) {}

    fn fence(&mut self, _: char) {}

    fn wait(&mut self) {}

    no_other_access!();
}

/// The last look around before a number is taken.
const LAST: Process = Process { i: 0, n: 2 };

#[test]
#[should_panic(expected = "numbers left")]
fn the_bakery_does_not_begin_again() {
    Bakery::step(At::Survey { j: 1, most: 0 }, LAST, &mut All(Word::MAX));
}

#[test]
#[should_panic(expected = "numbers left")]
fn the_numbers_of_hehner_and_shyamasundar_do_not_become_infinite() {
    let at = hehner_shyamasundar::At::Survey { j: 1, most: 0 };
    HehnerShyamasundar::step(at, LAST, &mut All(Word::MAX - 1));
}

/// A lock of so many seats: each is used alone, and then the first, the last and the middle ones
/// at once. What is counted is compared with what should be.
struct Crowd(usize);

impl LockTask for Crowd {
    type Output = (usize, usize);

    fn run<A: Exclusive>(self) -> (usize, usize) {
        const ROUNDS: usize = 100;
        let Self(n) = self;
        let mut room: Room<A, usize> = Room::new(n, 0).expect("so many seats");
        for mut seat in room.seats() {
            *seat.lock() += 1;
            *seat.lock() += 1;
        }
        let mut expected = 2 * n;
        std::thread::scope(|scope| {
            for (number, mut seat) in room.seats().enumerate() {
                if [0, 1, n / 2, n - 1].contains(&number) {
                    scope.spawn(move || (0..ROUNDS).for_each(|_| *seat.lock() += 1));
                    expected += ROUNDS;
                }
            }
        });
        (room.into_inner(), expected)
    }
}

#[test]
fn locks_serve_as_many_as_they_say() {
    for (name, _) in FENCES {
        let (info, _) = with(name, Explore(2, Some(""))).unwrap();
        for n in [1, 2, 3, 5, 6, 64, info.most].into_iter().filter(|n| *n <= info.most) {
            let (counted, expected) = with_lock(name, Crowd(n)).unwrap();
            assert_eq!(counted, expected, "{name} of {n}");
        }
    }
}

//! Algorithms with one change, and registers that are too small: what goes wrong then shows what
//! the changed place is needed for.

use doorway_threads::algorithms::bakery::{self, Bakery};
use doorway_threads::algorithms::doran_thomas_1::DoranThomas1;
use doorway_threads::algorithms::eisenberg_mcguire::EisenbergMcGuire;
use doorway_threads::algorithms::hehner_shyamasundar::{self, HehnerShyamasundar};
use doorway_threads::algorithms::peterson::Peterson;
use doorway_threads::algorithms::peterson_tree::PetersonTree;
use doorway_threads::algorithms::replace_add::ReplaceAdd;
use doorway_threads::check::{Check, Report};
use doorway_threads::{Algorithm, Info, Memory, Process, Register, RegisterArray, Word};

use crate::found::{BROKEN, EVER, LIVELOCKS, ReportSummary, UNFAIR, by, found};

/// Declare an algorithm that has everything from another one except its steps, and whose numbers
/// wrap around.
macro_rules! spoiled {
    (
        $(#[$doc:meta])*
        $spoiled:ident from $original:ident: |$at:pat, $me:ident, $memory:ident| $step:expr
    ) => {
        $(#[$doc])*
        enum $spoiled {}

        impl Algorithm for $spoiled {
            type At = <$original as Algorithm>::At;

            const INFO: Info =
                Info { name: stringify!($spoiled), bound: None, ..$original::INFO };
            const SHARED: &'static [RegisterArray] = $original::SHARED;

            fn outside(me: Process) -> Self::At {
                $original::outside(me)
            }

            fn step($at: Self::At, $me: Process, $memory: &mut impl Memory) -> Self::At {
                $step
            }
        }
    };
}

spoiled! {
    /// A process that leaves begins to seek at the second process after it.
    SeeksTooLate from EisenbergMcGuire: |at, me, memory| {
        let at = match at {
            Self::At::Inside => Self::At::Seek { j: me.after(me.after(me.i)) },
            at => at,
        };
        EisenbergMcGuire::step(at, me, memory)
    }
}

spoiled! {
    /// The turn is asked for without a look at the other.
    NeverLooks from DoranThomas1: |at, me, memory| {
        match DoranThomas1::step(at, me, memory) {
            Self::At::Look => Self::At::AskTurn,
            at => at,
        }
    }
}

spoiled! {
    /// The turn is given before the flag is raised.
    GivesTurnFirst from Peterson: |at, me, memory| match at {
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

spoiled! {
    /// The flags are lowered from the leaf upwards.
    LowersUpwards from PetersonTree: |at, me, memory| {
        let c = match at {
            Self::At::Inside => me.n + me.i,
            Self::At::Lower { c } => c,
            at => return PetersonTree::step(at, me, memory),
        };
        PetersonTree::step(Self::At::Lower { c }, me, memory);
        if c / 2 == 1 { Self::At::Outside } else { Self::At::Lower { c: c / 2 } }
    }
}

spoiled! {
    /// Where the algorithm would look, this one takes.
    TakesBlindly from ReplaceAdd: |at, me, memory| {
        let at = if let Self::At::Outside | Self::At::Look = at { Self::At::Take } else { at };
        ReplaceAdd::step(at, me, memory)
    }
}

spoiled! {
    /// No register tells which processes are choosing a number.
    ChoosesUnseen from Bakery: |mut at, me, memory| {
        let mut poor = PoorMemory { memory, choosing: false, accessed: false };
        while !poor.accessed {
            at = Bakery::step(at, me, &mut poor);
        }
        at
    }
}

spoiled! {
    /// Numbers have seven bits.
    SevenBits from Bakery: |at, me, memory| {
        Bakery::step(at, me, &mut PoorMemory { memory, choosing: true, accessed: false })
    }
}

/// The other accesses to memory, which an algorithm of loads and stores never makes.
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

/// The bakery's registers, with seven bits each, and perhaps none that tell which processes are
/// choosing.
struct PoorMemory<'m, M> {
    memory: &'m mut M,
    choosing: bool,
    /// Whether the register exists.
    accessed: bool,
}

impl<M> PoorMemory<'_, M> {
    const BITS: u32 = 7;

    fn has(&self, register: Register) -> bool {
        self.choosing || Bakery::SHARED[register.array].name != "choosing"
    }
}

impl<M: Memory> Memory for PoorMemory<'_, M> {
    fn read(&mut self, register: Register) -> Word {
        self.accessed = self.has(register);
        if self.accessed { self.memory.read(register) } else { 0 }
    }

    fn write(&mut self, register: Register, word: Word) {
        self.accessed = self.has(register);
        if self.accessed {
            self.memory.write(register, word % (1 << Self::BITS));
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

fn explore<A: Algorithm>(n: usize) -> (Info, Report) {
    (A::INFO, Check::of::<A>(n).run())
}

/// The algorithm, the number of processes, and what is found: the states, the verdicts, the
/// overtaking, and the steps that lead to a violation and are then repeated.
type Row = (fn(usize) -> (Info, Report), usize, ReportSummary);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    (explore::<SeeksTooLate>,   2, (   146, UNFAIR,    EVER,     [9, 11])),
    (explore::<SeeksTooLate>,   3, ( 2_742, UNFAIR,    EVER,     [11, 11])),
    (explore::<NeverLooks>,     2, (    68, LIVELOCKS, by(1, 1), [3, 1])),
    (explore::<GivesTurnFirst>, 2, (    48, BROKEN,    None,     [7, 0])),
    (explore::<LowersUpwards>,  3, (   740, BROKEN,    None,     [17, 0])),
    (explore::<TakesBlindly>,   2, (    15, LIVELOCKS, EVER,     [4, 4])),
    (explore::<TakesBlindly>,   3, (    54, LIVELOCKS, EVER,     [4, 4])),
    (explore::<ChoosesUnseen>,  2, (    60, BROKEN,    None,     [8, 0])),
    (explore::<SevenBits>,      2, (12_235, BROKEN,    None,     [1_030, 0])),
];

#[test]
fn changed_algorithms_are_refuted() {
    for (explore, n, expected) in TABLE {
        let (info, report) = explore(*n);
        assert_eq!(found(&report), *expected, "{} of {n}", info.name);
        assert!(!report.meets(&info.claims, *n), "{} of {n}", info.name);
    }
}

/// All registers hold the same number.
struct ConstantMemory(Word);

impl Memory for ConstantMemory {
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
    Bakery::step(bakery::At::Survey { j: 1, most: 0 }, LAST, &mut ConstantMemory(Word::MAX));
}

#[test]
#[should_panic(expected = "numbers left")]
fn the_numbers_of_hehner_and_shyamasundar_do_not_become_infinite() {
    let at = hehner_shyamasundar::At::Survey { j: 1, most: 0 };
    HehnerShyamasundar::step(at, LAST, &mut ConstantMemory(Word::MAX - 1));
}

//! What the processes of an algorithm share: registers, read and written one at a time.

/// What a register holds.
pub type Word = usize;

/// One word that all processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Which declaration of the algorithm it belongs to.
    pub array: usize,
    /// Which register of that array it is.
    pub index: usize,
}

/// Registers of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array(
    #[doc(hidden)] // `shared!` counts them.
    pub  usize,
);

impl Array {
    /// The register at an index.
    pub const fn of(self, index: usize) -> Register {
        Register { array: self.0, index }
    }
}

/// How many registers have one name, among `n` processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// One.
    One,
    /// One for each process.
    Each,
    /// One for each process, and one more.
    EachAndOne,
    /// Two for each process: the sides of the nodes of a tree.
    Twice,
    /// So many, however many processes there are.
    Fixed(usize),
}

impl Length {
    /// Among so many processes.
    pub const fn of(self, n: usize) -> usize {
        match self {
            Self::One => 1,
            Self::Each => n,
            Self::EachAndOne => n + 1,
            Self::Twice => 2 * n,
            Self::Fixed(length) => length,
        }
    }
}

/// Registers that an algorithm declares.
#[derive(Clone, Copy, Debug)]
pub struct Shared {
    /// Their name.
    pub name: &'static str,
    /// How many there are.
    pub length: Length,
    /// What each holds in the beginning.
    pub first: Word,
}

/// The memory as one process sees it. Every call is one access, and nothing else of a step is seen
/// by others.
///
/// A lock runs on atomics, the explorer on a model, and a test on whatever it brings: a load is at
/// least an acquiring one, a store at least a releasing one, and what else an algorithm needs it
/// says with [`fence`](Memory::fence).
pub trait Memory {
    /// What a register holds.
    fn read(&mut self, register: Register) -> Word;

    /// Put a word into a register.
    fn write(&mut self, register: Register, word: Word);

    /// What was written before is seen by all before anything is read from now on. The name is the
    /// one by which the fence can be left out in a check.
    fn fence(&mut self, name: char);

    /// Nothing to do until another process moves: the step that says so found what it waits for
    /// missing. Never said by a step that changes anything.
    fn wait(&mut self);

    /// Put a word into a register, and have what it held.
    #[cfg(target_has_atomic = "ptr")]
    fn swap(&mut self, register: Register, word: Word) -> Word;

    /// Add to a register, around the end if need be, and have what it held.
    #[cfg(target_has_atomic = "ptr")]
    fn add(&mut self, register: Register, change: isize) -> Word;

    /// Put a new word into a register if it holds the old one, and say whether it did.
    #[cfg(target_has_atomic = "ptr")]
    fn replace(&mut self, register: Register, old: Word, new: Word) -> bool;

    /// Take one from a semaphore, and say whether there was one: if not, the process sleeps, and
    /// has to come back to take it. A real memory need not ask for that, since it can make the
    /// caller sleep.
    #[cfg(target_has_atomic = "ptr")]
    fn down(&mut self, semaphore: Register) -> bool;

    /// Give one to a semaphore: to a process that was made to wait, if there is any.
    #[cfg(target_has_atomic = "ptr")]
    fn up(&mut self, semaphore: Register);
}

/// Declare the registers that processes share: `NAME: name[length] = first;` for an array, whose
/// length is `n`, `n + 1` or `2 * n`, and `NAME: name = first;` for a single register.
#[macro_export]
macro_rules! shared {
    ($($(#[$doc:meta])* $constant:ident: $name:ident $([$($length:tt)+])? = $first:expr;)+) => {
        #[allow(
            non_camel_case_types,
            clippy::upper_case_acronyms,
            reason = "a register has the name that its paper gives it"
        )]
        enum Declared { $($constant),+ }

        $($crate::shared!(@constant $(#[$doc])* $constant $([$($length)+])?);)+

        const SHARED: &[$crate::Shared] = &[$($crate::Shared {
            name: stringify!($name),
            length: $crate::shared!(@length $([$($length)+])?),
            first: $first,
        }),+];
    };
    (@constant $(#[$doc:meta])* $constant:ident) => {
        $(#[$doc])*
        const $constant: $crate::Register = $crate::Array(Declared::$constant as usize).of(0);
    };
    (@constant $(#[$doc:meta])* $constant:ident [$($length:tt)+]) => {
        $(#[$doc])*
        const $constant: $crate::Array = $crate::Array(Declared::$constant as usize);
    };
    (@length) => { $crate::Length::One };
    (@length [n]) => { $crate::Length::Each };
    (@length [n + 1]) => { $crate::Length::EachAndOne };
    (@length [2 * n]) => { $crate::Length::Twice };
}

//! The registers that the processes of an algorithm share, read and written one at a time.

/// The value of a register.
pub type Word = usize;

/// One register: a word that all processes share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The declaration of the algorithm that it belongs to, by its position.
    pub array: usize,
    /// The index of the register in that array.
    pub index: usize,
}

/// All registers of one name.
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

/// The number of registers of one name, for `n` processes.
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
    /// This number, for any number of processes.
    Fixed(usize),
}

impl Length {
    /// The number of registers for `n` processes.
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

/// A declaration of registers, all of one name.
#[derive(Clone, Copy, Debug)]
pub struct RegisterArray {
    /// The name, as written in the text of the algorithm.
    pub name: &'static str,
    /// The number of registers.
    pub length: Length,
    /// The first value of each.
    pub first: Word,
    /// What they are for, in a sentence.
    pub about: &'static str,
}

/// The shared memory as one process sees it. Every call is one access. Other processes see nothing
/// else of a step.
///
/// A lock runs on atomics, the explorer on a model, and a test on a memory of its own. A load has
/// at least acquire ordering, a store at least release ordering. If an algorithm needs more than
/// that, it uses [`fence`](Memory::fence).
pub trait Memory {
    /// Read a register.
    fn read(&mut self, register: Register) -> Word;

    /// Write a word to a register.
    fn write(&mut self, register: Register, word: Word);

    /// Make everything that this process has written visible to all before it reads again. The name
    /// is a letter, by which a check can leave the fence out.
    fn fence(&mut self, name: char);

    /// Tell that the process has to wait: the condition that the step looked for does not hold, and
    /// will not before another process moves. A step that changes anything never calls this.
    fn wait(&mut self);

    /// Write a word to a register, and return what it held before.
    #[cfg(target_has_atomic = "ptr")]
    fn swap(&mut self, register: Register, word: Word) -> Word;

    /// Add to a register, wrapping around, and return what it held before.
    #[cfg(target_has_atomic = "ptr")]
    fn add(&mut self, register: Register, change: isize) -> Word;

    /// Write a new word to a register if it holds the old one, and return whether it did.
    #[cfg(target_has_atomic = "ptr")]
    fn replace(&mut self, register: Register, old: Word, new: Word) -> bool;

    /// Take a unit from a semaphore, and return whether there was one. If there was none, the
    /// process sleeps, and has to call this again to take the unit. A real memory can make the
    /// calling thread sleep instead, and then always returns `true`.
    #[cfg(target_has_atomic = "ptr")]
    fn down(&mut self, semaphore: Register) -> bool;

    /// Give a unit to a semaphore. If processes sleep there, one of them gets it.
    #[cfg(target_has_atomic = "ptr")]
    fn up(&mut self, semaphore: Register);
}

/// Declare the registers that processes share: `NAME: name[length] = first;` for an array, whose
/// length is `n`, `n + 1` or `2 * n`, and `NAME: name = first;` for a single register.
#[macro_export]
macro_rules! shared {
    ($(
        $(#[doc = $about:literal])*
        $constant:ident: $name:ident $([$($length:tt)+])? = $first:expr;
    )+) => {
        #[allow(
            non_camel_case_types,
            clippy::upper_case_acronyms,
            reason = "the variants number the constants and are named like them"
        )]
        enum RegisterOrder { $($constant),+ }

        $($crate::shared!(@constant $(#[doc = $about])* $constant $([$($length)+])?);)+

        const SHARED: &[$crate::RegisterArray] = &[$($crate::RegisterArray {
            name: stringify!($name),
            length: $crate::shared!(@length $([$($length)+])?),
            first: $first,
            about: concat!($($about),*).trim_ascii(),
        }),+];
    };
    (@constant $(#[$doc:meta])* $constant:ident) => {
        $(#[$doc])*
        const $constant: $crate::Register = $crate::Array(RegisterOrder::$constant as usize).of(0);
    };
    (@constant $(#[$doc:meta])* $constant:ident [$($length:tt)+]) => {
        $(#[$doc])*
        const $constant: $crate::Array = $crate::Array(RegisterOrder::$constant as usize);
    };
    (@length) => { $crate::Length::One };
    (@length [n]) => { $crate::Length::Each };
    (@length [n + 1]) => { $crate::Length::EachAndOne };
    (@length [2 * n]) => { $crate::Length::Twice };
}

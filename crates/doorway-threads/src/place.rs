//! Where a process is in an algorithm, with what it remembers there.

use core::fmt::Debug;

use crate::Word;

/// The parts of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// It does not want to enter, and may stay so for ever.
    Outside,
    /// It has begun to ask, which takes a number of steps that nobody else can raise.
    Doorway,
    /// It has asked, and waits.
    Waiting,
    /// It is inside.
    Inside,
    /// It is on its way out.
    Leaving,
}

/// Where a process is: the next access it makes, and the words it needs for it and later. What is
/// not needed any more is not there, so equal places are the same situation.
pub trait Place: Copy + Debug + Eq + Send + Sync + 'static {
    /// The most words that a process remembers.
    const WORDS: usize;

    /// The part of the algorithm that it belongs to.
    fn section(self) -> Section;

    /// Its number: eight bits, and eight more for each word it remembers. Only small words survive
    /// this, and the largest of all.
    fn pack(self) -> u64;

    /// The place with a number.
    fn unpack(number: u64) -> Self;
}

/// A word in eight bits.
pub(crate) const fn byte(word: Word) -> u8 {
    word as u8
}

/// What a byte stands for: all bits set stands for the largest word.
#[doc(hidden)]
pub const fn word(byte: u8) -> Word {
    if byte == u8::MAX { Word::MAX } else { byte as Word }
}

#[doc(hidden)]
pub const fn packed<const N: usize>(kind: u64, words: [Word; N]) -> u64 {
    let (mut number, mut nth) = (kind, 0);
    while nth < N {
        number |= (byte(words[nth]) as u64) << (8 * (nth + 1));
        nth += 1;
    }
    number
}

#[doc(hidden)]
pub const fn longest(lengths: &[usize]) -> usize {
    let (mut most, mut nth) = (0, 0);
    while nth < lengths.len() {
        if most < lengths[nth] {
            most = lengths[nth];
        }
        nth += 1;
    }
    most
}

/// Declare the places of an algorithm, in the order of its text: `outside`, perhaps `doorway`,
/// perhaps `waiting`, `inside`, perhaps `leaving`, each with its places and what is remembered
/// there.
#[macro_export]
macro_rules! places {
    ($(
        $(#[$doc:meta])*
        $section:ident: $($place:ident $({ $($word:ident),+ })?),+;
    )+) => {
        /// Where a process is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the text of the algorithm says what happens there")]
        pub enum At {
            $($($place $({ $($word: $crate::Word),+ })?,)+)+
        }

        impl $crate::Place for At {
            const WORDS: usize = $crate::place::longest(
                &[$($(<[&str]>::len(&[$($(stringify!($word)),+)?])),+),+]
            );

            #[inline]
            fn section(self) -> $crate::Section {
                match self {
                    $($(Self::$place $({ $($word: _),+ })?)|+ => $crate::places!(@ $section),)+
                }
            }

            fn pack(self) -> u64 {
                enum Kind { $($($place),+),+ }
                match self {
                    $($(Self::$place $({ $($word),+ })? => {
                        $crate::place::packed(Kind::$place as u64, [$($($word),+)?])
                    })+)+
                }
            }

            #[allow(unused_mut, unused_variables, reason = "few places remember many words")]
            fn unpack(number: u64) -> Self {
                enum Kind { $($($place),+),+ }
                let kind = number & 0xff;
                $($(
                    if kind == Kind::$place as u64 {
                        let mut rest = number;
                        return Self::$place $({ $($word: {
                            rest >>= 8;
                            $crate::place::word(rest as u8)
                        }),+ })?;
                    }
                )+)+
                unreachable!("no place has this number")
            }
        }
    };
    (@ outside) => { $crate::Section::Outside };
    (@ doorway) => { $crate::Section::Doorway };
    (@ waiting) => { $crate::Section::Waiting };
    (@ inside) => { $crate::Section::Inside };
    (@ leaving) => { $crate::Section::Leaving };
}

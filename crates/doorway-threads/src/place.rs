//! The places of an algorithm: where a process is, with what it remembers there.

use core::fmt::Debug;

use crate::Word;

/// The part of an algorithm that a process is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The process does not want to enter, and may stay outside for ever.
    Outside,
    /// The process has begun to ask. The doorway takes a bounded number of steps, whatever the
    /// others do.
    Doorway,
    /// The process has asked, and waits.
    Waiting,
    /// The process is inside.
    Inside,
    /// The process is on its way out.
    Leaving,
}

impl Section {
    /// The name, as printed in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Doorway => "doorway",
            Self::Waiting => "waiting",
            Self::Inside => "inside",
            Self::Leaving => "leaving",
        }
    }
}

/// Where a process is: the next access that it makes, and the words that it needs for that access
/// and later. Words that it does not need any more are not kept, so equal places are the same
/// situation.
pub trait Place: Copy + Debug + Eq + Send + Sync + 'static {
    /// The most words that a process remembers.
    const WORDS: usize;

    /// Every place by its name, with the part of the algorithm that it belongs to, in the order of
    /// the algorithm's text.
    const NAMES: &'static [(&'static str, Section)];

    /// The part of the algorithm that the place belongs to.
    fn section(self) -> Section;

    /// Encode the place as a number. Its lowest eight bits are the position of the place in
    /// [`NAMES`](Place::NAMES), and each word that the process remembers has eight bits more. The
    /// encoding is exact for words below 255 and for `Word::MAX`.
    fn pack(self) -> u64;

    /// Decode a number that [`pack`](Place::pack) has returned.
    fn unpack(number: u64) -> Self;
}

/// Encode a word in eight bits.
pub(crate) const fn byte(word: Word) -> u8 {
    word as u8
}

/// Decode a byte. All bits set stands for the largest word.
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

/// Declare the places of an algorithm, in the order of its text: `outside`, `doorway` (optional),
/// `waiting` (optional), `inside`, `leaving` (optional), each with its places and the words that a
/// process remembers there.
#[macro_export]
macro_rules! places {
    ($(
        $(#[$doc:meta])*
        $section:ident: $($place:ident $({ $($word:ident),+ })?),+;
    )+) => {
        /// The place where a process is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the text of the algorithm says what happens there")]
        pub enum At {
            $($($place $({ $($word: $crate::Word),+ })?,)+)+
        }

        impl $crate::Place for At {
            const WORDS: usize = $crate::place::longest(
                &[$($(<[&str]>::len(&[$($(stringify!($word)),+)?])),+),+]
            );

            const NAMES: &'static [(&'static str, $crate::Section)] =
                &[$($((stringify!($place), $crate::places!(@ $section))),+),+];

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

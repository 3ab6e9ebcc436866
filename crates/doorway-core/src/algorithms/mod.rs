//! The algorithms, and the list of them.
//!
//! A new algorithm is a file beside this one and a line in the list below. Everything else (command
//! line, tests, tables) finds it through [`ALL`] and [`with`].

pub mod one_pass;

/// The imports that every algorithm file needs.
pub mod prelude {
    pub use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
    pub use alloc::vec::Vec;

    pub use serde::{Deserialize, Serialize};

    pub use crate::{
        Algorithm, BEYOND_LIMIT, CLOCK_LIMIT, Channel, Claim, Effects, Fault, Formula, Group, Info,
        Kind, Mail, Mode, Needs, NodeId, NodeSet, NumberVisitor, Per, Phase, Snapshot, Start,
        Timestamp, Wiring,
    };
}

/// A generic function to run for an algorithm whose name is known only at run time; see [`with`].
pub trait Task {
    /// The result.
    type Output;

    /// Run with the algorithm `A`.
    fn run<A: crate::Algorithm + 'static>(self) -> Self::Output;
}

/// An entry in the list of algorithms.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What the algorithm declares about itself.
    pub info: crate::Info,
    /// The text of its source file, whose opening comment explains the algorithm.
    pub source: &'static str,
    /// The name of that file.
    pub file: &'static str,
}

macro_rules! tokens {
    ($($module:ident: $algorithm:ident;)+) => {
        /// Run `task` with the token algorithm called `name`, whose token one pass of
        /// `ricart-agrawala` makes; see [`one_pass`]. Returns `None` if the token of the algorithm
        /// is not made so.
        pub fn with_one_pass<T: Task>(name: &str, task: T) -> Option<T::Output> {
            $(
                if name == <$module::$algorithm as crate::Algorithm>::INFO.name {
                    return Some(task.run::<one_pass::OnePass<$module::$algorithm>>());
                }
            )+
            None
        }
    };
}

// Not `raymond_echo`, which has a wave of its own to make the token.
tokens! {
    ricart_agrawala_token: RicartAgrawalaToken;
    suzuki_kasami: SuzukiKasami;
    naimi_trehel: NaimiTrehel;
    le_lann: LeLann;
    raymond_tree: RaymondTree;
}

macro_rules! algorithms {
    ($($module:ident: $($algorithm:ident),+;)+) => {
        $(pub mod $module;)+

        /// All algorithms. A `static`, because a program would have the texts of a `const` once for
        /// each crate that uses it.
        pub static ALL: &[Entry] = &[$($(Entry {
            info: <$module::$algorithm as crate::Algorithm>::INFO,
            source: include_str!(concat!(stringify!($module), ".rs")),
            file: concat!(stringify!($module), ".rs"),
        },)+)+];

        $($(const _: () = assert!(
            <$module::$algorithm as crate::Algorithm>::INFO.is_complete(),
            "an algorithm declares its name, summary, paper, year and messages"
        );)+)+

        /// Run `task` with the algorithm called `name`, or return `None` if there is none. This is
        /// the only place where a name becomes a type.
        pub fn with<T: Task>(name: &str, task: T) -> Option<T::Output> {
            $($(
                if name == <$module::$algorithm as crate::Algorithm>::INFO.name {
                    return Some(task.run::<$module::$algorithm>());
                }
            )+)+
            None
        }
    };
}

algorithms! {
    central: Central;
    lamport: Lamport;
    ricart_agrawala: RicartAgrawala;
    ricart_agrawala_ring: RicartAgrawalaRing;
    carvalho_roucairol: CarvalhoRoucairol;
    readers_writers: ReadersWriters;
    ricart_agrawala_token: RicartAgrawalaToken;
    suzuki_kasami: SuzukiKasami;
    naimi_trehel: NaimiTrehel;
    le_lann: LeLann;
    maekawa: Maekawa, MaekawaPrinted, MaekawaTextbook;
    maekawa_eager: MaekawaEager, MaekawaSlidesPrinted;
    maekawa_unordered: MaekawaUnordered;
    maekawa_sequential: MaekawaSequential, MaekawaSequentialSelfFirst;
    maekawa_cyclic: MaekawaCyclic;
    maekawa_heir: MaekawaHeir;
    raymond_tree: RaymondTree;
    raymond_echo: RaymondEcho;
    raymond_k: RaymondK, RaymondKScanned;
    majority: Majority, WeightedMajority;
}

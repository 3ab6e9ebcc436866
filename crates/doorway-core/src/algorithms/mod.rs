//! The algorithms, and the one list of them.
//!
//! A newcomer writes a file beside this one and adds a line to the list; everything else (command
//! line, tests, tables) goes through [`ALL`] and [`with`].

/// What every algorithm file needs.
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

/// Something to do with an algorithm whose name is known only at run time.
pub trait Task {
    /// What comes of it.
    type Output;

    /// Do it.
    fn run<A: crate::Algorithm + 'static>(self) -> Self::Output;
}

/// An algorithm of the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it declares.
    pub info: crate::Info,
    /// Its file, whose opening comment is its explanation.
    pub source: &'static str,
}

macro_rules! algorithms {
    ($($module:ident: $($algorithm:ident),+;)+) => {
        $(pub mod $module;)+

        /// Every algorithm, in the order of the list.
        pub const ALL: &[Entry] = &[$($(Entry {
            info: <$module::$algorithm as crate::Algorithm>::INFO,
            source: include_str!(concat!(stringify!($module), ".rs")),
        },)+)+];

        $($(const _: () = assert!(
            <$module::$algorithm as crate::Algorithm>::INFO.is_complete(),
            "an algorithm declares its name, summary, paper, year and messages"
        );)+)+

        /// Run `task` with the algorithm called `name`: the one place where names become types.
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

//! The algorithms, and the one list of them.
//!
//! A newcomer writes a file beside this one and adds a line to the list; everything else (command
//! line, tests, tables) goes through [`ALL`], [`with`] and [`with_lock`].

use crate::{Algorithm, Exclusive, Info};

/// What every algorithm file needs.
pub mod prelude {
    pub use crate::{
        Algorithm, Bypass, Claims, Info, MOST, Memory, Primitive, Process, Shared, Since,
        Withdraws, Word, places, shared,
    };
}

/// Something to do with an algorithm whose name is known only at run time.
pub trait Task {
    /// What comes of it.
    type Output;

    /// Do it.
    fn run<A: Algorithm>(self) -> Self::Output;
}

/// Something to do with a lock whose name is known only at run time.
pub trait LockTask {
    /// What comes of it.
    type Output;

    /// Do it.
    fn run<A: Exclusive>(self) -> Self::Output;
}

/// An algorithm of the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What it declares.
    pub info: Info,
    /// Is it a lock, or a model only?
    pub lock: bool,
    /// Its file, whose opening comment is its explanation.
    pub source: &'static str,
}

macro_rules! algorithms {
    (
        locks { $($(#[$cfg:meta])* $lock_module:ident: $lock:ident;)+ }
        models { $($(#[$model_cfg:meta])* $model_module:ident: $model:ident;)+ }
    ) => {
        $($(#[$cfg])* pub mod $lock_module;)+
        $($(#[$model_cfg])* pub mod $model_module;)+

        $(
            $(#[$cfg])*
            #[allow(unsafe_code, reason = "this is where algorithms are vouched for")]
            // SAFETY: the crate's tests go through every schedule of small numbers of processes,
            // and with few switches through what the memory model of the language lets happen
            // between two (tests/loom.rs); the algorithm's file says what is known of any number.
            unsafe impl Exclusive for $lock_module::$lock {}
        )+

        /// Every algorithm, in the order of the list.
        pub const ALL: &[Entry] = &[
            $($(#[$cfg])* Entry {
                info: <$lock_module::$lock as Algorithm>::INFO,
                lock: true,
                source: include_str!(concat!(stringify!($lock_module), ".rs")),
            },)+
            $($(#[$model_cfg])* Entry {
                info: <$model_module::$model as Algorithm>::INFO,
                lock: false,
                source: include_str!(concat!(stringify!($model_module), ".rs")),
            },)+
        ];

        /// Run `task` with the algorithm called `name`: the one place where names become types.
        pub fn with<T: Task>(name: &str, task: T) -> Option<T::Output> {
            $(
                $(#[$cfg])*
                {
                    if name == <$lock_module::$lock as Algorithm>::INFO.name {
                        return Some(task.run::<$lock_module::$lock>());
                    }
                }
            )+
            $(
                $(#[$model_cfg])*
                {
                    if name == <$model_module::$model as Algorithm>::INFO.name {
                        return Some(task.run::<$model_module::$model>());
                    }
                }
            )+
            None
        }

        /// Run `task` with the lock called `name`; there is none of a refuted algorithm.
        pub fn with_lock<T: LockTask>(name: &str, task: T) -> Option<T::Output> {
            $(
                $(#[$cfg])*
                {
                    if name == <$lock_module::$lock as Algorithm>::INFO.name {
                        return Some(task.run::<$lock_module::$lock>());
                    }
                }
            )+
            None
        }
    };
}

algorithms! {
    locks {
        dekker: Dekker;
        dijkstra: Dijkstra;
        knuth: Knuth;
        de_bruijn: DeBruijn;
        eisenberg_mcguire: EisenbergMcGuire;
        doran_thomas_1: DoranThomas1;
        doran_thomas_2: DoranThomas2;
        peterson: Peterson;
        peterson_n: PetersonN;
        peterson_tree: PetersonTree;
        burns: Burns;
        #[cfg(target_has_atomic = "ptr")]
        exchange: Exchange;
        #[cfg(target_has_atomic = "ptr")]
        tas: TestAndSet;
        #[cfg(target_has_atomic = "ptr")]
        ttas: TestAndTestAndSet;
        #[cfg(all(target_has_atomic = "ptr", target_pointer_width = "64"))]
        increment_reset: IncrementReset;
        #[cfg(target_has_atomic = "ptr")]
        increment_await: IncrementAwait;
        #[cfg(target_has_atomic = "ptr")]
        replace_add: ReplaceAdd;
        #[cfg(target_has_atomic = "ptr")]
        ticket: Ticket;
        #[cfg(feature = "std")]
        semaphore: OneSemaphore;
        #[cfg(feature = "std")]
        morris: Morris;
        #[cfg(feature = "std")]
        morris_atomic: MorrisAtomic;
        bakery: Bakery;
        hehner_shyamasundar: HehnerShyamasundar;
        kessels: Kessels;
        kessels_tree: KesselsTree;
        one_bit: OneBit;
        three_bit: ThreeBit;
        lamport_fast: LamportFast;
        szymanski: Szymanski;
        peterson_fischer: PetersonFischer;
        #[cfg(target_has_atomic = "ptr")]
        mcs: Mcs;
        #[cfg(target_has_atomic = "ptr")]
        clh: Clh;
    }
    models {
        hyman: Hyman;
        burns_printed: BurnsPrinted;
        #[cfg(target_has_atomic = "ptr")]
        increment_undo: IncrementUndo;
    }
}

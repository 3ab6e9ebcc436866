//! The algorithms, and the one list of them.
//!
//! To add an algorithm, write a file beside this one and add a line to the list. Everything else
//! (command line, tests, tables) goes through [`ALL`], [`with`] and [`with_lock`].

use crate::{Algorithm, Exclusive, Info};

/// What every algorithm file needs.
pub mod prelude {
    pub use crate::{
        Algorithm, Bypass, Claims, Info, MOST, Memory, Primitive, Process, RegisterArray, Since,
        Withdraws, Word, places, shared,
    };
}

/// A task for an algorithm whose name is known only at run time.
pub trait Task {
    /// The result of the task.
    type Output;

    /// Run the task.
    fn run<A: Algorithm>(self) -> Self::Output;
}

/// A task for a lock whose name is known only at run time.
pub trait LockTask {
    /// The result of the task.
    type Output;

    /// Run the task.
    fn run<A: Exclusive>(self) -> Self::Output;
}

/// An algorithm of the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What the algorithm declares.
    pub info: Info,
    /// Whether a lock can be made of it. If not, it is a model that can only be explored.
    pub lock: bool,
    /// The text of its file, whose opening comment explains the algorithm.
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
            #[allow(unsafe_code, reason = "this asserts that the algorithms exclude")]
            // SAFETY: the crate's tests go through every schedule of a few processes. For two
            // processes they also go through what the memory model of the language allows, with few
            // switches between the processes (tests/tools/loom.rs). The algorithm's file says what
            // is known for any number.
            unsafe impl Exclusive for $lock_module::$lock {}
        )+

        /// Every algorithm, in the order of the list. A `static`, because a program would have the
        /// texts of a `const` once for each crate that uses it.
        pub static ALL: &[Entry] = &[
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

        /// Run `task` with the lock called `name`. A refuted algorithm has no lock.
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
        #[cfg(target_has_atomic = "ptr")]
        lock: LockInstruction;
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

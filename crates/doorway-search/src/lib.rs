//! Exhaustive search: every state that a system can reach, breadth first and on all cores.
//!
//! Write down your system as a [`Model`]. A state is a row of 32-bit words of a fixed width, and
//! [`Model::expand`] lists the successors of a state. A [`Search`] then visits every state that can
//! be reached from the first one. Either it finds a shortest path to a state or step that the model
//! calls broken, or it has shown that there is none. The result does not depend on the number of
//! threads.
//!
//! # Example
//!
//! Two processes share a flag. Each waits until the flag is down, raises it, enters, and lowers it
//! again. Since looking and raising are separate steps, both processes can be inside at once. The
//! search finds the shortest schedule that shows it.
//!
//! ```
//! use doorway_search::{Deed, End, Model, Scope, Successors, Tag, fingerprint, search};
//!
//! /// Words 0 and 1 tell where each process is; word 2 is the flag.
//! struct NaiveLock;
//!
//! const OUTSIDE: u32 = 0;
//! const SAW_FLAG_DOWN: u32 = 1;
//! const INSIDE: u32 = 2;
//!
//! impl Model for NaiveLock {
//!     fn width(&self) -> usize {
//!         3
//!     }
//!
//!     fn first(&self) -> (Vec<u32>, u64) {
//!         let row = vec![OUTSIDE, OUTSIDE, 0];
//!         let print = fingerprint(&row);
//!         (row, print)
//!     }
//!
//!     fn expand(&self, row: &[u32], _print: u64, out: &mut Successors) {
//!         if row[0] == INSIDE && row[1] == INSIDE {
//!             out.is_broken();
//!         }
//!         for process in 0..2 {
//!             let mut next = row.to_vec();
//!             match row[process] {
//!                 OUTSIDE if row[2] == 0 => next[process] = SAW_FLAG_DOWN,
//!                 OUTSIDE => continue,
//!                 SAW_FLAG_DOWN => {
//!                     next[2] = 1;
//!                     next[process] = INSIDE;
//!                 }
//!                 _ => {
//!                     next[2] = 0;
//!                     next[process] = OUTSIDE;
//!                 }
//!             }
//!             out.push(&next, fingerprint(&next), Tag::new(process, Deed::None, 0));
//!         }
//!     }
//! }
//!
//! let scope = Scope { limit: 1_000, threads: 1, record: false };
//! let (end, progress) = search(&NaiveLock, scope);
//! // Both processes see the flag down, then both enter. Each step of the path is a number: its
//! // position among the successors of its state.
//! assert!(matches!(end, End::Wrong(path) if path.len() == 4));
//! assert!(progress.states < 20);
//! ```
//!
//! # Infinite runs
//!
//! With [`Scope::record`] the search keeps the [`Graph`] of all steps. Questions about runs that
//! never end are questions to this graph:
//!
//! - [`components`] finds the strongly connected components, the sets of states in which a run can
//!   stay for ever.
//! - [`fair_round`] finds a cycle in which every step that stays possible is taken some time (weak
//!   fairness).
//! - [`Waits`] tells how often a waiting process is overtaken.
//!
//! # Fingerprints
//!
//! States are told apart by 64-bit fingerprints, not by their rows. Two different states with the
//! same fingerprint would be taken for one. Among s states this happens with a chance of about
//! s² / 2⁶⁵.

mod components;
mod fair;
mod fingerprint;
mod graph;
mod model;
mod search;
mod share;
mod table;
mod waits;

pub use components::components;
pub use fair::{Duties, Lasso, fair_round};
pub use fingerprint::fingerprint;
pub use graph::{Graph, NOWHERE};
pub use model::{Deed, Model, NOT_FOLLOWED, Successors, Tag, Wrong};
pub use search::{End, Progress, Scope, Search};
pub use waits::Waits;

/// Search a model for a state or step that it calls broken.
pub fn search(model: &dyn Model, scope: Scope) -> (End, Progress) {
    let mut search = Search::new(model, scope);
    let end = search.run(&mut |_| true);
    (end, search.progress())
}

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

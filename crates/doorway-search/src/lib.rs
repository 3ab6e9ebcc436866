//! Exhaustive search: every state that a system can reach, breadth first.
//!
//! Write down your system as a [`System`]: its first state, the actions that are possible in a
//! state, what an action does, and what must never be true. A state is any value that can be cloned
//! and hashed, so the code that you ship can be part of it. [`explore`] then visits every state.
//! Either it finds a shortest list of actions that leads to a violation, or it has shown that there
//! is none.
//!
//! # Example
//!
//! Two processes share a flag. Each waits until the flag is down, raises it, enters, and lowers it
//! again. Since looking and raising are separate steps, both processes can be inside at once. The
//! search finds the shortest schedule that shows it.
//!
//! ```
//! use doorway_search::{Outcome, System, explore};
//!
//! struct NaiveLock {
//!     /// Whether a process looks at the flag and raises it in one step.
//!     atomic: bool,
//! }
//!
//! #[derive(Clone, Hash)]
//! struct State {
//!     flag: bool,
//!     places: [Place; 2],
//! }
//!
//! #[derive(Clone, Copy, PartialEq, Hash)]
//! enum Place {
//!     Outside,
//!     SawFlagDown,
//!     Inside,
//! }
//!
//! #[derive(Clone, Debug, PartialEq)]
//! enum Action {
//!     Look(usize),
//!     Enter(usize),
//!     Leave(usize),
//! }
//!
//! impl System for NaiveLock {
//!     type State = State;
//!     type Action = Action;
//!     type Violation = &'static str;
//!
//!     fn first(&self) -> State {
//!         State { flag: false, places: [Place::Outside; 2] }
//!     }
//!
//!     fn actions(&self, state: &State) -> Vec<Action> {
//!         let next = |process: usize| match state.places[process] {
//!             Place::Outside if state.flag => None,
//!             Place::Outside if self.atomic => Some(Action::Enter(process)),
//!             Place::Outside => Some(Action::Look(process)),
//!             Place::SawFlagDown => Some(Action::Enter(process)),
//!             Place::Inside => Some(Action::Leave(process)),
//!         };
//!         (0..2).filter_map(next).collect()
//!     }
//!
//!     fn apply(&self, state: &mut State, action: Action) -> Result<(), &'static str> {
//!         match action {
//!             Action::Look(process) => state.places[process] = Place::SawFlagDown,
//!             Action::Enter(process) => {
//!                 state.places[process] = Place::Inside;
//!                 state.flag = true;
//!             }
//!             Action::Leave(process) => {
//!                 state.places[process] = Place::Outside;
//!                 state.flag = false;
//!             }
//!         }
//!         Ok(())
//!     }
//!
//!     fn check(&self, state: &State) -> Result<(), &'static str> {
//!         let both = state.places == [Place::Inside; 2];
//!         if both { Err("two processes are inside") } else { Ok(()) }
//!     }
//! }
//!
//! let report = explore(&NaiveLock { atomic: false }, 1_000);
//! assert_eq!(
//!     report.to_string(),
//!     "\"two processes are inside\" after 4 actions (8 states, 12 steps, depth 3)
//!    1. Look(0)
//!    2. Look(1)
//!    3. Enter(0)
//!    4. Enter(1)"
//! );
//!
//! let report = explore(&NaiveLock { atomic: true }, 1_000);
//! assert_eq!((report.outcome, report.states), (Outcome::Holds, 3));
//! ```
//!
//! # Limits, deadlocks, threads
//!
//! - The second argument of [`explore`] is the most states that are visited. If there are more, the
//!   outcome is [`Outcome::NotExhausted`]: nothing is shown then.
//! - An invariant says that nothing bad happens. That something good remains possible is said by
//!   [`System::is_goal`]: from every state a goal must be reachable. This finds deadlocks and
//!   states in which a process waits for ever.
//! - A test should compare the number of states with the number that it expects, since a system
//!   with fewer actions than intended has fewer violations too. [`Report::expect_holds`] returns
//!   it.
//! - [`explore_on`] uses several threads and returns the same report. [`explore_watched`] can also
//!   be stopped, and tells its progress.
//!
//! # Rows of words
//!
//! For systems with hundreds of millions of states there is a second form, which takes less memory:
//! in a [`Model`] a state is a row of 32-bit words of a fixed width, and [`Model::expand`] lists
//! the successors of a row. A [`Search`] visits all of them on all cores. It also answers the
//! questions of the next section, which [`explore`] does not.
//!
//! ```
//! use doorway_search::{ClientEvent, End, Model, Scope, Successors, Tag, fingerprint, search};
//!
//! /// A counter that two processes increment without a lock: each reads it, then writes back one
//! /// more.
//! struct LostUpdate;
//!
//! impl Model for LostUpdate {
//!     fn width(&self) -> usize {
//!         5 // The counter, and for each process its progress and what it has read.
//!     }
//!
//!     fn first(&self) -> (Vec<u32>, u64) {
//!         (vec![0; 5], fingerprint(&[0; 5]))
//!     }
//!
//!     fn expand(&self, row: &[u32], _print: u64, out: &mut Successors) {
//!         let (counter, both_done) = (row[0], row[1] == 2 && row[3] == 2);
//!         if both_done && counter != 2 {
//!             out.is_broken();
//!         }
//!         for process in 0..2 {
//!             let (progress, seen) = (1 + 2 * process, 2 + 2 * process);
//!             let mut next = row.to_vec();
//!             match row[progress] {
//!                 0 => next[seen] = counter,
//!                 1 => next[0] = row[seen] + 1,
//!                 _ => continue,
//!             }
//!             next[progress] += 1;
//!             out.push(&next, fingerprint(&next), Tag::new(process, ClientEvent::None, 0));
//!         }
//!     }
//! }
//!
//! let (end, _) = search(&LostUpdate, Scope { limit: 1_000, threads: 1, record: false });
//! // Both processes read the counter before either writes it. Each step of the path is a number:
//! // its position among the successors of its state.
//! assert!(matches!(end, End::Wrong(path) if path.len() == 4));
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
//! - [`WaitAnalysis`] tells how often a waiting process is overtaken.
//!
//! # Searches that take long
//!
//! [`Search::run`] stops when its `watch` function says so. [`Search::keep`] then writes the search
//! to a file, and [`Search::continued`] reads it again, in another process too. The result is the
//! same as that of a search in one go. [`KeptSearch`] takes care of the file.
//!
//! # Fingerprints
//!
//! States are told apart by 64-bit fingerprints, not by their values. Two different states with the
//! same fingerprint would be taken for one. Among s states this happens with a chance of about
//! s² / 2⁶⁵.

mod components;
mod explore;
mod fair;
mod fingerprint;
mod graph;
mod mixer;
mod model;
mod report;
mod search;
mod share;
mod system;
mod table;
mod waits;

pub use components::components;
pub use explore::{explore, explore_on, explore_watched};
pub use fair::{Duties, Lasso, fair_round};
pub use fingerprint::fingerprint;
pub use graph::{Graph, NOWHERE};
pub use model::{ClientEvent, Model, ModelViolation, NOT_FOLLOWED, Successors, Tag};
pub use report::{Outcome, Report};
pub use search::{End, KeptError, KeptSearch, Progress, Scope, Search};
pub use system::System;
pub use waits::WaitAnalysis;

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

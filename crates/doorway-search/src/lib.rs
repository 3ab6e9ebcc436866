//! Every state that a system can reach, breadth first and on all cores.
//!
//! A [`Model`] says what its states are, rows of words, and which follow each other. A [`Search`]
//! finds the shortest way to one that must never be, or shows that there is none, and keeps the
//! [`Graph`] of all steps if asked. What can go on for ever is then a question to the graph:
//! [`components`] are the sets of states that can be gone round, [`fair_round`] finds
//! one in which everyone does his duty, and [`Waits`] tells how often one who waits is overtaken.

mod components;
mod fair;
mod graph;
mod model;
mod search;
mod table;
mod waits;

pub use components::components;
pub use fair::{Duties, Lasso, fair_round};
pub use graph::{Graph, NOWHERE};
pub use model::{Deed, Model, NOT_FOLLOWED, Successors, Tag, Wrong};
pub use search::{End, Progress, Scope, Search};
pub use waits::Waits;

/// Search any model for a state or step that it calls broken.
pub fn search(model: &dyn Model, scope: Scope) -> (End, Progress) {
    let mut search = Search::new(model, scope);
    let end = search.run(&mut |_| true);
    (end, search.progress())
}

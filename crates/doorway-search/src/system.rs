//! A system of plain values: any type that can be cloned and hashed is a state.

use std::fmt::Debug;
use std::hash::Hash;

/// A system whose states are plain values, to be searched with [`explore`](crate::explore).
///
/// The system itself holds what is the same in all states, for example the size of a group. The
/// crate's documentation has a complete example.
///
/// Everything must depend on the arguments alone. If a method looks at a clock, or goes through a
/// `HashMap` with a random order, the search cannot repeat its own steps.
pub trait System {
    /// Everything that the future depends on. Two states with the same hash are taken for one, so
    /// the hash must cover every field that matters, and should leave out every other.
    type State: Clone + Hash;
    /// One thing that can happen.
    type Action: Clone + Debug;
    /// What can go wrong: a text such as `&'static str`, or an enum with one variant for each rule.
    type Violation;

    /// The state in which the system begins.
    ///
    /// A system that begins in one of several states has one more state before them, and an action
    /// for each.
    fn first(&self) -> Self::State;

    /// Everything that can happen in a state, in an order that depends only on the state.
    fn actions(&self, state: &Self::State) -> Vec<Self::Action>;

    /// Let an action happen. An error means that this must never happen; the search ends there.
    fn apply(&self, state: &mut Self::State, action: Self::Action) -> Result<(), Self::Violation>;

    /// Check the invariants: an error if the state must never be reached.
    fn check(&self, _state: &Self::State) -> Result<(), Self::Violation> {
        Ok(())
    }

    /// Whether the state is one that must always remain reachable, for example because every
    /// request is served.
    ///
    /// The search demands that a path of expected actions leads from every state to some goal. A
    /// deadlock is a state without such a path. As long as every state is a goal, this demands
    /// nothing.
    fn is_goal(&self, _state: &Self::State) -> bool {
        true
    }

    /// Whether the action happens some time if it remains possible, such as the arrival of a
    /// message.
    ///
    /// Nobody is obliged to crash or to give up, so a goal must be reachable without such actions.
    fn is_expected(&self, _action: &Self::Action) -> bool {
        true
    }
}

//! Random schedules: a random generator makes the choices of a world.

use doorway_core::Phase;

use crate::simulate::Dice;
use crate::{Choice, Violation, World};

/// A violation, and the choices that lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The choices made.
    pub trace: Vec<Choice>,
    /// What the last choice violated.
    pub violation: Violation,
}

/// Choose at random until all requests have been made and granted, or for `steps` choices.
///
/// Returns how many choices were made. A world in which a node waits and nothing can happen is a
/// failure too.
pub fn wander(world: &mut World, dice: &mut Dice, steps: usize) -> Result<usize, Failure> {
    let mut trace = Vec::new();
    for step in 0..steps {
        if let Some(violation) = world.stuck() {
            return Err(Failure { trace, violation });
        }
        let choices = world.choices();
        if choices.is_empty() || (world.wishes() == 0 && world.live_in(Phase::Waiting).is_empty()) {
            return Ok(step);
        }
        let choice = choices[dice.below(choices.len())];
        trace.push(choice);
        if let Some(violation) = world.apply(choice).violation {
            return Err(Failure { trace, violation });
        }
    }
    Ok(steps)
}

//! What Suzuki and Kasami's algorithm costs along each kind of wires.

use crate::algorithms::prelude::*;

/// The REQUEST goes everywhere, and the token all the way.
pub(super) fn most(group: &Group) -> f64 {
    f64::from(match group.wiring() {
        Wiring::Mesh => group.size(),
        Wiring::Ring => 2 * group.size() - 1,
        Wiring::Tree => group.size() - 1 + group.tree().diameter(),
    })
}

/// Once in N times the token is here already.
pub(super) fn light(group: &Group) -> f64 {
    let others = f64::from(group.size() - 1);
    match group.wiring() {
        Wiring::Mesh | Wiring::Ring => others,
        Wiring::Tree => others * others / (others + 1.0) + group.tree().mean_distance(),
    }
}

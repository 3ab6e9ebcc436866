//! What asking everyone for seats costs.

use crate::Group;

/// Requests to all others, and as many replies as it takes to hear of enough seats.
pub(super) fn least(group: &Group) -> f64 {
    let (others, seats) = (u64::from(group.size() - 1), u64::from(group.seats()));
    let needed = (others * seats + 1).saturating_sub(u64::from(group.permits()));
    (others + needed.div_ceil(seats)) as f64
}

/// Requests to all others, and from each as many replies as it has seats.
pub(super) fn most(group: &Group) -> f64 {
    f64::from(group.size() - 1) * f64::from(1 + group.seats())
}

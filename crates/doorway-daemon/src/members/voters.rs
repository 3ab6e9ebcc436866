//! Which machines vote.
//!
//! An odd number of voters is best: a fourth voter would not allow a second loss, but would make a
//! majority larger. More than five voters only make every decision slower.

use doorway_node::members::{Seat, SeatId};

/// How many machines vote at most.
const MOST: usize = 5;

/// How many of this number of machines vote: the largest odd number up to [`MOST`].
pub(super) fn number(seats: usize) -> usize {
    let most = seats.clamp(1, MOST);
    if most.is_multiple_of(2) { most - 1 } else { most }
}

/// Choose the machines that vote. A machine that votes goes on voting, also if it is away: only an
/// operator removes it. If there are too few or too many voters, machines that can be reached are
/// preferred. The result has the order of the names.
pub(super) fn choose(seats: &[Seat], is_reachable: impl Fn(SeatId) -> bool) -> Vec<SeatId> {
    let mut candidates: Vec<&Seat> = seats.iter().collect();
    candidates.sort_by_key(|seat| (!seat.voter, !is_reachable(seat.id)));
    candidates.truncate(number(seats.len()));
    candidates.sort_by(|one, other| one.name.cmp(&other.name));
    candidates.into_iter().map(|seat| seat.id).collect()
}

/// Whether the reachable ones among these voters are a majority of them.
pub(super) fn have_majority(voters: &[&Seat], is_reachable: impl Fn(SeatId) -> bool) -> bool {
    let reachable = voters.iter().filter(|seat| is_reachable(seat.id)).count();
    reachable > voters.len() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(voters: &str) -> Vec<Seat> {
        let seat = |(id, flag): (usize, char)| Seat {
            id: SeatId(id as u64),
            name: format!("n{id}"),
            address: format!("n{id}:1"),
            voter: flag == 'v',
        };
        voters.chars().enumerate().map(seat).collect()
    }

    #[test]
    fn the_number_of_voters_is_odd_and_five_at_most() {
        let numbers: Vec<usize> = (1..=8).map(number).collect();
        assert_eq!(numbers, [1, 1, 3, 3, 5, 5, 5, 5]);
    }

    #[test]
    fn machines_that_vote_go_on_and_others_must_be_reachable() {
        let ids = |seats: &[Seat], away: u64| -> Vec<u64> {
            choose(seats, |id| id != SeatId(away)).into_iter().map(|id| id.0).collect()
        };
        assert_eq!(ids(&seats("vvvl"), 9), [0, 1, 2], "a fourth machine learns");
        assert_eq!(ids(&seats("vvvll"), 9), [0, 1, 2, 3, 4], "a fifth one makes five voters");
        assert_eq!(ids(&seats("vlvv"), 9), [0, 2, 3], "nothing changes");
        assert_eq!(ids(&seats("vv"), 0), [1], "of two, the one that can be reached");
        assert_eq!(ids(&seats("vvvl"), 1), [0, 1, 2], "a machine that is away still votes");
        assert_eq!(ids(&seats("vvll"), 2), [0, 1, 3], "the new voter can be reached");
    }

    #[test]
    fn a_majority_is_more_than_half() {
        let seats = seats("vvv");
        let all: Vec<&Seat> = seats.iter().collect();
        assert!(have_majority(&all, |id| id.0 < 2));
        assert!(!have_majority(&all, |id| id.0 < 1));
        assert!(!have_majority(&all[..2], |id| id.0 < 1), "one of two is not a majority");
    }
}

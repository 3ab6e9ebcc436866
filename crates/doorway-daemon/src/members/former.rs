//! The group to which the machines of a new group belonged before.
//!
//! Fences must never go back. In a group with a fixed list of members, the number of a view is the
//! sum of the epochs of all members, and each member knows its own epoch for sure. So a group that
//! takes over begins above the sum of all epochs that its machines know. A machine of the fixed
//! group that is not among them may have had any epoch: [`VIEW_STEP`] covers 65,536 starts of it,
//! and the operator can name a higher view.

use doorway_members::{FormerGroup, VIEW_STEP};
use doorway_node::members::{HOLDS_LIMIT, Record, SeatId};
use doorway_protocol::{Code, Fence, Refusal};
use doorway_sessions::refusals::refusal;

/// What the machines of a new group know of the group before it.
#[derive(Debug, Default)]
pub(super) struct FormerGroupTotals {
    /// The machines that belonged to it.
    pub(super) seats: Vec<SeatId>,
    /// The sum of their epochs.
    epochs: u64,
    /// The highest view of a lock that is still held.
    view: u64,
    /// How many leases their clients have.
    leases: u64,
}

impl FormerGroupTotals {
    /// Take into account what a machine knows.
    pub(super) fn count(&mut self, seat: SeatId, former: Option<FormerGroup>) {
        let Some(FormerGroup { epoch, view, leases }) = former else { return };
        self.seats.push(seat);
        self.epochs = self.epochs.saturating_add(epoch);
        self.view = self.view.max(view);
        self.leases = self.leases.saturating_add(leases);
    }

    /// Refuse to begin with view 0 if a machine belonged to another group.
    pub(super) fn check_none(&self, record: &Record) -> Result<(), Refusal> {
        let names = self.seats.iter().filter_map(|seat| record.seat(*seat));
        let names: Vec<&str> = names.map(|seat| seat.name.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let text = format!(
            "{} belonged to a group with a fixed list of members, whose locks may be held and \
             whose fences must not come again: `doorway members init --from-fixed` takes that \
             group over; to begin anew, start each node with an empty data directory",
            names.join(", ")
        );
        Err(refusal(Code::Invalid, text))
    }

    /// The first view of the group that takes over. `above` is a view that the operator knows.
    pub(super) fn next_view(&self, above: u64) -> Result<u64, Refusal> {
        if self.seats.is_empty() {
            let text = "no machine has the data directory of a group with a fixed list of members, \
                        so there is nothing to take over: run `doorway members init` without \
                        --from-fixed";
            return Err(refusal(Code::Invalid, text));
        }
        if self.leases > HOLDS_LIMIT as u64 {
            let text = format!(
                "clients have {} leases (`doorway lock --ttl`, HTTP), and a group that agrees on \
                 its members keeps at most {HOLDS_LIMIT}: release some, restart the nodes and try \
                 again",
                self.leases
            );
            return Err(refusal(Code::Busy, text));
        }
        first_view(self.epochs.max(self.view).max(above))
    }
}

/// The first view of a group that takes over from one that has surely reached this view.
pub(super) fn first_view(known: u64) -> Result<u64, Refusal> {
    let next = known.saturating_add(VIEW_STEP);
    if next >= Fence::VIEW_LIMIT {
        let text = format!(
            "the group would begin with view {next}, but fences cannot tell more than {} views \
             apart",
            Fence::VIEW_LIMIT
        );
        return Err(refusal(Code::Invalid, text));
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_begins_above_everything_that_its_machines_know() {
        let mut former = FormerGroupTotals::default();
        assert!(former.next_view(0).unwrap_err().text.contains("nothing to take over"));
        former.count(SeatId(1), Some(FormerGroup { epoch: 3, view: 4, leases: 0 }));
        former.count(SeatId(2), None);
        former.count(SeatId(3), Some(FormerGroup { epoch: 5, view: 7, leases: 2 }));
        assert_eq!(former.next_view(0), Ok(8 + VIEW_STEP));
        assert_eq!(former.next_view(100), Ok(100 + VIEW_STEP));
        former.count(SeatId(4), Some(FormerGroup { epoch: 0, view: 20, leases: 0 }));
        assert_eq!(former.next_view(0), Ok(20 + VIEW_STEP));
        assert_eq!(former.seats, [1, 3, 4].map(SeatId));
        assert!(
            former.next_view(u64::MAX).is_err() && former.next_view(Fence::VIEW_LIMIT).is_err()
        );
        former.count(SeatId(5), Some(FormerGroup { epoch: 1, view: 1, leases: 1998 }));
        former.next_view(0).unwrap();
        former.count(SeatId(6), Some(FormerGroup { epoch: 1, view: 1, leases: 1 }));
        assert!(former.next_view(0).unwrap_err().text.contains("clients have 2001 leases"));
    }
}

//! The members of the views that a node takes part in, by their numbers and by their seats.

use std::sync::Arc;

use doorway_core::NodeId;

use super::agreed::AgreedView;
use crate::locks::RuleBook;
use crate::members::SeatId;
use crate::seating::Seating;

/// How many views are remembered: the one that runs, and the next.
const REMEMBERED: usize = 2;

/// Translates between the numbers of members in a view and their seats, for the newest views of a
/// node in a group that agrees on its members.
#[derive(Debug, Default)]
pub struct ViewSeats(Vec<SeatedView>);

/// The members of one view.
#[derive(Debug)]
struct SeatedView {
    view: u64,
    seating: Arc<Seating>,
    seats: Vec<SeatId>,
}

impl ViewSeats {
    /// Remember the members of a newer view, and its rules.
    pub fn push(&mut self, view: AgreedView, rules: RuleBook) {
        let AgreedView { number: view, members, me, .. } = view;
        let (seats, members): (Vec<SeatId>, Vec<String>) = members.into_iter().unzip();
        self.0.push(SeatedView { view, seating: Arc::new(Seating { members, me, rules }), seats });
        let old = self.0.len().saturating_sub(REMEMBERED);
        self.0.drain(..old);
    }

    fn find(&self, view: u64) -> Option<&SeatedView> {
        self.0.iter().find(|known| known.view == view)
    }

    /// The seat of a member of a view.
    pub fn seat(&self, view: u64, member: NodeId) -> Option<SeatId> {
        self.find(view)?.seats.get(member.index()).copied()
    }

    /// The number of the member at this seat in a view.
    pub fn member(&self, view: u64, seat: SeatId) -> Option<NodeId> {
        self.find(view)?.seats.iter().position(|other| *other == seat).map(NodeId::at)
    }

    /// The members and rules of a view.
    pub fn seating(&self, view: u64) -> Option<Arc<Seating>> {
        self.find(view).map(|known| Arc::clone(&known.seating))
    }
}

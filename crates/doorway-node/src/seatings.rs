//! The members of the views that a node takes part in, and the links to them.

use std::sync::Arc;

use doorway_core::NodeId;
use parking_lot::RwLock;

use crate::locks::RuleBook;
use crate::net::PeerId;
use crate::seating::Seating;
use crate::views::{AgreedView, ViewSeats};

/// Translates between the numbers of members in a view and the numbers of links.
pub(crate) enum Seatings {
    /// Every view has the same members, and the number of a link is the number of the member.
    Fixed(Arc<Seating>),
    /// The members differ from view to view.
    Agreed(RwLock<ViewSeats>),
}

impl Seatings {
    /// Remember the members of a newer view of a group with agreed members, and its rules.
    pub(crate) fn push(&self, next: AgreedView, rules: RuleBook) {
        if let Self::Agreed(views) = self {
            views.write().push(next, rules);
        }
    }

    /// The link to a member of a view.
    pub(crate) fn peer(&self, view: u64, member: NodeId) -> Option<PeerId> {
        match self {
            Self::Fixed(_) => Some(PeerId(u64::from(member.0))),
            Self::Agreed(views) => views.read().seat(view, member).map(|seat| PeerId(seat.0)),
        }
    }

    /// The number of the member with this link in a view.
    pub(crate) fn member(&self, view: u64, peer: PeerId) -> Option<NodeId> {
        match self {
            Self::Fixed(seating) => {
                (peer.0 < seating.members.len() as u64).then(|| NodeId::at(peer.0 as usize))
            }
            Self::Agreed(views) => views.read().member(view, peer.seat()),
        }
    }

    /// The members and rules of a view.
    pub(crate) fn of(&self, view: u64) -> Option<Arc<Seating>> {
        match self {
            Self::Fixed(seating) => Some(Arc::clone(seating)),
            Self::Agreed(views) => views.read().seating(view),
        }
    }
}

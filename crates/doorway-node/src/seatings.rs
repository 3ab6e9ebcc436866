//! The members of the views that a node takes part in, and the links to them.

use std::sync::Arc;

use doorway_core::NodeId;
use parking_lot::RwLock;

use crate::net::PeerId;
use crate::seating::Seating;

/// How many views of a group with agreed members are remembered: the one that runs, and the next.
const REMEMBERED: usize = 2;

/// Translates between the numbers of members in a view and the numbers of links.
pub(crate) enum Seatings {
    /// Every view has the same members, and the number of a link is the number of the member.
    Fixed(Arc<Seating>),
    /// The members differ from view to view.
    Agreed(RwLock<Vec<ViewSeating>>),
}

/// The members of one view.
pub(crate) struct ViewSeating {
    /// The number of the view.
    pub(crate) view: u64,
    /// The members and rules of the view.
    pub(crate) seating: Arc<Seating>,
    /// The link to each member.
    pub(crate) peers: Vec<PeerId>,
}

impl Seatings {
    /// Remember the members of a newer view.
    pub(crate) fn push(&self, next: ViewSeating) {
        if let Self::Agreed(views) = self {
            let mut views = views.write();
            views.push(next);
            let old = views.len().saturating_sub(REMEMBERED);
            views.drain(..old);
        }
    }

    /// The link to a member of a view.
    pub(crate) fn peer(&self, view: u64, member: NodeId) -> Option<PeerId> {
        match self {
            Self::Fixed(_) => Some(PeerId(u64::from(member.0))),
            Self::Agreed(views) => {
                let views = views.read();
                let known = views.iter().find(|known| known.view == view)?;
                known.peers.get(member.index()).copied()
            }
        }
    }

    /// The number of the member with this link in a view.
    pub(crate) fn member(&self, view: u64, peer: PeerId) -> Option<NodeId> {
        match self {
            Self::Fixed(seating) => {
                (peer.0 < seating.members.len() as u64).then(|| NodeId::at(peer.0 as usize))
            }
            Self::Agreed(views) => {
                let views = views.read();
                let known = views.iter().find(|known| known.view == view)?;
                known.peers.iter().position(|other| *other == peer).map(NodeId::at)
            }
        }
    }

    /// The members and rules of a view.
    pub(crate) fn of(&self, view: u64) -> Option<Arc<Seating>> {
        match self {
            Self::Fixed(seating) => Some(Arc::clone(seating)),
            Self::Agreed(views) => {
                let views = views.read();
                let known = views.iter().find(|known| known.view == view)?;
                Some(Arc::clone(&known.seating))
            }
        }
    }
}

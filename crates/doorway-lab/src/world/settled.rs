//! A world without what the past has left behind in it.

use doorway_core::{Algorithm, Mail, NodeId, Snapshot, Start};

use super::{Letter, World};

impl<A: Algorithm> World<A> {
    /// The simplest world that behaves as this one does from here on: [`Algorithm::settle`] says
    /// what that is. Messages that can change nothing any more are gone from it, the others keep
    /// their numbers. Worlds with requests for ever are finitely many only if they are settled.
    ///
    /// A crashed node never does anything again, so what it knew is replaced by what it knew in the
    /// beginning.
    #[must_use]
    pub fn settled(&self) -> Self {
        let mut world = self.clone();
        let (crashed, live): (Vec<NodeId>, Vec<NodeId>) =
            self.group().nodes().partition(|node| self.crashed.contains(*node));
        for node in crashed {
            let forgotten = A::new(node, self.group(), &Start::default());
            world.nodes.replace(node, forgotten);
        }
        let state = |node: &NodeId| self.nodes.member(*node).algorithm().clone();
        let mail = self.under_way().map(|(parcel, letter)| Mail {
            id: letter.id,
            from: parcel.from,
            to: parcel.to,
            message: letter.body.clone(),
        });
        let mut snapshot = Snapshot {
            nodes: live.iter().map(state).collect(),
            mail: mail.collect(),
            crashes: self.limits.crashes,
        };
        A::settle(self.group(), &mut snapshot);
        for (node, algorithm) in live.into_iter().zip(snapshot.nodes) {
            world.nodes.replace(node, algorithm);
        }
        world.network.clear();
        for Mail { id, from, to, message } in snapshot.mail {
            world.put(from, to, Letter { id, body: message });
        }
        world
    }
}

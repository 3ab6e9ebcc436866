//! The settled form of a world: all that cannot influence its future is removed.

use doorway_core::Mail;

use super::{Letter, World};

impl World {
    /// The simplest world that behaves as this one does from here on.
    ///
    /// [`Algorithm::settle`](doorway_core::Algorithm::settle) decides what that is. Messages that
    /// can no longer change anything are removed, and the others keep their numbers. If a node
    /// never stops asking, there are infinitely many worlds, but only finitely many settled ones.
    #[must_use]
    pub fn settled(&self) -> Self {
        let mut world = self.clone();
        let mail = self.under_way().map(|(position, letter)| Mail {
            id: letter.id,
            from: position.from,
            to: position.to,
            message: &letter.body,
        });
        let mail: Vec<_> = mail.collect();
        if let Some(mail) = world.nodes.settle(&self.crashed, &mail, &self.limits) {
            world.network.clear();
            for Mail { id, from, to, message } in mail {
                world.put(from, to, Letter { id, body: message });
            }
        }
        world
    }
}

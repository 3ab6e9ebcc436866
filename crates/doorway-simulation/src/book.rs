//! What must always be true of every lock.

use std::collections::BTreeSet;

use doorway_protocol::Fence;

use crate::client::{Client, Held};
use crate::context::Context;
use crate::settings::Kind;

/// The grants of one lock, as its clients know them.
#[derive(Debug)]
pub(crate) struct Book {
    kind: Kind,
    /// Who believes to be inside, unless its clock says otherwise.
    inside: Vec<(usize, Held)>,
    /// The highest fences of exclusive and of shared grants.
    exclusive: Option<Fence>,
    shared: Option<Fence>,
    /// The fences of a lock with permits.
    fences: BTreeSet<Fence>,
}

impl Book {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, inside: Vec::new(), exclusive: None, shared: None, fences: BTreeSet::new() }
    }

    /// A client is told that it holds the lock.
    pub(crate) fn enter(&mut self, context: &mut Context, client: usize, held: Held) {
        let fence = held.fence;
        let grows = match self.kind {
            Kind::Permits(_) => self.fences.insert(fence),
            _ if held.shared => self.exclusive.is_none_or(|last| fence > last),
            _ => self.exclusive.max(self.shared).is_none_or(|last| fence > last),
        };
        if !grows {
            context.violate(format!(
                "a fence does not grow: c{client} got {fence:?} of lock {}, after {:?} and {:?}",
                held.lock, self.exclusive, self.shared
            ));
        }
        if held.shared {
            self.shared = self.shared.max(Some(fence));
        } else {
            self.exclusive = self.exclusive.max(Some(fence));
        }
        self.inside.push((client, held));
    }

    /// A client does not hold the lock any more, and knows it.
    pub(crate) fn leave(&mut self, client: usize, fence: Fence) {
        self.inside.retain(|(other, held)| (*other, held.fence) != (client, fence));
    }

    /// Check that all that believe to be inside may be inside together.
    pub(crate) fn check(&self, context: &mut Context, clients: &[Client], lock: usize) {
        if self.inside.len() < 2 {
            return;
        }
        let name = context.settings.locks[lock].name.clone();
        // A client that runs has noticed by itself what its clock says. Others will.
        let believes = |(client, held): &&(usize, Held)| {
            let client = &clients[*client];
            client.paused < context.now || client.believes(context.now, &name, held.fence)
        };
        let inside: Vec<_> = self.inside.iter().filter(believes).collect();
        let fine = match self.kind {
            Kind::Exclusive => inside.len() < 2,
            Kind::Shared => inside.len() < 2 || inside.iter().all(|(_, held)| held.shared),
            Kind::Permits(permits) => inside.len() <= permits as usize,
        };
        if !fine {
            let inside: Vec<_> =
                inside.iter().map(|(client, held)| format!("c{client} {:?}", held.fence)).collect();
            context.violate(format!("too many are inside {name}: {}", inside.join(", ")));
        }
    }
}

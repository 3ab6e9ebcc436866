//! Locks that operators and clients take from their holders.

use std::sync::Arc;

use doorway_protocol::{Code, Fence, Name, Reply};
use doorway_sessions::principal::{Principal, Rights};
use doorway_sessions::{Answer, Call, Connection, Input};

use super::{Node, refusal};
use crate::context::{Context, Grant};

/// A lock that is being broken.
#[derive(Debug)]
pub(crate) struct PendingBreak {
    lock: Name,
    fence: Fence,
    /// The connection and the number of the request, if a client breaks the lock.
    request: Option<(Connection, u64)>,
    /// Whether the lock was held without end.
    endless: bool,
    /// The clients from which it was taken.
    clients: Vec<usize>,
}

impl Node {
    /// Take a lock from its holder, by the request of a client, or for an operator.
    pub(super) fn break_lock(
        &mut self,
        context: &mut Context,
        principal: &Arc<Principal>,
        (lock, fence): (&Name, Fence),
        request: Option<(Connection, u64)>,
    ) {
        let Some(process) = &mut self.process else { return };
        let endless = process.sessions.endless_grants().any(|it| it == (lock, fence));
        // Connections of clients have small numbers.
        let call = process.breaks.keys().next().map_or(u64::MAX, |call| call.0 - 1);
        let lock = lock.clone();
        let breaking =
            PendingBreak { lock: lock.clone(), fence, request, endless, clients: Vec::new() };
        process.breaks.insert(Connection(call), breaking);
        let principal = Arc::clone(principal);
        self.input(context, Input::Call(Connection(call), principal, Call::Break(lock, fence)));
    }

    /// An operator at this node takes a lock from its holder.
    pub(crate) fn break_by_operator(&mut self, context: &mut Context, lock: &Name, fence: Fence) {
        let rights = Rights::all();
        let operator = Principal { name: "uid 0".to_owned(), uid: Some(0), rights };
        self.break_lock(context, &Arc::new(operator), (lock, fence), None);
        self.settle(context);
    }

    /// A grant was taken from its client.
    pub(super) fn taken(&mut self, context: &mut Context, (lock, fence, client): Grant) {
        let Some(process) = &mut self.process else { return };
        let of = |it: &&mut PendingBreak| (&it.lock, it.fence) == (&lock, fence);
        process.breaks.values_mut().filter(of).for_each(|it| it.clients.push(client));
        context.broken.push((lock, fence, client));
    }

    /// The sessions have answered a call. False if it was not one that breaks a lock.
    pub(super) fn break_answered(
        &mut self,
        context: &mut Context,
        call: Connection,
        answer: &Answer,
    ) -> bool {
        let Some(process) = &mut self.process else { return false };
        let Some(PendingBreak { lock, fence, request, endless, clients }) =
            process.breaks.remove(&call)
        else {
            return false;
        };
        let broken = matches!(answer, Answer::Broken(count) if *count > 0);
        context.counts.broken += u64::from(broken);
        if let Some((connection, number)) = request
            && let Some(door) = process.doors.get_mut(&connection)
        {
            door.tell(&if broken {
                Reply::Done(number)
            } else {
                Reply::Refused(number, refusal(Code::Gone, "no client holds it here"))
            });
        }
        if endless && broken {
            context.ended.extend(clients.into_iter().map(|client| (lock.clone(), fence, client)));
        }
        true
    }
}

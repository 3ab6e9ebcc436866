//! How the service asks the shards of its node for locks.

use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use doorway_core::Mode;
use doorway_node::locks::{
    ClientEnd, ClientId, LockRequest, ReclaimRefusal, Shard, ShardEffects, Slot,
};
use doorway_node::views::ClaimError;
use doorway_protocol::{Code, Fence, Name, Wait};
use doorway_sessions::{AskId, Input};

use super::{Node, NodeEvent, place, refusal};
use crate::clock::MS;
use crate::context::{Context, log};

/// A lock that is held for a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guard {
    shard: usize,
    slot: Slot,
    client: ClientId,
}

impl Guard {
    /// Whether the lock is lost, or the lease of the node has ended.
    pub(super) fn is_lost(&self, shards: &[Shard], now: Duration) -> bool {
        shards[self.shard].is_lost(self.client) || shards[self.shard].is_over(now)
    }
}

impl Guard {
    /// What the sessions are told about a grant: its client may keep the lock, if nobody else wants
    /// it by now.
    fn granted(&self, shards: &[Shard], ask: AskId, fence: Fence) -> Input {
        match shards[self.shard].reserved(self.client) {
            0 => Input::Granted(ask, fence),
            numbers => Input::GrantedToKeep(ask, fence, numbers),
        }
    }
}

/// A request that waits at the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingTask {
    guard: Guard,
    /// The client does not want to wait for the lock, so the request waits only for the answers of
    /// other nodes.
    hurries: bool,
}

/// The tasks that were woken.
pub(crate) type WokenTasks = Arc<Mutex<Vec<AskId>>>;

/// Wakes the task of a request.
struct Alarm {
    ask: AskId,
    woken: WokenTasks,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if let Ok(mut woken) = self.woken.lock() {
            woken.push(self.ask);
        }
    }
}

impl Node {
    /// Call a shard, and do what follows from it.
    pub(super) fn with_shard<R>(
        &mut self,
        context: &mut Context,
        shard: usize,
        act: impl FnOnce(&mut Shard, Duration, &mut ShardEffects) -> R,
    ) -> Option<R> {
        let now = self.uptime(context);
        let process = self.process.as_mut()?;
        let mut effects = ShardEffects::default();
        let result = act(&mut process.group.shards[shard], now, &mut effects);
        if self.effects(context, &mut effects) {
            self.overdue(context);
        }
        Some(result)
    }

    /// Send messages, wake tasks, and report losses. True if the next view is overdue.
    pub(super) fn effects(&mut self, context: &mut Context, effects: &mut ShardEffects) -> bool {
        let (id, start) = (self.id, self.starts);
        let Some(process) = &mut self.process else { return false };
        for (to, message) in effects.messages.drain(..) {
            process.group.send(to, message);
        }
        effects.wakers.drain(..).for_each(Waker::wake);
        if let Ok(mut woken) = process.group.woken.lock() {
            for ask in woken.drain(..) {
                let after = context.random.between(0, 20_000);
                context.node(after, id, start, NodeEvent::Wake(ask));
            }
        }
        if std::mem::take(&mut effects.lingers) {
            // The timer of a node has a resolution of a millisecond.
            let linger = context.settings.patience().linger.as_nanos() as u64;
            let after = linger + context.random.clone().between(0, 2 * MS);
            context.node(after, id, start, NodeEvent::EndLingers);
        }
        for lost in effects.lost.drain(..) {
            log!(context, "n{id} loses {} {:?}", lost.lock, lost.fence);
            let what = NodeEvent::Lost(lost.session, lost.lock, lost.fence);
            context.node(context.random.clone().between(0, 20_000), id, start, what);
        }
        // Clients of other processes hear by `wanted` or `lost` that they keep a lock no longer.
        effects.revoked.clear();
        for lock in effects.wanted.drain(..) {
            log!(context, "n{id} wants {lock} back");
            let after = context.random.clone().between(0, 20_000);
            context.node(after, id, start, NodeEvent::Wanted(lock));
        }
        for (from, lock, fault) in effects.refused.drain(..) {
            // If an operator removes a seat and adds it again, its links begin anew, although its
            // member is in the view until it hears that it was evicted.
            let record = context.register.as_ref().map(|register| &register.state.record);
            let text = format!("n{id} refuses what member {} sent about {lock}: {fault}", from.0);
            if record.is_some_and(|record| record.members.iter().any(|member| member.evicted)) {
                log!(context, "{text}");
            } else {
                context.violate(text);
            }
        }
        if std::mem::take(&mut effects.lapsed) {
            self.tell_keeper(context, doorway_node::members::Event::Lapsed);
        }
        effects.overdue
    }

    /// Pass on locks that have lingered long enough.
    pub(super) fn end_lingers(&mut self, context: &mut Context) {
        let shards = self.process.as_ref().map_or(0, |process| process.group.shards.len());
        for shard in 0..shards {
            self.with_shard(context, shard, Shard::end_lingers);
        }
    }

    /// Make a request at the node, now.
    pub(super) fn acquire(
        &mut self,
        context: &mut Context,
        ask: AskId,
        name: &Name,
        request: LockRequest,
        wait: Wait,
    ) {
        let settings = std::rc::Rc::clone(&context.settings);
        let shard = place(&settings, name);
        let Some(process) = &mut self.process else { return };
        let info = &process.group.seating.rules.rule_of(name).info;
        if request.mode == Mode::Shared && !info.shared {
            let refused = refusal(Code::NotServed, "the lock cannot be shared");
            return process.inputs.push_back(Input::Refused(ask, refused));
        }
        let (serving, woken) = (process.serving, Arc::clone(&process.group.woken));
        let alone = settings.alone();
        let slot = process.group.shards[shard].open(name);
        let asked = self.with_shard(context, shard, |shard, now, out| {
            let request = LockRequest { now, ..request };
            if wait == Wait::No {
                match shard.try_acquire(slot, request, out) {
                    Ok(Some((client, fence))) => return (Some(client), Poll::Ready(Ok(fence))),
                    Err(end) => return (None, Poll::Ready(Err(Some(end)))),
                    Ok(None) if alone && serving => return (None, Poll::Ready(Err(None))),
                    Ok(None) => {}
                }
            }
            let (client, fence) = shard.acquire(slot, request, out);
            let polled = if let Some(fence) = fence {
                Poll::Ready(Ok(fence))
            } else {
                let waker = Waker::from(Arc::new(Alarm { ask, woken }));
                shard.poll(client, &waker, out).map_err(Some)
            };
            (Some(client), polled)
        });
        let Some((client, polled)) = asked else { return };
        let Some(process) = &mut self.process else { return };
        match (client, polled) {
            (Some(client), Poll::Ready(Ok(fence))) => {
                let guard = Guard { shard, slot, client };
                process.inputs.push_back(guard.granted(&process.group.shards, ask, fence));
                process.guards.insert(ask, guard);
            }
            (Some(client), Poll::Pending) => {
                let guard = Guard { shard, slot, client };
                let hurries = wait == Wait::No;
                process.tasks.insert(ask, WaitingTask { guard, hurries });
                process.inputs.push_back(Input::Queued(ask));
                let limit = match wait {
                    Wait::Forever => None,
                    Wait::Ms(ms) => Some(ms.saturating_mul(MS)),
                    Wait::No => Some(context.random.between(MS, 2000 * MS)),
                };
                if let Some(limit) = limit {
                    self.later(context, limit, NodeEvent::TimedOut(ask));
                }
            }
            (client, Poll::Ready(Err(end))) => {
                process.inputs.push_back(Input::Refused(ask, of(end)));
                self.leave(context, shard, slot, client);
            }
            (None, _) => {}
        }
    }

    /// A task that waits for a lock was woken.
    pub(super) fn woken(&mut self, context: &mut Context, ask: AskId) {
        let Some(process) = &mut self.process else { return };
        let Some(task) = process.tasks.get(&ask).copied() else { return };
        let woken = Arc::clone(&process.group.woken);
        let Guard { shard, slot, client } = task.guard;
        let now = self.uptime(context);
        let waker = Waker::from(Arc::new(Alarm { ask, woken }));
        let polled =
            self.with_shard(context, shard, |shard, _, out| shard.poll(client, &waker, out));
        let Some(process) = &mut self.process else { return };
        match polled {
            Some(Poll::Ready(result)) => {
                process.tasks.remove(&ask);
                let lost = task.guard.is_lost(&process.group.shards, now);
                let input = match result {
                    Ok(fence) if !lost => {
                        process.guards.insert(ask, task.guard);
                        task.guard.granted(&process.group.shards, ask, fence)
                    }
                    Ok(_) => Input::Refused(ask, refusal(Code::Broken, "granted and lost")),
                    Err(end) => Input::Refused(ask, of(Some(end))),
                };
                if matches!(input, Input::Refused(..)) {
                    self.leave(context, shard, slot, Some(client));
                }
                self.input(context, input);
            }
            Some(Poll::Pending) | None => {}
        }
    }

    /// A request has waited for as long as its client wanted.
    pub(super) fn timed_out(&mut self, context: &mut Context, ask: AskId) {
        let Some(process) = &mut self.process else { return };
        let Some(task) = process.tasks.get(&ask) else { return };
        if task.hurries && !process.serving {
            return self.later(context, 100 * MS, NodeEvent::TimedOut(ask));
        }
        self.abandon(context, ask);
        self.input(context, Input::Refused(ask, refusal(Code::NotFree, "not free in time")));
    }

    /// Withdraw a request.
    pub(super) fn abandon(&mut self, context: &mut Context, ask: AskId) {
        let task = self.process.as_mut().and_then(|process| process.tasks.remove(&ask));
        if let Some(WaitingTask { guard: Guard { shard, slot, client }, .. }) = task {
            self.leave(context, shard, slot, Some(client));
        }
    }

    /// Give a grant back.
    pub(super) fn release(&mut self, context: &mut Context, ask: AskId) {
        let guard = self.process.as_mut().and_then(|process| process.guards.remove(&ask));
        if let Some(Guard { shard, slot, client }) = guard {
            self.leave(context, shard, slot, Some(client));
        }
    }

    fn leave(&mut self, context: &mut Context, shard: usize, slot: Slot, client: Option<ClientId>) {
        self.with_shard(context, shard, |shard, now, out| {
            if let Some(client) = client {
                shard.leave(client, now, out);
            }
            shard.close(slot);
        });
    }

    /// Hold a lock again that was held before the process began.
    pub(super) fn reclaim(
        &mut self,
        context: &mut Context,
        ask: AskId,
        session: u64,
        name: &Name,
        mode: Mode,
        fence: Fence,
    ) {
        let shard = place(&context.settings, name);
        let now = self.uptime(context);
        let Some(process) = &mut self.process else { return };
        let group = &mut process.group;
        let serves_shared = group.seating.rules.rule_of(name).info.shared;
        let claimed = match group.claim(fence) {
            _ if mode == Mode::Shared && !serves_shared => Err("it cannot have been shared"),
            Err(ClaimError::TooLate) => Err("the node serves already"),
            Err(ClaimError::Future { .. }) => Err("the fence was never granted"),
            Err(ClaimError::Ended) => Err("the grant has ended"),
            Ok(()) => {
                let slot = group.shards[shard].open(name);
                let claimed = group.shards[shard].reclaim(slot, mode, fence, session, now);
                claimed.map(|client| Guard { shard, slot, client }).map_err(|why| {
                    group.shards[shard].close(slot);
                    match why {
                        ReclaimRefusal::TooLate => "the node serves already",
                        ReclaimRefusal::Taken => "another client reclaimed it",
                    }
                })
            }
        };
        log!(context, "n{} reclaims {name} {fence:?} session {session}: {claimed:?}", self.id);
        let input = match claimed {
            Ok(guard) => {
                process.guards.insert(ask, guard);
                Input::Granted(ask, fence)
            }
            Err(why) => Input::Refused(ask, refusal(Code::Gone, why)),
        };
        process.inputs.push_back(input);
    }
}

/// The refusal of a request, by how it ended. None means that another client holds the lock.
fn of(end: Option<ClientEnd>) -> doorway_protocol::Refusal {
    match end {
        None => refusal(Code::NotFree, "not free"),
        Some(ClientEnd::Lost) => refusal(Code::Unavailable, "the node has stopped"),
        Some(ClientEnd::Broken(_)) => refusal(Code::Broken, "the lock is broken"),
        Some(ClientEnd::NotShared(_)) => refusal(Code::NotServed, "the lock cannot be shared"),
    }
}

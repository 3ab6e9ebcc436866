//! Calls over HTTP: each has a connection of its own, and one answer.

use doorway_protocol::{Fence, Moment};
use doorway_sessions::{Answer, Call, Connection, EventKind, Input, News};

use super::{Node, NodeEvent, principal, secret};
use crate::client::LENGTH;
use crate::clock::MS;
use crate::context::{Context, Post, log};
use crate::network::Wire;
use crate::story::Lane;

/// How long a call that does not wait for its lock may wait for the answers of other nodes.
const ASKING: u64 = 5000 * MS;

/// A lease of a request that may be repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseWatch {
    session: u64,
    fence: Fence,
    granted: Moment,
    /// The node has promised to keep it until then.
    until: Moment,
}

/// A call over HTTP that has no answer: how many bytes of it have come, and when the last one did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenCall {
    bytes: usize,
    came: Moment,
}

impl Node {
    /// Bytes of a call have come.
    pub(crate) fn call_bytes(
        &mut self,
        context: &mut Context,
        wire: Wire,
        client: usize,
        remote: bool,
        bytes: &[u8],
    ) {
        let now = self.clock.read(context.now);
        let Some(process) = &mut self.process else { return };
        let call = process.calls.entry(wire).or_default();
        call.bytes += bytes.len();
        call.came = now;
        if call.bytes < LENGTH {
            return;
        }
        let Some(Post { mut call, wait }) = context.posts.remove(&wire) else { return };
        if process.stopping {
            process.calls.remove(&wire);
            return context.close(wire, 1);
        }
        process.secrets += 1;
        let limit = match &mut call {
            Call::Acquire(lease) => {
                lease.secret = secret(process.secrets);
                Some(if wait == 0 { ASKING } else { wait })
            }
            _ => None,
        };
        log!(context, "n{} is called over {wire}: {call:?}", self.id);
        let (word, lock) = match &call {
            Call::Acquire(lease) => ("acquire", Some(&lease.ask.lock)),
            Call::AcquireWith(ask) => ("acquire", Some(&ask.ask.lock)),
            Call::Renew(lock, ..) => ("renew", Some(lock)),
            Call::Release(lock, _) | Call::Unlock(_, lock, _) => ("release", Some(lock)),
            Call::Withdraw(lock, _) => ("withdraw", Some(lock)),
            Call::Break(lock, _) => ("break", Some(lock)),
            Call::Open(_) => ("open a lease", None),
            Call::KeepAlive(_) => ("keep alive", None),
            Call::Revoke(_) => ("revoke", None),
        };
        context.arrow(Lane::Node(self.id), || word.to_owned(), lock);
        let principal = principal(client, !remote);
        self.input(context, Input::Call(Connection(wire), principal, call));
        if let Some(limit) = limit {
            self.later(context, limit, NodeEvent::CallTimedOut(wire));
        }
        self.settle(context);
    }

    /// A call has waited for as long as its client wanted.
    pub(super) fn call_timed_out(&mut self, context: &mut Context, wire: Wire) {
        if self.process.as_ref().is_some_and(|process| process.calls.contains_key(&wire)) {
            self.input(context, Input::CallTimedOut(Connection(wire)));
        }
    }

    /// The connection of a call has ended.
    pub(super) fn call_ended(&mut self, context: &mut Context, wire: Wire) {
        let Some(process) = &mut self.process else { return };
        if process.calls.remove(&wire).is_some() {
            log!(context, "n{} call {wire} has ended", self.id);
            self.input(context, Input::HangUp { connection: Connection(wire), closed: true });
        }
    }

    /// The sessions answer a call.
    pub(super) fn answer_call(&mut self, connection: Connection, answer: Answer) {
        let Some(process) = &mut self.process else { return };
        let call = process.calls.get(&connection.0);
        if let (Answer::Leased(lease), Some(call)) = (&answer, call) {
            for watch in process.leases.values_mut().filter(|it| it.session == lease.session) {
                // The answer may have had to wait, but the lease has not.
                watch.until = watch.granted.max(call.came).after(lease.ttl);
            }
        }
        // A client that has gone away may ask again.
        if process.calls.contains_key(&connection.0) {
            process.answers.push((connection.0, answer));
        }
    }

    /// Write the answers to calls, and close their connections.
    pub(super) fn write_answers(&mut self, context: &mut Context) {
        let Some(process) = &mut self.process else { return };
        for (wire, answer) in std::mem::take(&mut process.answers) {
            context.answers.insert(wire, answer);
            context.send(wire, 1, vec![1; LENGTH]);
            context.close(wire, 1);
            self.call_ended(context, wire);
        }
    }

    /// Something has happened to a grant. A request that may be repeated has one lease at most, and
    /// a lease does not end before its time.
    pub(super) fn watch_leases(&mut self, context: &mut Context, news: &News) {
        let now = self.clock.read(context.now);
        let Some(process) = &mut self.process else { return };
        let Some(key) = news.client.strip_prefix("http c") else { return };
        match news.kind {
            EventKind::Granted => {
                let (session, fence) = (news.session, news.fence);
                let watch = LeaseWatch { session, fence, granted: now, until: Moment(0) };
                if let Some(other) = process.leases.insert(key.to_owned(), watch) {
                    let fences = (other.fence, fence);
                    context.violate(format!("n{}: two leases for c{key}: {fences:?}", self.id));
                }
            }
            EventKind::Released | EventKind::Lost => {
                let ended = process.leases.remove(key);
                let silent = news.why.as_ref().is_some_and(|why| why.contains("silent"));
                if silent && ended.is_some_and(|watch| now < watch.until) {
                    let what = format!("n{}: the lease of c{key} ends too early", self.id);
                    context.violate(what);
                }
            }
        }
    }
}

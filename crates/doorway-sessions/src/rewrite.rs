//! Changes of a session that the ledger must know before the client is told.
//!
//! If a change cannot be written, it is undone and the client gets a refusal. Otherwise the next
//! process would go on with something else than what the client was told.

use std::time::Duration;

use doorway_protocol::{Fence, Reply};

use super::Sessions;
use super::event::{Answer, Connection, LeaseAnswer, Output};
use super::refusals::unwritten;

/// A change of a session that is being written into the ledger, and who is told.
#[derive(Clone, Debug, Hash)]
pub(super) enum SessionChange {
    /// The time to live of a lease, which was `before` until now. The answer goes to this call.
    Ttl { call: Connection, fence: Fence, before: Duration },
    /// The socket of the session's processes was seen. The client asked for that by this request.
    Holder { request: u64 },
}

impl Sessions {
    /// Write a change of a session into the ledger. False if the ledger does not have the session,
    /// so that there is nothing to write.
    pub(super) fn rewrite(
        &mut self,
        number: u64,
        change: SessionChange,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(session) = self.open.get_mut(&number) else { return false };
        let Some(place) = session.place else { return false };
        session.rewriting = Some(change);
        out.push(Output::Rewrite(number, place, session.record()));
        true
    }

    /// A change was written into the ledger, or could not be.
    pub(super) fn rewritten(
        &mut self,
        number: u64,
        written: Result<(), String>,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.open.get_mut(&number) else { return };
        let Some(change) = session.rewriting.take() else { return };
        let refused = written.err().map(|error| unwritten(&error));
        match change {
            SessionChange::Ttl { call, fence, before } => {
                let answer = match refused {
                    None => Answer::Leased(LeaseAnswer {
                        fence,
                        session: number,
                        ttl: session.ttl,
                        renewed: true,
                    }),
                    Some(refusal) => {
                        session.ttl = before;
                        Answer::Refused(refusal)
                    }
                };
                out.push(Output::Answer(call, answer));
            }
            SessionChange::Holder { request } => {
                let reply = match refused {
                    None => Reply::Done(request),
                    Some(refusal) => {
                        session.holder = false;
                        Reply::Refused(request, refusal)
                    }
                };
                self.tell(number, reply, out);
            }
        }
    }
}

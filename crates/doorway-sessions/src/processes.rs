//! The processes of a session, which may outlive its connection and the node.

use doorway_protocol::{Life, Moment, Reply, Secret};

use super::connections::AttachedSession;
use super::event::{Connection, Evidence, Output};
use super::open::End;
use super::rewrite::SessionChange;
use super::session::Session;
use super::{Sessions, Stage};

impl Sessions {
    /// Watch the process of a session, if its end must be seen and the connection does not show it.
    pub(super) fn look_after(&mut self, number: u64, out: &mut Vec<Output>) {
        let Some(session) = self.open.get_mut(&number) else { return };
        let needs = needs_watch(session);
        if needs == session.watched {
            return;
        }
        match session.process {
            _ if needs && session.holder => {
                out.push(Output::Watch(
                    number,
                    Evidence::Holder(session.secret, session.principal.uid),
                ));
            }
            Some(process) if needs => {
                out.push(Output::Watch(number, Evidence::Process(process)));
            }
            // Other processes may have the connection, and nobody can tell whether this one lives.
            None if needs => return session.orphan = true,
            _ => out.push(Output::Unwatch(number)),
        }
        session.watched = needs;
        self.count_process(needs);
    }

    /// The node has seen the socket that the processes of a session hold. From now on that socket
    /// decides whether the session goes on after a restart of the node.
    pub(super) fn holder_seen(
        &mut self,
        connection: Connection,
        request: u64,
        out: &mut Vec<Output>,
    ) {
        let Some(AttachedSession::Open(number)) =
            self.connections.get(&connection).map(|it| it.session)
        else {
            return;
        };
        let unseen = |session: &&mut Session| session.is_bound() && !session.holder;
        if let Some(session) = self.open.get_mut(&number).filter(unseen) {
            session.holder = true;
            if self.rewrite(number, SessionChange::Holder { request }, out) {
                return;
            }
        }
        out.push(Output::Tell(connection, Reply::Done(request)));
    }

    /// The secret of the session of a connection, and the user of its client.
    pub fn secret_of(&self, connection: Connection) -> Option<(Secret, Option<u32>)> {
        let AttachedSession::Open(number) = self.connections.get(&connection)?.session else {
            return None;
        };
        let session = self.open.get(&number)?;
        Some((session.secret, session.principal.uid))
    }

    /// The processes of a session have ended.
    pub(super) fn process_ended(&mut self, now: Moment, number: u64, out: &mut Vec<Output>) {
        let Some(session) = self.open.get_mut(&number).filter(|session| session.watched) else {
            return;
        };
        if self.stage == Stage::Stopped {
            return;
        }
        let inherited = session.life == Life::Connection { inherited: true };
        if session.is_detached() || session.connection.is_none() && (session.holder || !inherited) {
            return self.end(number, End::Left, out);
        }
        // Other processes have the connection, or had it before the node was started.
        session.orphan = true;
        if session.is_bound() && session.connection.is_none() {
            session.ttl = self.setup.limits.ttl;
            session.heard = now;
        }
        self.look_after(number, out);
    }
}

/// Whether the end of the session's process must be seen: the connection does not show it.
pub(super) fn needs_watch(session: &Session) -> bool {
    match session.life {
        Life::Process { .. } => true,
        Life::Lease => false,
        Life::Connection { .. } if session.remote || session.orphan => false,
        // While there is a connection, its end is the end of all processes that have it. But with a
        // time to live, a process that is gone sends no heartbeats, and its children may have the
        // connection all the same.
        Life::Connection { inherited } => {
            session.connection.is_none() || inherited && !session.is_bound()
        }
    }
}

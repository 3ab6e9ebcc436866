//! Connections, and the sessions that they belong to.

use std::sync::Arc;

use doorway_protocol::{Moment, Refusal};

use super::event::{Connection, Output};
use super::open::End;
use super::refusals::{gone, stopping};
use super::{Sessions, Stage};
use crate::principal::Principal;

/// A connection.
#[derive(Clone, Debug, Hash)]
pub(super) struct ConnectionState {
    pub(super) remote: bool,
    /// The client, once it is known.
    pub(super) principal: Option<Arc<Principal>>,
    pub(super) session: AttachedSession,
}

/// The session of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AttachedSession {
    /// None: the client has not sent its hello, or only asks questions.
    None,
    Open(u64),
    /// The session has ended, or goes on over another connection. Nothing is answered any more.
    Over,
}

impl Sessions {
    pub(super) fn connect(&mut self, connection: Connection, remote: bool, out: &mut Vec<Output>) {
        let counted = match self.stage {
            Stage::Stopped => Err(stopping()),
            _ => self.count_connection(remote),
        };
        match counted {
            Ok(()) => {
                let conn =
                    ConnectionState { remote, principal: None, session: AttachedSession::None };
                self.connections.insert(connection, conn);
            }
            Err(refusal) => out.push(Output::TurnAway(connection, refusal)),
        }
    }

    /// Note who the client of a connection is. The connection counts against the limits of that
    /// client from now on.
    pub(super) fn identify(
        &mut self,
        connection: Connection,
        principal: &Arc<Principal>,
    ) -> Result<(), Refusal> {
        let Some(conn) = self.connections.get(&connection) else { return Err(gone()) };
        let known = conn.principal.as_ref().map(|known| &known.name);
        if known == Some(&principal.name) {
            return Ok(());
        }
        if conn.remote {
            match conn.principal.clone() {
                None => self.own_connection(principal)?,
                Some(before) => {
                    self.count_connection(true)?;
                    let owned = self.own_connection(principal);
                    let counted_twice = if owned.is_ok() { Some(&*before) } else { None };
                    self.forget_connection(counted_twice);
                    owned?;
                }
            }
        }
        if let Some(conn) = self.connections.get_mut(&connection) {
            conn.principal = Some(Arc::clone(principal));
        }
        Ok(())
    }

    /// A client has been heard.
    pub(super) fn heard(&mut self, now: Moment, connection: Connection) {
        if let Some(ConnectionState { session: AttachedSession::Open(number), .. }) =
            self.connections.get(&connection)
            && let Some(session) = self.open.get_mut(number)
        {
            session.heard = now;
        }
    }

    /// Let a session go on over this connection.
    pub(super) fn attach(&mut self, number: u64, connection: Connection, out: &mut Vec<Output>) {
        let Some(session) = self.open.get_mut(&number) else { return };
        session.newest = Some(connection);
        if let Some(old) = session.connection.replace(connection) {
            self.connections
                .get_mut(&old)
                .into_iter()
                .for_each(|old| old.session = AttachedSession::Over);
            out.push(Output::Close(old));
        }
        if let Some(conn) = self.connections.get_mut(&connection) {
            conn.session = AttachedSession::Open(number);
        }
    }

    /// The connection of a client has ended.
    pub(super) fn hang_up(
        &mut self,
        now: Moment,
        connection: Connection,
        closed: bool,
        out: &mut Vec<Output>,
    ) {
        self.caller_left(now, connection, out);
        self.forget_withheld(now, connection, out);
        let Some(conn) = self.connections.remove(&connection) else { return };
        if conn.remote {
            self.forget_connection(conn.principal.as_deref());
        }
        let AttachedSession::Open(number) = conn.session else { return };
        if self.stage == Stage::Stopped {
            return; // The session is left to the next process.
        }
        let Some(session) = self.open.get_mut(&number) else { return };
        session.connection = None;
        if closed && !session.remote {
            if !session.is_detached() {
                return self.end(number, End::Left, out);
            }
            // The client is gone, so a grant that it has not learnt of would only keep others out.
            let waiting: Vec<_> = session.waiting.values().copied().collect();
            for ask in waiting {
                self.abandon(ask, out);
            }
        }
        self.look_after(number, out);
        self.end_if_idle(number, out);
    }
}

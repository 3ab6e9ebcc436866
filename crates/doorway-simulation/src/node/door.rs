//! The connections of clients: frames in, replies out.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use doorway_protocol::{Claims, Code, FrameError, Frames, Greeting, Hello, Life, Reply, Request};
use doorway_sessions::outbox::{Outbox, OutboxState};
use doorway_sessions::principal::Principal;
use doorway_sessions::{Connection, Input, Opening, ProcessId};

use doorway_protocol::Opening::{New, Resume, Visit};

use super::{Node, principal, refusal, secret};
use crate::context::{Context, log};
use crate::network::Wire;
use crate::story::Lane;

/// A connection of a client.
#[derive(Debug)]
pub(crate) struct Door {
    frames: Frames,
    outbox: Outbox,
    stage: Stage,
    principal: Arc<Principal>,
    remote: bool,
    pid: Option<u32>,
    /// The name of the socket that the processes of the session hold.
    holder: Option<String>,
    dirty: bool,
}

#[derive(Debug)]
enum Stage {
    Magic,
    Hello,
    /// The hello has come, and more claims follow.
    Claims(Box<Hello>, Vec<Claims>),
    Talking,
    Closing,
}

impl Door {
    pub(super) fn tell(&mut self, reply: &Reply) {
        self.outbox.tell(reply);
        self.dirty = true;
    }

    pub(super) fn greet(&mut self, greeting: &Greeting, then: &[Reply]) {
        self.outbox.greet(greeting, then);
        let welcome = greeting.as_ref().ok().and_then(|welcome| welcome.session);
        self.holder = welcome.map(|(_, secret)| secret.holder());
        self.stage = Stage::Talking;
        self.dirty = true;
    }

    pub(super) fn close(&mut self) {
        self.outbox.close();
        self.dirty = true;
    }
}

impl Node {
    /// Bytes have come from a client.
    pub(crate) fn door_bytes(
        &mut self,
        context: &mut Context,
        wire: Wire,
        client: usize,
        pid: Option<u32>,
        bytes: &[u8],
    ) {
        let connection = Connection(wire);
        let Some(process) = &mut self.process else { return };
        if let Entry::Vacant(place) = process.doors.entry(connection) {
            let remote = pid.is_none();
            let door = Door {
                frames: Frames::default(),
                outbox: Outbox::default(),
                stage: Stage::Magic,
                principal: principal(client, !remote),
                remote,
                pid,
                holder: None,
                dirty: false,
            };
            place.insert(door);
            self.input(context, Input::Connect { connection, remote });
        }
        let Some(door) = self.door(connection) else { return };
        door.frames.feed(bytes);
        if matches!(door.stage, Stage::Talking) {
            self.input(context, Input::Heard(connection));
        }
        if self.read(context, connection).is_err() {
            self.hang_up(context, wire);
        }
        self.settle(context);
    }

    fn door(&mut self, connection: Connection) -> Option<&mut Door> {
        self.process.as_mut()?.doors.get_mut(&connection)
    }

    /// Handle all whole frames.
    fn read(&mut self, context: &mut Context, connection: Connection) -> Result<(), FrameError> {
        loop {
            let Some(door) = self.door(connection) else { return Ok(()) };
            match &mut door.stage {
                Stage::Magic => {
                    if !door.frames.magic()? {
                        return Ok(());
                    }
                    door.stage = Stage::Hello;
                }
                Stage::Hello => {
                    let Some(hello) = door.frames.take::<Hello>()? else { return Ok(()) };
                    let more = match &hello.opening {
                        Resume { more, .. } => *more,
                        _ => false,
                    };
                    door.stage = Stage::Claims(Box::new(hello), Vec::new());
                    if !more {
                        self.opening(context, connection);
                    }
                }
                Stage::Claims(_, claims) => {
                    let Some(next) = door.frames.take::<Claims>()? else { return Ok(()) };
                    let more = next.more;
                    claims.push(next);
                    if !more {
                        self.opening(context, connection);
                    }
                }
                Stage::Talking => {
                    let Some(request) = door.frames.take::<Request>()? else { return Ok(()) };
                    log!(context, "n{} hears {}: {request:?}", self.id, connection.0);
                    self.show(context, &request);
                    self.request(context, connection, request);
                }
                Stage::Closing => return Ok(()),
            }
        }
    }

    /// Note for the picture that a request has come. Heartbeats are left out.
    fn show(&self, context: &mut Context, request: &Request) {
        let (word, lock) = match request {
            Request::Acquire(_, ask) => ("acquire", Some(&ask.lock)),
            Request::Release(_, lock, _) => ("release", Some(lock)),
            Request::Renew(_, lock, _) => ("renew", Some(lock)),
            Request::Break(_, lock, _) => ("break", Some(lock)),
            Request::Withdraw(_) => ("withdraw", None),
            Request::Bye => ("bye", None),
            _ => return,
        };
        context.arrow(Lane::Node(self.id), || word.to_owned(), lock);
    }

    /// Carry out a request, as `native/requests.rs` does.
    fn request(&mut self, context: &mut Context, connection: Connection, request: Request) {
        let reply = match request {
            Request::Evidence(number) => {
                let Some(door) = self.door(connection) else { return };
                let name = door.holder.as_ref();
                if name.is_some_and(|name| context.holders.contains_key(name)) {
                    return self.input(context, Input::HolderSeen(connection, number));
                }
                Reply::Refused(number, refusal(Code::Gone, "no process holds the socket"))
            }
            Request::Break(number, lock, fence) => {
                let Some(door) = self.door(connection) else { return };
                let principal = Arc::clone(&door.principal);
                let request = Some((connection, number));
                return self.break_lock(context, &principal, (&lock, fence), request);
            }
            other => return self.input(context, Input::Request(connection, other)),
        };
        if let Some(door) = self.door(connection) {
            door.tell(&reply);
        }
    }

    /// The hello of a client is complete.
    fn opening(&mut self, context: &mut Context, connection: Connection) {
        let Some(process) = &mut self.process else { return };
        process.secrets += 1;
        let number = process.secrets;
        let Some(door) = process.doors.get_mut(&connection) else { return };
        let stage = std::mem::replace(&mut door.stage, Stage::Closing);
        let Stage::Claims(hello, claims) = stage else { return };
        log!(context, "n{} hears {}: {hello:?}", self.id, connection.0);
        let resumes = matches!(hello.opening, Resume { .. });
        let word = if resumes { "hello again" } else { "hello" };
        context.arrow(Lane::Node(self.id), || word.to_owned(), None);
        let process = match hello.opening {
            Visit | New { life: Life::Lease, .. } | Resume { life: Life::Lease, .. } => None,
            New { life: Life::Process { pid }, .. }
            | Resume { life: Life::Process { pid }, .. } => {
                Some(ProcessId { pid, started: Some(u64::from(pid)) })
            }
            New { ttl_ms, .. } | Resume { ttl_ms, .. } => door.pid.map(|pid| ProcessId {
                pid,
                started: (ttl_ms == u32::MAX).then_some(u64::from(pid)),
            }),
        };
        let opening = Opening {
            connection,
            principal: Arc::clone(&door.principal),
            remote: door.remote,
            process,
            hello: *hello,
            claims,
            secret: secret(number),
        };
        self.input(context, Input::Hello(Box::new(opening)));
    }

    /// The connection of a client has ended.
    pub(crate) fn hang_up(&mut self, context: &mut Context, wire: Wire) {
        let connection = Connection(wire);
        let Some(process) = &mut self.process else { return };
        let known = process.doors.remove(&connection).is_some();
        context.close(wire, 1);
        if known {
            log!(context, "n{} connection {wire} has ended", self.id);
            self.input(context, Input::HangUp { connection, closed: true });
        }
        self.call_ended(context, wire);
        self.settle(context);
    }

    /// Write what connections and links have to write.
    pub(super) fn flush(&mut self, context: &mut Context) {
        self.write_links(context);
        self.write_answers(context);
        let mut over = Vec::new();
        let Some(process) = &mut self.process else { return };
        for (connection, door) in process.doors.iter_mut().filter(|(_, door)| door.dirty) {
            door.dirty = false;
            if matches!(door.stage, Stage::Magic | Stage::Hello | Stage::Claims(..)) {
                continue; // What happens before the greeting is told after it.
            }
            let mut bytes = Vec::new();
            let found = door.outbox.take(&mut bytes);
            context.send(connection.0, 1, bytes);
            if found == OutboxState::Closing {
                over.push(*connection);
            }
        }
        for connection in over {
            if let Some(process) = &mut self.process {
                process.doors.remove(&connection);
            }
            context.close(connection.0, 1);
            self.input(context, Input::HangUp { connection, closed: false });
        }
        if self.process.as_ref().is_some_and(|process| process.doors.values().any(|it| it.dirty)) {
            self.flush(context);
        }
        self.write_links(context);
    }
}

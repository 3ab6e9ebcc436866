//! Asks the node that should run whether it does.

use std::io::{self, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use doorway_protocol::{
    ClientInfo, Frames, Greeting, Hello, LedgerTrouble, MAGIC, MembersReport, MembersRequest,
    NodeStatus, Opening, Reply, Request, Scope, VERSIONS, put,
};

use super::Finding;
use crate::service::half_away;
use crate::settings::{Settings, Socket};

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// The version of the protocol since which a node tells whether it can write its ledger.
const LEDGER: u16 = 6;

/// What is known of the node of some settings.
pub(super) struct NodeCheck {
    pub(super) finding: Finding,
    /// The process of the node, if it answers.
    pub(super) pid: Option<u32>,
    /// The members of its group, if they agree on them.
    pub(super) members: Option<MembersReport>,
}

/// What a node says about itself.
struct NodeAnswer {
    status: NodeStatus,
    /// Why it cannot write its ledger.
    ledger: Option<LedgerTrouble>,
    members: Option<MembersReport>,
}

/// Ask the node at the socket of these settings.
pub(super) fn ask(settings: &Settings) -> NodeCheck {
    let Some(socket) = &settings.socket else {
        let finding = Finding::ok("node", "it has no Unix socket, so it was not asked");
        return NodeCheck { finding, pid: None, members: None };
    };
    let asked = connect(socket).map(|stream| ask_node(stream, settings.members.is_some()));
    let finding = match &asked {
        Ok(Ok(Ok(answer))) => answered(socket, answer),
        Ok(Ok(Err(refusal))) => {
            let what = format!("the node at {socket} refuses us: {refusal}");
            Finding::wrong("node", what, "see the log of the node")
        }
        Ok(Err(error)) => {
            let what = format!("what listens at {socket} does not answer as a node would: {error}");
            Finding::wrong("node", what, "see its log, or restart it")
        }
        Err(error) => unreachable_at(settings, socket, error),
    };
    let answer = asked.ok().and_then(|asked| asked.ok()?.ok());
    let pid = answer.as_ref().map(|answer| answer.status.pid);
    NodeCheck { finding, pid, members: answer.and_then(|answer| answer.members) }
}

fn unreachable_at(settings: &Settings, socket: &Socket, error: &io::Error) -> Finding {
    let absent = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
    if !absent.contains(&error.kind()) {
        let what = format!("cannot reach a node at {socket}: {error}");
        let remedy = "add this user to the group of the socket, `doorway` unless it was set up \
                      otherwise, or change `socket_mode`";
        return Finding::wrong("node", what, remedy);
    }
    if settings.scope == Scope::User {
        let what = format!("no node runs at {socket}; `doorway run` starts one when it is needed");
        return Finding::ok("node", what);
    }
    let remedy = "start it with `systemctl start doorway`, or with `doorway serve --config FILE`";
    Finding::warning("node", format!("no node runs at {socket}"), remedy)
}

fn answered(socket: &Socket, answer: &NodeAnswer) -> Finding {
    let NodeAnswer { status, members, .. } = answer;
    let NodeStatus { node, group, pid, version, sessions, held, waiting, .. } = status;
    let what = format!(
        "node {node} of group {group} (version {version}, process {pid}) answers at {socket}: \
         {sessions} sessions, {held} grants held, {waiting} requests waiting"
    );
    if let Some(LedgerTrouble { error, remedy, .. }) = &answer.ledger {
        let what = format!("{what}; it cannot write its ledger, so it refuses locks: {error}");
        return Finding::wrong("node", what, remedy);
    }
    if let Some(ms) = status.reclaiming_ms {
        let remedy = format!("wait: it grants locks again in {ms} ms at most");
        let what = format!("{what}; it waits for clients that held locks before it crashed");
        return Finding::warning("node", what, remedy);
    }
    if let Some(trouble) = members.as_ref().and_then(|members| members.trouble.as_deref()) {
        let remedy = "`doorway members` shows the group";
        return Finding::warning("node", format!("{what}; {trouble}"), remedy);
    }
    if status.view.is_none() {
        let away: Vec<&str> = status.away.iter().map(|away| away.node.as_str()).collect();
        let what = format!("{what}; it does not serve yet, because the members have not met");
        return Finding::warning("node", what, format!("start or connect {}", away.join(", ")));
    }
    if members.is_none()
        && let Some(away) = half_away(&answer.status)
    {
        return Finding::warning("node", format!("{what}; {away}"), "start or reconnect them");
    }
    Finding::ok("node", what)
}

fn connect(socket: &Socket) -> io::Result<UnixStream> {
    let stream = match socket {
        Socket::Abstract(name) => {
            UnixStream::connect_addr(&SocketAddr::from_abstract_name(name.as_bytes())?)
        }
        Socket::File(path, _) => UnixStream::connect(path),
    }?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Ask the node for its status, for its ledger and, if its group agrees on them, for its members,
/// without a session. The inner error is its refusal.
fn ask_node(mut stream: UnixStream, with_members: bool) -> io::Result<Result<NodeAnswer, String>> {
    let mut bytes = MAGIC.to_vec();
    let who =
        ClientInfo { label: "doorway doctor".into(), host: String::new(), pid: std::process::id() };
    put(&Hello { versions: VERSIONS, who, token: None, opening: Opening::Visit }, &mut bytes);
    put(&Request::Status(1), &mut bytes);
    if with_members {
        put(&Request::Members(2, MembersRequest::Show), &mut bytes);
    }
    stream.write_all(&bytes)?;
    let mut frames = Frames::default();
    let garbled = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let greeting: Greeting = loop {
        match frames.take().map_err(garbled)? {
            Some(greeting) => break greeting,
            None => more(&mut stream, &mut frames)?,
        }
    };
    let version = match greeting {
        Ok(welcome) => welcome.version,
        Err(refusal) => return Ok(Err(refusal.text)),
    };
    let (mut status, mut members, mut ledger) = (None, None, None);
    if version < LEDGER {
        ledger = Some(None);
    } else {
        bytes.clear();
        put(&Request::Ledger(3), &mut bytes);
        stream.write_all(&bytes)?;
    }
    loop {
        let complete = (!with_members || members.is_some()) && ledger.is_some();
        if let Some(status) = status.take_if(|_| complete) {
            let (members, ledger) = (members.flatten(), ledger.flatten());
            return Ok(Ok(NodeAnswer { status, ledger, members }));
        }
        match frames.take::<Reply>().map_err(garbled)? {
            Some(Reply::Status(1, told)) => status = Some(*told),
            Some(Reply::Members(2, told)) => members = Some(Some(*told)),
            Some(Reply::Ledger(3, told)) => ledger = Some(told),
            Some(Reply::Refused(1, refusal)) => return Ok(Err(refusal.text)),
            // The node runs with other settings than those that were read.
            Some(Reply::Refused(2, _)) => members = Some(None),
            Some(_) => {}
            None => more(&mut stream, &mut frames)?,
        }
    }
}

fn more(stream: &mut UnixStream, frames: &mut Frames) -> io::Result<()> {
    let mut bytes = [0; 4096];
    match stream.read(&mut bytes)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        read => {
            frames.space().extend_from_slice(&bytes[..read]);
            Ok(())
        }
    }
}

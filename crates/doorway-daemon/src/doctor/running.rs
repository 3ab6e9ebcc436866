//! Does a node run, and does it answer?

use std::io::{self, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::time::Duration;

use doorway_protocol::{
    ClientInfo, Frames, Greeting, Hello, MAGIC, NodeStatus, Opening, Reply, Request, VERSIONS, put,
};

use super::Finding;
use crate::settings::{Settings, Socket};

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Ask the node at the socket of these settings.
pub(super) fn ask(settings: &Settings) -> Finding {
    let Some(socket) = &settings.socket else {
        return Finding::ok("node", "it has no Unix socket, so it was not asked");
    };
    let shown = match socket {
        Socket::Abstract(name) => format!("@{name}"),
        Socket::File(path, _) => path.display().to_string(),
    };
    let stream = match connect(socket) {
        Ok(stream) => stream,
        Err(error) => {
            let absent = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
            return if absent.contains(&error.kind()) {
                let remedy = "start one with `doorway serve`, or `systemctl start doorway`";
                Finding::warning("node", format!("no node runs at {shown}"), remedy)
            } else {
                let what = format!("cannot reach a node at {shown}: {error}");
                Finding::wrong("node", what, "see `socket_mode`, and the groups of this user")
            };
        }
    };
    match status(stream) {
        Ok(Ok(status)) => answered(&shown, &status),
        Ok(Err(refusal)) => {
            let what = format!("the node at {shown} refuses us: {refusal}");
            Finding::wrong("node", what, "see the log of the node")
        }
        Err(error) => {
            let what = format!("what listens at {shown} does not answer as a node would: {error}");
            Finding::wrong("node", what, "see its log, or restart it")
        }
    }
}

fn answered(shown: &str, status: &NodeStatus) -> Finding {
    let NodeStatus { node, group, pid, version, sessions, held, waiting, .. } = status;
    let what = format!(
        "node {node} of group {group} (version {version}, process {pid}) answers at {shown}: \
         {sessions} sessions, {held} grants held, {waiting} requests waiting"
    );
    if let Some(ms) = status.reclaiming_ms {
        let remedy = format!("it grants again in {ms} ms at most");
        return Finding::warning(
            "node",
            format!("{what}; former holders may still come back"),
            remedy,
        );
    }
    if status.view.is_none() {
        let away: Vec<&str> = status.away.iter().map(|away| away.node.as_str()).collect();
        let what = format!("{what}; it does not serve, for the members have not met");
        return Finding::warning("node", what, format!("see to {}", away.join(", ")));
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

/// Visit the node and ask how it is.
fn status(mut stream: UnixStream) -> io::Result<Result<NodeStatus, String>> {
    let mut bytes = MAGIC.to_vec();
    let who =
        ClientInfo { label: "doorway doctor".into(), host: String::new(), pid: std::process::id() };
    put(&Hello { versions: VERSIONS, who, token: None, opening: Opening::Visit }, &mut bytes);
    put(&Request::Status(1), &mut bytes);
    stream.write_all(&bytes)?;
    let mut frames = Frames::default();
    let garbled = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let greeting: Greeting = loop {
        match frames.take().map_err(garbled)? {
            Some(greeting) => break greeting,
            None => more(&mut stream, &mut frames)?,
        }
    };
    if let Err(refusal) = greeting {
        return Ok(Err(refusal.text));
    }
    loop {
        match frames.take::<Reply>().map_err(garbled)? {
            Some(Reply::Status(1, status)) => return Ok(Ok(*status)),
            Some(Reply::Refused(1, refusal)) => return Ok(Err(refusal.text)),
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

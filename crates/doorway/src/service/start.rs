//! Starting the node of this user if none runs.

use std::env;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Read as _, Seek as _};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use doorway_client::{Endpoint, Moment, Stream};
use doorway_protocol::Backoff;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::sockopt::socket_peercred;

use super::child::detach;
use super::exit::{self, Exit};
use super::stderr::print_line;

/// How long a node may take until it listens.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait between two attempts to start a node while a command runs or waits.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts nodes, and remembers the one it started.
pub(crate) struct Starter {
    /// Report that a node was started even if standard error is not a terminal.
    verbose: bool,
    started: Option<StartedNode>,
    not_before: Option<Moment>,
}

/// A node that this process started.
struct StartedNode {
    process: Child,
    /// What the node wrote to standard error: a file in memory, because a pipe would end with this
    /// process.
    errors: File,
    /// True once the user was told that it was started.
    told: bool,
}

/// The state of a node that this process started.
enum NodeState {
    /// It has not ended.
    Runs,
    /// It has ended without an error: another node serves, or somebody stopped it.
    Ended,
    /// It ended with this error.
    Failed(String),
}

impl Starter {
    /// A starter that has started nothing yet.
    pub(crate) fn new(verbose: bool) -> Self {
        Self { verbose, started: None, not_before: None }
    }

    /// Start a node at this endpoint, and wait until a node listens there: the one that was
    /// started, or one that another process started at the same time.
    pub(crate) fn start(&mut self, endpoint: &Endpoint) -> Result<Stream, Exit> {
        let begin = Instant::now();
        let mut backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
        loop {
            self.spawn_if_gone().map_err(|why| failed(endpoint, &why))?;
            sleep(backoff.next_delay());
            let error = match endpoint.connect_within(PATIENCE) {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if error.kind() != ErrorKind::ConnectionRefused {
                return Err(failed(endpoint, &error.to_string()));
            }
            if begin.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(failed(endpoint, &format!("it did not listen within {seconds} s")));
            }
        }
    }

    /// Start a node without waiting for it, unless one was started a moment ago. The caller tries
    /// to connect again and again. Returns an error if the last node that was started could not
    /// serve.
    pub(crate) fn start_again(&mut self, endpoint: &Endpoint, now: Moment) -> Result<(), Exit> {
        if self.not_before.is_some_and(|moment| now < moment) {
            return Ok(());
        }
        let spawned = self.spawn_if_gone();
        if !matches!(spawned, Ok(false)) {
            self.not_before = Some(now.after(PAUSE));
        }
        spawned.map(drop).map_err(|why| failed(endpoint, &why))
    }

    /// Start a node unless the last one still runs. Returns true if one was started.
    fn spawn_if_gone(&mut self) -> Result<bool, String> {
        match self.started.as_mut().map(StartedNode::state) {
            Some(NodeState::Runs) => return Ok(false),
            Some(NodeState::Failed(why)) => {
                self.started = None;
                return Err(why);
            }
            Some(NodeState::Ended) | None => {}
        }
        self.started = Some(spawn().map_err(|error| error.to_string())?);
        Ok(true)
    }

    /// A connection was made. If it is to the node that this process started, tell the user. A node
    /// that lost the race against another one is not worth a message.
    pub(crate) fn connected(&mut self, stream: &Stream) {
        let (Stream::Unix(stream), Some(started)) = (stream, &mut self.started) else { return };
        let listens = socket_peercred(stream).map(|peer| peer.pid.as_raw_nonzero().get() as u32);
        let pid = started.process.id();
        let is_ours = listens.is_ok_and(|listens| listens == pid);
        if is_ours && !std::mem::replace(&mut started.told, true) {
            // Otherwise cron would send this line by mail every day.
            if self.verbose || io::stderr().is_terminal() {
                let scope = "its locks are those of this user only";
                print_line(&format!("started a local node (pid {pid}): {scope}"));
            }
        }
    }
}

impl StartedNode {
    fn state(&mut self) -> NodeState {
        match self.process.try_wait() {
            Ok(None) => NodeState::Runs,
            Ok(Some(status)) if status.code().is_some_and(|code| code != 0) => {
                NodeState::Failed(self.last_words())
            }
            _ => NodeState::Ended,
        }
    }

    /// The last line that the node wrote to standard error.
    fn last_words(&mut self) -> String {
        let mut text = Vec::new();
        let _ = self.errors.rewind().and_then(|()| self.errors.read_to_end(&mut text));
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        let line = line.unwrap_or("it ended without a message");
        line.strip_prefix("doorway: ").unwrap_or(line).to_owned()
    }
}

/// Start a node that shares nothing with this process: no terminal, no directory, no descriptors.
fn spawn() -> io::Result<StartedNode> {
    let errors = File::from(memfd_create("errors", MemfdFlags::CLOEXEC)?);
    let mut command = Command::new(env::current_exe()?);
    command.args(["serve", "--local"]).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors.try_clone()?);
    detach(&mut command);
    Ok(StartedNode { process: command.spawn()?, errors, told: false })
}

fn failed(endpoint: &Endpoint, why: &str) -> Exit {
    let text = format!(
        "cannot start a local node at {endpoint}: {why} (`doorway serve --local` shows more)"
    );
    Exit::new(exit::UNAVAILABLE, text)
}

//! Starting a node of this user's own where none is.

use std::env;
use std::io::{self, ErrorKind};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use doorway_client::{Endpoint, Moment, Stream};
use rustix::net::sockopt::socket_peercred;

use super::child::detach;
use super::exit::{self, Exit};
use super::say::say;

/// How long a node may take to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait between two attempts to start one while something else goes on.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts nodes, and remembers the one it started.
#[derive(Default)]
pub(crate) struct Starter {
    started: Option<Child>,
    not_before: Option<Moment>,
}

impl Starter {
    /// Start a node at this endpoint and wait until one listens there: ours, or that of someone
    /// else who did the same at the same moment.
    pub(crate) fn start(&mut self, endpoint: &Endpoint) -> Result<Stream, Exit> {
        let begin = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            if !self.is_running() {
                let started = spawn().map_err(|error| failed(endpoint, &error.to_string()))?;
                self.started = Some(started);
            }
            sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
            let error = match endpoint.connect_within(PATIENCE) {
                Ok(stream) => {
                    self.tell(&stream);
                    return Ok(stream);
                }
                Err(error) => error,
            };
            if error.kind() != ErrorKind::ConnectionRefused {
                return Err(failed(endpoint, &error.to_string()));
            }
            if begin.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(failed(endpoint, &format!("it does not listen after {seconds} s")));
            }
        }
    }

    /// Start a node if none was started just now, without waiting for it.
    pub(crate) fn start_again(&mut self, now: Moment) {
        if self.is_running() || self.not_before.is_some_and(|moment| now < moment) {
            return;
        }
        self.not_before = Some(now.after(PAUSE));
        // Whoever waits for it tries to connect again and again, and says so when it gives up.
        self.started = spawn().ok();
        if let Some(started) = &self.started {
            say(&format!("started a local node (pid {})", started.id()));
        }
    }

    /// Does the one that we started still run? One that lost a race does not.
    fn is_running(&mut self) -> bool {
        let gone = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        self.started.as_mut().is_some_and(|child| !gone(child))
    }

    /// Say so if it is ours that listens.
    fn tell(&self, stream: &Stream) {
        let Stream::Unix(stream) = stream else { return };
        let listens = socket_peercred(stream).map(|peer| peer.pid.as_raw_nonzero().get() as u32);
        if let (Some(started), Ok(pid)) = (&self.started, listens)
            && started.id() == pid
        {
            say(&format!("started a local node (pid {pid})"));
        }
    }
}

/// Start a node that has nothing in common with us: not our terminal, not our directory, not our
/// descriptors.
fn spawn() -> io::Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["serve", "--local"]).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    detach(&mut command);
    command.spawn()
}

fn failed(endpoint: &Endpoint, why: &str) -> Exit {
    let text = format!(
        "cannot start a local node at {endpoint}: {why} (`doorway serve --local` shows what is wrong)"
    );
    Exit::new(exit::UNAVAILABLE, text)
}

//! Clients in processes of their own, which can be killed.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};

use doorway_protocol::Life;

use super::client::Client;

/// The variable that says what a process of these tests does.
const CLIENT: &str = "DOORWAY_TEST_CLIENT";

/// Not a test: this runs in the process that is killed. It holds a lock, and may start a child that
/// inherits its connection.
#[test]
#[ignore = "it is a client, which other tests start as a process"]
fn a_client() {
    let Ok(what) = std::env::var(CLIENT) else { return };
    let [name, lock, ttl_ms, inherited] = what.split('=').collect::<Vec<_>>()[..] else { return };
    let inherited = inherited == "true";
    let mut client = Client::new(name);
    client.open(ttl_ms.parse().unwrap(), Life::Connection { inherited });
    client.acquire(lock);
    let descriptor = client.stream.as_fd().try_clone_to_owned().unwrap();
    let child = inherited.then(|| {
        Command::new("sleep").arg("60").stdin(descriptor).stdout(Stdio::null()).spawn().unwrap()
    });
    println!("\nchild {}", child.map_or(0, |child| child.id()));
    let _ = std::io::stdin().read(&mut [0]);
}

/// A process that does nothing, and is killed when this value is dropped.
pub(crate) struct Sleeper(pub(crate) Child);

impl Sleeper {
    pub(crate) fn start() -> Self {
        Self(Command::new("sleep").arg("60").spawn().expect("there is such a command"))
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A client in a process, and the child that inherited its connection.
pub(crate) struct Holding {
    process: Child,
    child: u32,
}

impl Holding {
    /// Kill the client, not its child.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Kill the child.
    pub(crate) fn kill_child(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        self.child = 0;
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.kill();
        self.kill_child();
    }
}

/// A process that holds a lock.
pub(crate) fn holding(name: &str, lock: &str, ttl_ms: u32, inherited: bool) -> Holding {
    let mut process = Command::new(std::env::current_exe().expect("the path of this test program"))
        .args(["service::process::a_client", "--exact", "--ignored", "--nocapture"])
        .env(CLIENT, format!("{name}={lock}={ttl_ms}={inherited}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cannot start the client process");
    let lines =
        BufReader::new(process.stdout.take().expect("its standard output is a pipe")).lines();
    let child =
        lines.map(Result::unwrap).find_map(|line| line.strip_prefix("child ")?.parse().ok());
    Holding {
        process,
        child: child.expect("the client process ended before it named its child: see its output"),
    }
}

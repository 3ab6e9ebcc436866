//! A server that runs as long as it is needed.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::Scratch;

/// A server in a directory of its own. Both are removed when this value is dropped.
pub(crate) struct Server {
    child: Child,
    address: String,
    socket: Option<String>,
    _directory: Scratch,
}

impl Server {
    pub(crate) fn start(
        command: &mut Command,
        address: String,
        directory: Scratch,
    ) -> Result<Self, String> {
        let command = command.current_dir(directory.path());
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("it does not start: {error}"))?;
        Ok(Self { child, address, socket: None, _directory: directory })
    }

    /// The server also listens at this Unix socket.
    pub(crate) fn with_socket(mut self, path: &Path) -> Self {
        self.socket = Some(path.display().to_string());
        self
    }

    /// Where clients find its Unix socket, or its only address.
    #[allow(dead_code, reason = "not every benchmark compares Unix sockets")]
    pub(crate) fn socket(&self) -> &str {
        self.socket.as_ref().unwrap_or(&self.address)
    }

    /// Where its clients find it.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // For all of these servers this signal means: stop at once, in order.
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        let _ = self.child.wait();
    }
}

/// An address that is free now.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Is there a program of this name?
pub(crate) fn installed(program: &str) -> Result<(), String> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|path| path.join(program).is_file());
    found.then_some(()).ok_or_else(|| format!("`{program}` is not installed"))
}

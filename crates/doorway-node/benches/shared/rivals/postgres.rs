//! Advisory locks of a `PostgreSQL` session, by prepared statements.

use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::Rival;
use super::server::{Server, free_address};
use super::wire::{Wire, connect};
use crate::common::Scratch;
use crate::shared::pin::Placement;

/// Where Debian installs the versions of the server.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Protocol 3.0.
const PROTOCOL: u32 = 3 << 16;

pub(crate) struct Postgres {
    stream: Wire,
}

impl Rival for Postgres {
    const NAME: &str = "PostgreSQL, advisory lock";

    fn serve(placement: Placement) -> Result<Server, String> {
        let (directory, address) = (Scratch::new(), free_address());
        let mut command = server(placement, &directory)?;
        let (here, port) = (directory.path(), address.port().to_string());
        let socket = here.join(format!(".s.PGSQL.{port}"));
        command.args(["-p", &port, "-c", "listen_addresses=127.0.0.1", "-c"]);
        command.arg(format!("unix_socket_directories={}", here.display()));
        Ok(Server::start(&mut command, address.to_string(), directory)?.with_socket(&socket))
    }

    async fn connect(address: &str, _number: usize) -> io::Result<Self> {
        let mut client = Self { stream: connect(address).await? };
        let mut hello = PROTOCOL.to_be_bytes().to_vec();
        hello.extend(b"user\0postgres\0database\0postgres\0\0");
        client.call(&with_length(&hello)).await?;
        for (name, function) in [("l", "pg_advisory_lock"), ("u", "pg_advisory_unlock")] {
            let parse = format!("{name}\0select {function}($1::bigint)\0\0\0");
            client.call(&[message(b'P', parse.as_bytes()), message(b'S', b"")].concat()).await?;
        }
        Ok(client)
    }

    async fn lock(&mut self, lock: usize) -> io::Result<()> {
        self.call(&execute("l", lock)).await
    }

    async fn unlock(&mut self, lock: usize) -> io::Result<()> {
        self.call(&execute("u", lock)).await
    }
}

impl Postgres {
    /// Send a message, and read until the server is ready for the next one.
    async fn call(&mut self, request: &[u8]) -> io::Result<()> {
        self.stream.write_all(request).await?;
        let mut body = Vec::new();
        loop {
            let kind = self.stream.read_u8().await?;
            let length = self.stream.read_u32().await?.saturating_sub(4);
            body.resize(length as usize, 0);
            self.stream.read_exact(&mut body).await?;
            match kind {
                b'Z' => return Ok(()),
                b'E' => {
                    let error = String::from_utf8_lossy(&body).replace('\0', " ");
                    return Err(io::Error::other(error));
                }
                _ => {}
            }
        }
    }
}

/// Bind a prepared statement to the number of a lock, execute it, and sync. The number is sent in
/// binary, so the server has no digits to parse.
fn execute(statement: &str, lock: usize) -> Vec<u8> {
    let lock = (lock as u64).to_be_bytes();
    let (one, eight) = (1_u16.to_be_bytes(), 8_u32.to_be_bytes());
    let name = [b"\0", statement.as_bytes(), b"\0"].concat();
    let bind = [&name[..], &one, &one, &one, &eight, &lock, &[0, 0]].concat();
    [message(b'B', &bind), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], with_length(body).as_slice()].concat()
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let length = body.len() as u32 + 4;
    [&length.to_be_bytes(), body].concat()
}

/// Make an empty database in a directory. Returns the server, whose listeners are still to be
/// configured.
pub(crate) fn server(placement: Placement, directory: &Scratch) -> Result<Command, String> {
    let programs = programs().ok_or("`postgres` is not installed")?;
    let data = directory.path().join("data");
    give(directory.path())?;
    let mut init = as_user(Command::new("env"), owner());
    init.arg(programs.join("initdb")).arg("-D").arg(&data);
    init.args(["-U", "postgres", "-A", "trust", "--no-sync", "--locale=C"]);
    let init = init.current_dir(directory.path()).stdin(Stdio::null()).output();
    let init = init.map_err(|error| format!("initdb does not start: {error}"))?;
    if !init.status.success() {
        return Err(format!("initdb: {}", String::from_utf8_lossy(&init.stderr).trim()));
    }
    let mut command = as_user(placement.command(1), owner());
    command.arg(programs.join("postgres")).arg("-D").arg(&data);
    Ok(command)
}

/// Give a file or a directory to the user who runs the server.
pub(crate) fn give(path: &Path) -> Result<(), String> {
    let Some(owner) = owner() else { return Ok(()) };
    chown(path, Some(owner), Some(owner)).map_err(|error| error.to_string())
}

/// The programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).ok()?.flatten();
    let programs = versions.map(|version| version.path().join("bin"));
    programs.filter(|path| path.join("postgres").is_file()).max()
}

/// The user to run the server as, because it refuses to be run as root.
fn owner() -> Option<u32> {
    const NOBODY: u32 = 65534;
    rustix::process::geteuid().is_root().then_some(NOBODY)
}

fn as_user(mut command: Command, user: Option<u32>) -> Command {
    if let Some(user) = user {
        command.arg("setpriv");
        command.args([format!("--reuid={user}"), format!("--regid={user}")]);
        command.arg("--clear-groups");
    }
    command
}

//! Advisory locks of a `PostgreSQL` session, by prepared statements.

use std::io;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::Rival;
use super::server::{Server, free_port};
use crate::common::Scratch;
use crate::pin::Placement;

/// Where Debian puts the versions it has.
const VERSIONS: &str = "/usr/lib/postgresql";

/// Protocol 3.0.
const PROTOCOL: u32 = 3 << 16;

pub(super) struct Postgres {
    stream: BufReader<TcpStream>,
    /// The calls that lock and unlock, as they are written each time.
    lock: Vec<u8>,
    unlock: Vec<u8>,
}

impl Rival for Postgres {
    const NAME: &str = "PostgreSQL, advisory lock";

    fn serve(placement: Placement) -> Result<Server, String> {
        let programs = programs().ok_or("`postgres` is not installed")?;
        let directory = Scratch::new();
        let data = directory.path().join("data");
        let owner = owner();
        if let Some(owner) = owner {
            chown(directory.path(), Some(owner), Some(owner)).map_err(|error| error.to_string())?;
        }
        let mut init = as_user(Command::new("env"), owner);
        init.arg(programs.join("initdb")).arg("-D").arg(&data);
        init.args(["-U", "postgres", "-A", "trust", "--no-sync", "--locale=C"]);
        let init = init.current_dir(directory.path()).stdin(Stdio::null()).output();
        let init = init.map_err(|error| format!("initdb does not start: {error}"))?;
        if !init.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&init.stderr).trim()));
        }
        let port = free_port();
        let mut command = as_user(placement.command(1), owner);
        command.arg(programs.join("postgres")).arg("-D").arg(&data);
        command.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        command.args(["-c", "unix_socket_directories="]);
        Server::start(&mut command, port, directory)
    }

    async fn connect(port: u16, _number: usize) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let (lock, unlock) = (execute("l"), execute("u"));
        let mut client = Self { stream: BufReader::new(stream), lock, unlock };
        let mut hello = PROTOCOL.to_be_bytes().to_vec();
        hello.extend(b"user\0postgres\0database\0postgres\0\0");
        client.call(&with_length(&hello)).await?;
        for (name, function) in [("l", "pg_advisory_lock"), ("u", "pg_advisory_unlock")] {
            let parse = format!("{name}\0select {function}(42)\0\0\0");
            client.call(&[message(b'P', parse.as_bytes()), message(b'S', b"")].concat()).await?;
        }
        Ok(client)
    }

    async fn lock(&mut self) -> io::Result<()> {
        let lock = std::mem::take(&mut self.lock);
        self.call(&lock).await?;
        self.lock = lock;
        Ok(())
    }

    async fn unlock(&mut self) -> io::Result<()> {
        let unlock = std::mem::take(&mut self.unlock);
        self.call(&unlock).await?;
        self.unlock = unlock;
        Ok(())
    }
}

impl Postgres {
    /// Say something, and read until the server is ready for more.
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

/// Bind a prepared statement to no parameters, execute it, and ask for the end of it.
fn execute(statement: &str) -> Vec<u8> {
    let bind = [b"\0", statement.as_bytes(), b"\0\0\0\0\0\0\0"].concat();
    [message(b'B', &bind), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], with_length(body).as_slice()].concat()
}

fn with_length(body: &[u8]) -> Vec<u8> {
    let length = body.len() as u32 + 4;
    [&length.to_be_bytes(), body].concat()
}

/// The programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).ok()?.flatten();
    let programs = versions.map(|version| version.path().join("bin"));
    programs.filter(|path| path.join("postgres").is_file()).max()
}

/// As whom to run the server, which refuses to be run as root.
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

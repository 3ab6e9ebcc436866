//! Redis: the usual recipe of a token that only its owner deletes, with waiting by polling.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

use super::client::Rival;
use super::server::{Server, free_address, installed};
use super::wire::{Wire, connect};
use crate::common::Scratch;
use crate::shared::pin::Placement;

/// Deletes the lock if it still has the caller's token.
const RELEASE: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) \
                       else return 0 end";

/// How long a waiting client sleeps before it asks again.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Redis {
    stream: Wire,
    token: String,
    release: String,
}

impl Rival for Redis {
    const NAME: &str = "Redis, SET NX every ms";

    fn serve(placement: Placement) -> Result<Server, String> {
        installed("redis-server")?;
        let (address, directory) = (free_address(), Scratch::new());
        let socket = directory.path().join("socket");
        let mut command = placement.command(1);
        command.args(["redis-server", "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no", "--port", &address.port().to_string()]);
        command.arg("--unixsocket").arg(&socket);
        Ok(Server::start(&mut command, address.to_string(), directory)?.with_socket(&socket))
    }

    async fn connect(address: &str, number: usize) -> io::Result<Self> {
        let (stream, token) = (connect(address).await?, format!("client-{number}"));
        let mut client = Self { stream, token, release: String::new() };
        let loaded = client.call(&["SCRIPT", "LOAD", RELEASE]).await?;
        client.release = loaded.ok_or(io::ErrorKind::InvalidData)?;
        Ok(client)
    }

    async fn lock(&mut self, lock: usize) -> io::Result<()> {
        let (lock, token) = (format!("orders/{lock}"), self.token.clone());
        while self.call(&["SET", &lock, &token, "NX", "PX", "30000"]).await?.is_none() {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    async fn unlock(&mut self, lock: usize) -> io::Result<()> {
        let (release, token) = (self.release.clone(), self.token.clone());
        self.call(&["EVALSHA", &release, "1", &format!("orders/{lock}"), &token]).await.map(drop)
    }
}

impl Redis {
    /// Send a command. Returns the answer, unless it is nil.
    async fn call(&mut self, words: &[&str]) -> io::Result<Option<String>> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.extend(["$", &word.len().to_string(), "\r\n", word, "\r\n"]);
        }
        self.stream.write_all(request.as_bytes()).await?;
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        let line = line.trim_end();
        match line.split_at_checked(1) {
            Some(("+" | ":", answer)) => Ok(Some(answer.to_owned())),
            Some(("$", "-1")) => Ok(None),
            Some(("$", length)) => {
                let length: usize = length.parse().map_err(io::Error::other)?;
                let mut answer = vec![0; length + 2];
                self.stream.read_exact(&mut answer).await?;
                answer.truncate(length);
                String::from_utf8(answer).map(Some).map_err(io::Error::other)
            }
            _ => Err(io::Error::other(format!("Redis answers {line:?}"))),
        }
    }
}

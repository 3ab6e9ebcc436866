//! etcd: the lock service of a single member, over its JSON gateway.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::client::Rival;
use super::server::{Server, free_address, installed};
use crate::common::Scratch;
use crate::shared::pin::Placement;

/// The name `orders`, in base64 as the gateway wants it.
const NAME: &str = "b3JkZXJz";

pub(crate) struct Etcd {
    stream: BufReader<TcpStream>,
    lease: Value,
    /// The key of the lock that is held.
    key: Value,
}

impl Rival for Etcd {
    const NAME: &str = "etcd, v3lock";

    fn serve(placement: Placement) -> Result<Server, String> {
        installed("etcd")?;
        let (address, peers, directory) = (free_address(), free_address(), Scratch::new());
        let [client, peer] = [address, peers].map(|address| format!("http://{address}"));
        let mut command = placement.command(1);
        command.args(["etcd", "--name", "default", "--data-dir"]).arg(directory.path());
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("default={peer}")]);
        Server::start(&mut command, address.to_string(), directory)
    }

    async fn connect(address: &str, _number: usize) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (lease, key) = (Value::Null, Value::Null);
        let mut client = Self { stream: BufReader::new(stream), lease, key };
        client.lease = client.call("lease/grant", &json!({ "TTL": 60 })).await?["ID"].take();
        Ok(client)
    }

    /// No benchmark uses more than one of its locks.
    async fn lock(&mut self, _lock: usize) -> io::Result<()> {
        let request = json!({ "name": NAME, "lease": self.lease });
        self.key = self.call("lock/lock", &request).await?["key"].take();
        Ok(())
    }

    async fn unlock(&mut self, _lock: usize) -> io::Result<()> {
        let request = json!({ "key": self.key.take() });
        self.call("lock/unlock", &request).await.map(drop)
    }
}

impl Etcd {
    async fn call(&mut self, service: &str, request: &Value) -> io::Result<Value> {
        let body = request.to_string();
        let length = body.len();
        let head = format!("POST /v3/{service} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}");
        self.stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await?;
        let answer = self.answer().await?;
        let answer: Value = serde_json::from_slice(&answer)?;
        match answer.get("error") {
            Some(error) => Err(io::Error::other(format!("etcd answers {error}"))),
            None => Ok(answer),
        }
    }

    /// Read the body of the answer, by its Content-Length.
    async fn answer(&mut self) -> io::Result<Vec<u8>> {
        let mut length = None;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).await?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(number) = line.strip_prefix("content-length:") {
                length = number.trim().parse().ok();
            }
        }
        let mut body = vec![0; length.ok_or_else(|| io::Error::other("an answer without length"))?];
        self.stream.read_exact(&mut body).await?;
        Ok(body)
    }
}

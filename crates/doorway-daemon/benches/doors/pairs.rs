//! Pairs of acquire and release, by each protocol, over any connection. Each client writes and
//! reads its protocol directly, except for our own sessions, which are those of doorway-client.

use std::io;
use std::time::{Duration, Instant};

use doorway_client::{Client, Endpoint, Grant, Options, TlsConfig};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};

use crate::shared::samples::Samples;
use crate::wire::{Way, Wire, connect};
use crate::{LOCK, TOKEN};

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time to live of a lock that has one, in milliseconds.
const TTL: &str = "30000";

/// Deletes the lock if it still has the caller's token.
const RELEASE: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) \
                       else return 0 end";

/// A client with a connection of its own, which takes a lock and gives it back.
pub(crate) trait Pair: Sized {
    async fn open(way: &Way) -> io::Result<Self>;

    async fn lock(&mut self) -> io::Result<()>;

    async fn unlock(&mut self) -> io::Result<()>;
}

/// A client, as soon as the server lets it in.
pub(crate) async fn opened<P: Pair>(way: &Way) -> io::Result<P> {
    let begun = Instant::now();
    loop {
        match P::open(way).await {
            Err(_) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done => return done,
        }
    }
}

/// Measure pairs of one client, as soon as the server lets it in.
pub(crate) async fn measure<P: Pair>(way: &Way, turn: Duration) -> io::Result<Samples> {
    let mut client = opened::<P>(way).await?;
    let mut samples = Samples::default();
    let begun = Instant::now();
    while begun.elapsed() < turn {
        let asked = Instant::now();
        client.lock().await?;
        client.unlock().await?;
        samples.push(asked.elapsed());
    }
    Ok(samples)
}

/// The protocol of Redis: `SET NX PX`, and a script that deletes the key of its owner.
pub(crate) struct Resp {
    wire: Wire,
    release: String,
}

impl Pair for Resp {
    async fn open(way: &Way) -> io::Result<Self> {
        let mut client = Self { wire: connect(way, b"").await?, release: String::new() };
        if let Way::Tls(..) = way {
            // Redis without a password calls this an error; that does not matter.
            let _ = client.call(&["AUTH", "bench", TOKEN]).await;
        }
        let loaded = client.call(&["SCRIPT", "LOAD", RELEASE]).await?;
        client.release = loaded.ok_or(io::ErrorKind::InvalidData)?;
        Ok(client)
    }

    async fn lock(&mut self) -> io::Result<()> {
        let taken = self.call(&["SET", LOCK, "mine", "NX", "PX", TTL]).await?;
        taken.map(drop).ok_or_else(|| io::Error::other("the lock is not free"))
    }

    async fn unlock(&mut self) -> io::Result<()> {
        let release = self.release.clone();
        self.call(&["EVALSHA", &release, "1", LOCK, "mine"]).await.map(drop)
    }
}

impl Resp {
    /// Send a command. Returns the answer, unless it is nil.
    async fn call(&mut self, words: &[&str]) -> io::Result<Option<String>> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.extend(["$", &word.len().to_string(), "\r\n", word, "\r\n"]);
        }
        self.wire.write_all(request.as_bytes()).await?;
        self.wire.flush().await?;
        let mut line = String::new();
        self.wire.read_line(&mut line).await?;
        let line = line.trim_end();
        match line.split_at_checked(1) {
            Some(("+" | ":", answer)) => Ok(Some(answer.to_owned())),
            Some(("$", "-1")) => Ok(None),
            Some(("$", length)) => {
                let length: usize = length.parse().map_err(io::Error::other)?;
                let mut answer = vec![0; length + 2];
                self.wire.read_exact(&mut answer).await?;
                answer.truncate(length);
                String::from_utf8(answer).map(Some).map_err(io::Error::other)
            }
            _ => Err(io::Error::other(format!("the answer is {line:?}"))),
        }
    }
}

/// HTTP with a connection that is kept.
pub(crate) struct Http {
    wire: Wire,
    fence: String,
}

impl Pair for Http {
    async fn open(way: &Way) -> io::Result<Self> {
        Ok(Self { wire: connect(way, b"").await?, fence: String::new() })
    }

    async fn lock(&mut self) -> io::Result<()> {
        let body = self.call("acquire", &format!("{{\"ttl_ms\":{TTL}}}")).await?;
        let fence = body.split("\"fence\":\"").nth(1).and_then(|rest| rest.split('"').next());
        fence.ok_or(io::ErrorKind::InvalidData)?.clone_into(&mut self.fence);
        Ok(())
    }

    async fn unlock(&mut self) -> io::Result<()> {
        let body = format!("{{\"fence\":\"{}\"}}", self.fence);
        self.call("release", &body).await.map(drop)
    }
}

impl Http {
    async fn call(&mut self, what: &str, body: &str) -> io::Result<String> {
        let (lock, length) = (LOCK.replace('/', "%2F"), body.len());
        let request = format!(
            "POST /v1/locks/{lock}/{what} HTTP/1.1\r\nhost: 127.0.0.1\r\n\
             authorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        self.wire.write_all(request.as_bytes()).await?;
        self.wire.flush().await?;
        let (mut length, mut first, mut line) = (0, String::new(), String::new());
        loop {
            line.clear();
            if self.wire.read_line(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if first.is_empty() {
                first.clone_from(&line);
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.wire.read_exact(&mut body).await?;
        let body = String::from_utf8(body).map_err(io::Error::other)?;
        if !first.starts_with("HTTP/1.1 200") {
            return Err(io::Error::other(format!("{first}{body}")));
        }
        Ok(body)
    }
}

/// Our own sessions.
pub(crate) struct Session {
    client: Client,
    grant: Option<Grant>,
}

impl Pair for Session {
    async fn open(way: &Way) -> io::Result<Self> {
        let options = Options::default().label("bench".to_owned());
        let (endpoint, options) = match way {
            Way::Unix(path) => (path.display().to_string(), options),
            Way::Tcp(address) => (format!("tcp://{address}"), options),
            Way::Tls(address, ca) => {
                let ca = std::fs::read(ca)?;
                let tls = TlsConfig::new(&ca, "127.0.0.1").map_err(io::Error::other)?;
                (format!("tcp://{address}"), options.tls(tls).token(TOKEN.to_owned()))
            }
        };
        let endpoint = Endpoint::parse(&endpoint).map_err(io::Error::other)?;
        let client = Client::connect(&endpoint, &options).await.map_err(io::Error::other)?;
        Ok(Self { client, grant: None })
    }

    async fn lock(&mut self) -> io::Result<()> {
        let grant = self.client.acquire(LOCK).enter().await;
        self.grant = Some(grant.map_err(io::Error::other)?);
        Ok(())
    }

    async fn unlock(&mut self) -> io::Result<()> {
        match self.grant.take() {
            Some(grant) => grant.release().await.map_err(io::Error::other),
            None => Err(io::Error::other("nothing is held")),
        }
    }
}

/// Advisory locks of `PostgreSQL`, by prepared statements.
pub(crate) struct Postgres(Wire);

/// Protocol 3.0.
const PROTOCOL: u32 = 3 << 16;

/// The request for TLS: its length, and a number that stands for it.
const WITH_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

impl Pair for Postgres {
    async fn open(way: &Way) -> io::Result<Self> {
        let mut client = Self(connect(way, &WITH_TLS).await?);
        let mut hello = PROTOCOL.to_be_bytes().to_vec();
        hello.extend(b"user\0postgres\0database\0postgres\0\0");
        client.call(&with_length(&hello)).await?;
        for (name, function) in [("l", "pg_advisory_lock"), ("u", "pg_advisory_unlock")] {
            let parse = format!("{name}\0select {function}($1::bigint)\0\0\0");
            client.call(&[message(b'P', parse.as_bytes()), message(b'S', b"")].concat()).await?;
        }
        Ok(client)
    }

    async fn lock(&mut self) -> io::Result<()> {
        self.call(&execute("l")).await
    }

    async fn unlock(&mut self) -> io::Result<()> {
        self.call(&execute("u")).await
    }
}

impl Postgres {
    /// Send a message, and read until the server is ready for the next one.
    async fn call(&mut self, request: &[u8]) -> io::Result<()> {
        self.0.write_all(request).await?;
        self.0.flush().await?;
        let mut body = Vec::new();
        loop {
            let kind = self.0.read_u8().await?;
            let length = self.0.read_u32().await?.saturating_sub(4);
            body.resize(length as usize, 0);
            self.0.read_exact(&mut body).await?;
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

/// Bind a prepared statement to the number of the lock, in binary, execute it, and sync.
fn execute(statement: &str) -> Vec<u8> {
    let lock = 1_u64.to_be_bytes();
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

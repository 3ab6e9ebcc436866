//! One connection of a Redis client.
//!
//! Requests are answered one after the other, in their order. While one is being answered, the
//! connection is watched: if the client disconnects, its request is withdrawn. While a client does
//! not read its replies, nothing more is read from that client.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use doorway_protocol::Refusal;
use doorway_sessions::principal::Principal;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, sleep_until, timeout};

use super::command::{Command, Credentials, Hello, command};
use super::locks::Locks;
use super::resp::{self, FRAME, MostBytes, Reply, RequestReader, Version};
use super::{LAST_WORDS, RedisContext, refuse};
use crate::listen::BufferedStream;
use crate::log_limit::LogLimit;
use crate::native::HELLO;
use crate::service::{OpenConnection, Peer};

/// How long the rest of a request may take to arrive.
const REST: Duration = Duration::from_secs(30);

/// How long a client may take to read its replies.
const UNREAD: Duration = Duration::from_secs(10);

/// How many bytes are read at a time.
const CHUNK: usize = 2048;

/// With more bytes of replies than this, they are written before more requests are answered.
const ENOUGH: usize = 1 << 14;

/// How many requests are answered before other connections get a turn.
const TURN: usize = 64;

/// The name and the version that Redis clients are told. Some of them look for features of Redis
/// that this version has.
const REDIS: &str = "7.0.0";

static TROUBLE: LogLimit = LogLimit::new();

/// Serve a connection.
pub(super) async fn serve(shared: Arc<RedisContext>, mut stream: BufferedStream, peer: Peer) {
    let connected = match stream.entry() {
        Some(Ok(connected)) => connected,
        Some(Err(turned)) => return refuse(stream, &turned.refusal.text).await,
        None => return,
    };
    let Peer { principal, remote, from, process, passed } = peer;
    drop((process, passed)); // They are not needed here, and hold descriptors.
    if !remote && principal.is_none() {
        return refuse(stream, "this node serves only the user who runs it").await;
    }
    let outbox = Arc::clone(&connected.outbox);
    let mut client = Client {
        shared,
        connected,
        remote,
        from,
        database: 0,
        version: Version::default(),
        ends: false,
    };
    if let Some(principal) = principal
        && let Err(refusal) = client.belongs(principal)
    {
        return refuse(stream, &refusal.text).await;
    }
    let reader = RequestReader::default();
    let mut wire = Wire { stream, buffer: Vec::new(), reader, replies: Vec::new() };
    let ended = tokio::select! {
        biased;
        () = outbox.closed() => Ok(()),
        ended = wire.converse(&mut client) => ended,
    };
    if let Err(why) = ended {
        TROUBLE.then(|| tracing::debug!("a connection of a Redis client ended: {why}"));
    }
    let _ = timeout(LAST_WORDS, wire.stream.shutdown()).await;
}

/// The bytes of a connection.
struct Wire<S> {
    stream: S,
    /// What was read and has not been answered.
    buffer: Vec<u8>,
    /// How far the first request in the buffer has been read.
    reader: RequestReader,
    /// What has not been written.
    replies: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Answer requests until one side ends the connection. An error says why the node does so.
    async fn converse(&mut self, client: &mut Client) -> Result<(), String> {
        let greeted = Instant::now() + HELLO;
        loop {
            let more = self.answer_some(client).await;
            self.write().await?;
            match more {
                Ok(_) if client.ends => return Ok(()),
                Ok(true) => {
                    tokio::task::yield_now().await;
                    continue;
                }
                Ok(false) => {}
                Err(why) => return why.map_or(Ok(()), Err),
            }
            if self.buffer.is_empty() {
                self.buffer.shrink_to(CHUNK);
            }
            let deadline = if !client.is_known() {
                Some(greeted)
            } else if self.buffer.is_empty() {
                None // A connection of a known client may be idle for as long as it likes.
            } else {
                Some(Instant::now() + REST)
            };
            let late = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let (before, most) = (self.buffer.len(), client.most_bytes());
            // Bytes that arrive one at a time do not extend the time of a request.
            let whole = async {
                while self.read().await {
                    if before == 0 || self.reader.read(&self.buffer, most) != Ok(false) {
                        return true;
                    }
                }
                false
            };
            tokio::select! {
                read = whole => if !read { return Ok(()) },
                () = late => {
                    let text = if client.is_known() {
                        "the rest of the request did not arrive in time"
                    } else {
                        "the client did not prove who it is in time"
                    };
                    return self.give_up(client, text).await;
                }
            }
        }
    }

    /// Answer whole requests. True if there may be more of them. An error ends the connection, with
    /// its reason, or without one if the client has gone.
    async fn answer_some(&mut self, client: &mut Client) -> Result<bool, Option<String>> {
        for _ in 0..TURN {
            let request = match self.reader.read(&self.buffer, client.most_bytes()) {
                Ok(true) => self.reader.take(&self.buffer),
                Ok(false) => return Ok(false),
                Err(why) => {
                    let why = format!("Protocol error: {why}");
                    resp::write(&Reply::error(&why), client.version, &mut self.replies);
                    return Err(Some(why));
                }
            };
            self.buffer.drain(..request.bytes);
            let reply = {
                let mut answering = pin!(client.answer(request.arguments));
                loop {
                    let room = self.buffer.len() < FRAME;
                    tokio::select! {
                        biased;
                        reply = &mut answering => break reply,
                        there = read(&mut self.stream, &mut self.buffer), if room => {
                            if !there {
                                return Err(None);
                            }
                        }
                    }
                }
            };
            resp::write(&reply, client.version, &mut self.replies);
            if client.ends || self.replies.len() > ENOUGH {
                break;
            }
        }
        Ok(true)
    }

    async fn read(&mut self) -> bool {
        read(&mut self.stream, &mut self.buffer).await
    }

    async fn write(&mut self) -> Result<(), String> {
        if self.replies.is_empty() {
            return Ok(());
        }
        let written = async {
            self.stream.write_all(&self.replies).await?;
            self.stream.flush().await
        };
        match timeout(UNREAD, written).await {
            Ok(Ok(())) => {
                self.replies.clear();
                self.replies.shrink_to(ENOUGH);
                Ok(())
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the client does not read its replies".to_owned()),
        }
    }

    /// Tell the client why its connection ends.
    async fn give_up(&mut self, client: &Client, text: &str) -> Result<(), String> {
        resp::write(&Reply::error(text), client.version, &mut self.replies);
        self.write().await?;
        Err(text.to_owned())
    }
}

/// Read some bytes. False if the connection has ended.
async fn read(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> bool {
    buffer.reserve(CHUNK);
    matches!(stream.read_buf(buffer).await, Ok(1..))
}

/// The client of a connection.
struct Client {
    shared: Arc<RedisContext>,
    connected: OpenConnection,
    remote: bool,
    from: Option<IpAddr>,
    database: u32,
    version: Version,
    /// The connection ends after the reply.
    ends: bool,
}

impl Client {
    /// Whether the client has proved who it is.
    fn is_known(&self) -> bool {
        self.connected.principal().is_some()
    }

    /// How many bytes a request of it may have.
    fn most_bytes(&self) -> MostBytes {
        if self.is_known() { MostBytes::Known } else { MostBytes::Unknown }
    }

    fn belongs(&self, principal: Principal) -> Result<(), Refusal> {
        self.connected.belongs(&Arc::new(principal))
    }

    async fn answer(&mut self, arguments: Vec<Vec<u8>>) -> Reply {
        let answered = match command(arguments) {
            Ok(command) => self.carry_out(command).await,
            Err(why) => Err(Reply::error(why)),
        };
        answered.unwrap_or_else(|error| error)
    }

    async fn carry_out(&mut self, command: Command) -> Result<Reply, Reply> {
        match command {
            Command::Quit => {
                self.ends = true;
                return Ok(Reply::OK);
            }
            Command::Hello(hello) => return self.hello(&hello),
            Command::Auth(credentials) => {
                return self.authenticate(&credentials).map(|()| Reply::OK);
            }
            _ => {}
        }
        // The settings may have been reloaded since the client proved who it is.
        let Some(principal) = self.connected.principal() else { return Err(unknown()) };
        let locks = Locks {
            service: &self.shared.service,
            principal,
            remote: self.remote,
            from: self.from,
            database: self.database,
            redlock: self.shared.redlock.as_ref(),
        };
        Ok(match command {
            Command::Ping(None) => Reply::Simple("PONG"),
            Command::Ping(Some(text)) | Command::Echo(text) => Reply::Bulk(text),
            Command::Select(database) => {
                self.database = database;
                Reply::OK
            }
            Command::ClientId => Reply::Integer(self.id()),
            Command::Info => Reply::bulk(self.info()),
            Command::Commands => Reply::Array(Vec::new()),
            Command::CountCommands => Reply::Integer(0),
            Command::ScriptLoad(text) => {
                let (hash, _) = self.shared.scripts.learn(&text).ok_or_else(not_a_lock_script)?;
                Reply::bulk(hash)
            }
            Command::ScriptExists(hashes) => {
                let known = |hash: &Vec<u8>| self.shared.scripts.find(hash).is_some();
                Reply::Array(hashes.iter().map(|hash| Reply::Integer(known(hash).into())).collect())
            }
            Command::Eval(text, parameters) => {
                let (_, shape) = self.shared.scripts.learn(&text).ok_or_else(not_a_lock_script)?;
                return locks.run(shape, &parameters).await;
            }
            Command::EvalSha(hash, parameters) => {
                let Some(shape) = self.shared.scripts.find(&hash) else {
                    let text = "NOSCRIPT No matching script. Please use EVAL.";
                    return Err(Reply::Error(text.to_owned()));
                };
                return locks.run(shape, &parameters).await;
            }
            Command::Lock(command) => return locks.answer(command).await,
            // The last three are answered above.
            Command::ClientNote
            | Command::ScriptFlush
            | Command::Quit
            | Command::Hello(_)
            | Command::Auth(_) => Reply::OK,
        })
    }

    fn hello(&mut self, hello: &Hello) -> Result<Reply, Reply> {
        let version = match hello.version {
            None => self.version,
            Some(2) => Version::Two,
            Some(3) => Version::Three,
            Some(_) => {
                let text = "NOPROTO unsupported protocol version: write HELLO 2 or HELLO 3";
                return Err(Reply::Error(text.to_owned()));
            }
        };
        if let Some(credentials) = &hello.credentials {
            self.authenticate(credentials)?;
        }
        if !self.is_known() {
            return Err(unknown());
        }
        self.version = version;
        let number = if version == Version::Three { 3 } else { 2 };
        Ok(Reply::Map(vec![
            ("server", Reply::bulk("doorway")),
            ("version", Reply::bulk(REDIS)),
            ("proto", Reply::Integer(number)),
            ("id", Reply::Integer(self.id())),
            ("mode", Reply::bulk("standalone")),
            ("role", Reply::bulk("master")),
            ("modules", Reply::Array(Vec::new())),
        ]))
    }

    /// Find out who the client is by its token. A wrong one ends the connection, so that tokens
    /// cannot be tried at leisure.
    fn authenticate(&mut self, credentials: &Credentials) -> Result<(), Reply> {
        if !self.remote {
            return Ok(()); // The system has said who it is.
        }
        let Credentials { user, token } = credentials;
        let principal =
            std::str::from_utf8(token).ok().and_then(|token| self.shared.doors.by_token(token));
        let named = |principal: &Principal| {
            let user = user.as_deref();
            user.is_none_or(|user| {
                principal.name.strip_prefix("client ").map(str::as_bytes) == Some(user)
            })
        };
        let Some(principal) = principal.filter(named) else {
            self.ends = true;
            let text = "WRONGPASS the node does not know this token, or it belongs to another \
                        client: write AUTH token, or AUTH name token with the name of the \
                        [[client]]";
            return Err(Reply::Error(text.to_owned()));
        };
        self.belongs(principal).map_err(|refusal| {
            self.ends = true;
            refusal.into()
        })
    }

    fn id(&self) -> i64 {
        i64::try_from(self.connected.number.0).unwrap_or(i64::MAX)
    }

    /// What clients look at after they have connected.
    fn info(&self) -> String {
        let status = self.shared.service.status();
        format!(
            "# Server\r\nredis_version:{REDIS}\r\nredis_mode:standalone\r\n\
             doorway_version:{}\r\ndoorway_node:{}\r\ndoorway_group:{}\r\nprocess_id:{}\r\n\
             uptime_in_seconds:{}\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Replication\r\n\
             role:master\r\nconnected_slaves:0\r\n",
            status.version,
            status.node,
            status.group,
            status.pid,
            status.up_ms / 1000
        )
    }
}

/// The error of a client that has not proved who it is.
fn unknown() -> Reply {
    let text = "NOAUTH Authentication required: write AUTH token or AUTH name token, with the name \
                and the token of a [[client]], or show a client certificate";
    Reply::Error(text.to_owned())
}

/// The error of a script that Doorway does not know.
fn not_a_lock_script() -> Reply {
    Reply::error(
        "this is not a script that Doorway knows: it runs no Lua, and recognises only the scripts \
         by which lock clients acquire, extend and release; docs/redis.md lists them",
    )
}

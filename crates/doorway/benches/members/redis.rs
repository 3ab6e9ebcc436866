//! Redis with one server that syncs every write to its disk, and the lock that its documentation
//! describes: `SET key value NX PX milliseconds`, and a script that deletes the key of the holder.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::group::Group;
use crate::others::{HOLDER, LockService};
use crate::place::{Process, until};

/// How often a client asks again for a lock that is held.
const RETRY: Duration = Duration::from_millis(10);

/// The script that releases a lock, as the documentation of Redis has it.
const RELEASE: &str = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";

/// A server of Redis, and a client of it.
pub(crate) struct Redis {
    _server: Process,
    address: String,
    client: Connection,
}

impl Redis {
    /// None if Redis is not installed.
    pub(crate) fn start(group: &Group) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = port.local_addr().expect("its number");
        drop(port);
        let directory = group.place.file("redis");
        std::fs::create_dir_all(&directory).expect("a directory");
        let mut server = Command::new("redis-server");
        server.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
        server.args(["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir"]);
        server.arg(directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(server) = Process::try_spawn(&mut server) else {
            eprintln!("redis-server is not installed: it is left out");
            return None;
        };
        let address = address.to_string();
        until("Redis answers", || TcpStream::connect(&address).is_ok());
        let client = Connection::new(&address);
        Some(Self { _server: server, address, client })
    }
}

impl LockService for Redis {
    fn name(&self) -> &'static str {
        "Redis, 1 server"
    }

    fn acquire(&mut self) {
        assert!(self.client.lock("orders", Duration::from_mins(1)), "it is free");
    }

    fn release(&mut self) {
        assert_eq!(self.client.call(&["EVAL", RELEASE, "1", "orders", "me"]), ":1");
    }

    fn next_in(&mut self) -> Duration {
        assert!(Connection::new(&self.address).lock("silent", HOLDER), "it is free");
        let begin = Instant::now();
        while !self.client.lock("silent", Duration::from_mins(1)) {
            sleep(RETRY);
        }
        let time = begin.elapsed();
        self.client.call(&["DEL", "silent"]);
        time
    }
}

struct Connection(BufReader<TcpStream>);

impl Connection {
    fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a server");
        stream.set_nodelay(true).expect("an option");
        Self(BufReader::new(stream))
    }

    /// Try to acquire a lock for a time.
    fn lock(&mut self, name: &str, time: Duration) -> bool {
        let millis = time.as_millis().to_string();
        self.call(&["SET", name, "me", "NX", "PX", &millis]) == "+OK"
    }

    /// The answer to a command, which has one line.
    fn call(&mut self, words: &[&str]) -> String {
        let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let request = format!("*{}\r\n{}", words.len(), words.collect::<String>());
        self.0.get_mut().write_all(request.as_bytes()).expect("a request");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        assert!(!line.starts_with('-'), "{request:?}: {line}");
        line.trim_end().to_owned()
    }
}

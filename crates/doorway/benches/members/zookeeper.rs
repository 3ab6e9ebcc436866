//! ZooKeeper with three members, through its own protocol. A lock is an ephemeral node: the client
//! that creates it is inside, and others watch it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::group::Group;
use crate::others::{HOLDER, LockService};
use crate::place::{Process, until};

/// Where Debian's package `zookeeper` puts its libraries.
const LIBRARIES: &str = "/usr/share/java";

/// Operations of the protocol.
const CREATE: i32 = 1;
const DELETE: i32 = 2;
const EXISTS: i32 = 3;

/// What the protocol answers if a node exists already, and if there is none.
const NODE_EXISTS: i32 = -110;
const NO_NODE: i32 = -101;

/// The number of an answer that tells of a node that was watched.
const WATCHED: i32 = -1;

/// Three members of ZooKeeper, and a client of one of them.
pub(crate) struct ZooKeeper {
    _members: Vec<Process>,
    address: String,
    client: Session,
}

impl ZooKeeper {
    /// None if ZooKeeper or Java is not installed.
    pub(crate) fn start(group: &Group) -> Option<Self> {
        let java = Command::new("java").arg("-version").stderr(Stdio::null()).status();
        let libraries = std::env::var("ZOOKEEPER_LIBRARIES").unwrap_or(LIBRARIES.to_owned());
        let installed = Path::new(&libraries).join("zookeeper.jar").exists();
        if !installed || !java.is_ok_and(|status| status.success()) {
            eprintln!("ZooKeeper is not installed, or has no Java: it is left out");
            return None;
        }
        // All ports are bound before the first one is free again, so that they differ.
        let listeners: Vec<_> =
            (0..9).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let number = |it: &TcpListener| it.local_addr().expect("its number").port();
        let ports: Vec<u16> = listeners.iter().map(number).collect();
        drop(listeners);
        let server = |number: usize| {
            let [peers, elections] = [ports[number + 3], ports[number + 6]];
            format!("server.{number}=127.0.0.1:{peers}:{elections}\n")
        };
        let servers: String = (0..3).map(server).collect();
        let member = |number: usize| {
            let directory = group.place.file(&format!("zookeeper-{number}"));
            fs::create_dir_all(&directory).expect("a directory");
            fs::write(directory.join("myid"), number.to_string()).expect("a file");
            let settings = group.place.file(&format!("zookeeper-{number}.cfg"));
            let (data, port) = (directory.display(), ports[number]);
            // A session may last for two ticks at least.
            let tick = HOLDER.as_millis() / 2;
            let text = format!(
                "dataDir={data}\nclientPort={port}\ntickTime={tick}\ninitLimit=20\nsyncLimit=10\n\
                 admin.enableServer=false\n{servers}"
            );
            fs::write(&settings, text).expect("a file");
            let mut java = Command::new("java");
            java.args(["-Xmx256m", "-cp", &format!("{libraries}/*")]);
            java.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(settings);
            Process::spawn(java.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
        };
        let members = (0..3).map(member).collect();
        let address = format!("127.0.0.1:{}", ports[0]);
        let mut client = None;
        until("ZooKeeper answers", || {
            client = Session::open(&address, Duration::from_mins(1));
            client.is_some()
        });
        Some(Self { _members: members, address, client: client.expect("a session") })
    }
}

impl LockService for ZooKeeper {
    fn name(&self) -> &'static str {
        "ZooKeeper, 3 members"
    }

    fn acquire(&mut self) {
        assert!(self.client.create("/orders"), "it is free");
    }

    fn release(&mut self) {
        self.client.delete("/orders");
    }

    fn next_in(&mut self) -> Duration {
        let mut holder = Session::open(&self.address, HOLDER).expect("a session");
        assert!(holder.create("/silent"), "it is free");
        let begin = Instant::now();
        // The session of the other client may have ended while other services were measured.
        let mut waiter = Session::open(&self.address, Duration::from_mins(1)).expect("a session");
        while !waiter.create("/silent") {
            if waiter.watch("/silent") {
                waiter.wait_for_change();
            }
        }
        let time = begin.elapsed();
        waiter.delete("/silent");
        drop(holder);
        time
    }
}

/// A session of a client. It sends nothing by itself.
struct Session {
    stream: TcpStream,
    last: i32,
    /// How many nodes that were watched have changed.
    changes: usize,
}

impl Session {
    /// Open a session that ends after this time of silence. None if the server is not ready.
    fn open(address: &str, timeout: Duration) -> Option<Self> {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        // A server without a majority does not answer.
        stream.set_read_timeout(Some(HOLDER * 5)).ok()?;
        let mut hello = Vec::new();
        hello.extend(0_i32.to_be_bytes()); // The version of the protocol.
        hello.extend(0_i64.to_be_bytes()); // The last change that was seen.
        hello.extend((timeout.as_millis() as i32).to_be_bytes());
        hello.extend(0_i64.to_be_bytes()); // A new session.
        put_bytes(&mut hello, &[0; 16]);
        hello.push(0); // No server that cannot write.
        send(&mut stream, &hello).ok()?;
        receive(&mut stream).ok()?;
        Some(Self { stream, last: 0, changes: 0 })
    }

    /// Create an ephemeral node. False if there is one.
    fn create(&mut self, path: &str) -> bool {
        let mut body = Vec::new();
        put_bytes(&mut body, path.as_bytes());
        put_bytes(&mut body, b"me");
        body.extend(1_i32.to_be_bytes()); // One entry: everybody may do everything.
        body.extend(31_i32.to_be_bytes());
        put_bytes(&mut body, b"world");
        put_bytes(&mut body, b"anyone");
        body.extend(1_i32.to_be_bytes()); // Ephemeral.
        match self.call(CREATE, &body) {
            0 => true,
            NODE_EXISTS => false,
            error => panic!("ZooKeeper answers {error}"),
        }
    }

    fn delete(&mut self, path: &str) {
        let mut body = Vec::new();
        put_bytes(&mut body, path.as_bytes());
        body.extend((-1_i32).to_be_bytes()); // Any version.
        assert_eq!(self.call(DELETE, &body), 0, "the node is deleted");
    }

    /// Watch a node. False if there is none.
    fn watch(&mut self, path: &str) -> bool {
        let mut body = Vec::new();
        put_bytes(&mut body, path.as_bytes());
        body.push(1);
        match self.call(EXISTS, &body) {
            0 => true,
            NO_NODE => false,
            error => panic!("ZooKeeper answers {error}"),
        }
    }

    /// Wait until a node that was watched has changed.
    fn wait_for_change(&mut self) {
        while self.changes == 0 {
            let answer = receive(&mut self.stream).expect("an answer");
            assert_eq!(number(&answer), WATCHED, "nothing else is asked");
            self.changes += 1;
        }
        self.changes -= 1;
    }

    /// The error of a request, or 0.
    fn call(&mut self, operation: i32, body: &[u8]) -> i32 {
        self.last += 1;
        let mut request = Vec::new();
        request.extend(self.last.to_be_bytes());
        request.extend(operation.to_be_bytes());
        request.extend(body);
        send(&mut self.stream, &request).expect("a request");
        loop {
            let answer = receive(&mut self.stream).expect("an answer");
            if number(&answer) == WATCHED {
                self.changes += 1;
                continue;
            }
            assert_eq!(number(&answer), self.last, "answers are in order");
            return number(&answer[12..]);
        }
    }
}

fn number(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes[..4].try_into().expect("four bytes"))
}

fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u32).to_be_bytes());
    to.extend(bytes);
}

fn send(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut frame = Vec::new();
    put_bytes(&mut frame, bytes);
    stream.write_all(&frame)
}

fn receive(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut bytes = vec![0; number(&length) as usize];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

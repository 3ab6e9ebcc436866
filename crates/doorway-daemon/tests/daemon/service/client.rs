//! A client that sends raw frames.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use doorway_protocol::{
    Ask, Claim, ClientInfo, Fence, Frames, Greeting, Hello, Life, MAGIC, Mode, Name, Opening,
    Reply, Request, VERSIONS, Wait, Welcome, put,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::server::{Server, connect};

/// The TTL that asks for none.
pub(crate) const NO_TTL: u32 = u32::MAX;

pub(crate) const CONNECTION: Life = Life::Connection { inherited: false };

impl Server {
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.name)
    }

    /// A client with a session of ten seconds.
    pub(crate) fn session(&self) -> Client {
        let mut client = self.client();
        client.open(10_000, CONNECTION);
        client
    }
}

/// The bytes of a hello.
fn hello(versions: (u16, u16), opening: Opening) -> Vec<u8> {
    let who = ClientInfo { label: "test".into(), host: "here".into(), pid: std::process::id() };
    let hello = Hello { versions, who, token: None, opening };
    let mut bytes = MAGIC.to_vec();
    put(&hello, &mut bytes);
    bytes
}

/// A descriptor of a process.
pub(crate) fn descriptor(pid: u32) -> OwnedFd {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a number");
    pidfd_open(pid, PidfdFlags::empty()).expect("the process exists")
}

/// A connection that sends exactly what a test wants.
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    frames: Frames,
    last: u64,
}

impl Client {
    pub(crate) fn new(name: &str) -> Self {
        let stream = connect(name).expect("somebody listens");
        Self { stream, frames: Frames::default(), last: 0 }
    }

    pub(crate) fn hello(&mut self, opening: Opening) -> Greeting {
        self.say_hello(opening);
        self.frame().expect("a greeting")
    }

    /// Send a hello without waiting for the greeting.
    pub(crate) fn say_hello(&mut self, opening: Opening) {
        self.say_hello_of(VERSIONS, opening);
    }

    /// Send the hello of a client that speaks these versions, without waiting for the greeting.
    pub(crate) fn say_hello_of(&mut self, versions: (u16, u16), opening: Opening) {
        self.stream.write_all(&hello(versions, opening)).expect("the connection is there");
    }

    /// Open a session. If it is to live with a process, a descriptor of the process is passed.
    pub(crate) fn open(&mut self, ttl_ms: u32, life: Life) -> Welcome {
        let greeting = match life {
            Life::Process { pid } => self.hello_with(ttl_ms, pid, descriptor(pid).as_fd()),
            Life::Connection { .. } | Life::Lease => self.hello(Opening::New { ttl_ms, life }),
        };
        greeting.expect("a session")
    }

    /// Open a session that lives with a process, and pass a descriptor with the hello.
    pub(crate) fn hello_with(&mut self, ttl_ms: u32, pid: u32, passed: BorrowedFd<'_>) -> Greeting {
        let bytes = hello(VERSIONS, Opening::New { ttl_ms, life: Life::Process { pid } });
        let passed = [passed];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
        // The descriptor comes with the first bytes, of whatever length.
        let (first, rest) = bytes.split_at(3);
        let sent = sendmsg(&self.stream, &[IoSlice::new(first)], &mut control, SendFlags::empty());
        assert_eq!(sent, Ok(first.len()));
        self.stream.write_all(rest).expect("the connection is there");
        self.frame().expect("a greeting")
    }

    pub(crate) fn visit(&mut self) {
        self.hello(Opening::Visit).expect("a welcome");
    }

    /// The next frame; `None` if the connection has ended.
    pub(crate) fn frame<T: serde::de::DeserializeOwned>(&mut self) -> Option<T> {
        loop {
            if let Some(value) = self.frames.take().expect("whole frames") {
                return Some(value);
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.frames.space().extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    pub(crate) fn reply(&mut self) -> Reply {
        self.frame().expect("a reply")
    }

    pub(crate) fn send(&mut self, request: &Request) {
        let mut bytes = Vec::new();
        put(request, &mut bytes);
        self.stream.write_all(&bytes).expect("the connection is there");
    }

    /// Continue the request numbers of another connection.
    pub(crate) fn goes_on_from(&mut self, other: &Self) {
        self.last = other.last;
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Send a request without waiting for the reply.
    pub(crate) fn ask(&mut self, lock: &str, wait: Wait) -> u64 {
        self.ask_for(ask(lock, wait))
    }

    pub(crate) fn ask_for(&mut self, ask: Ask) -> u64 {
        let number = self.number();
        self.send(&Request::Acquire(number, ask));
        number
    }

    pub(crate) fn acquire(&mut self, lock: &str) -> Fence {
        let number = self.ask(lock, Wait::Forever);
        self.granted(number)
    }

    pub(crate) fn granted(&mut self, number: u64) -> Fence {
        match self.reply() {
            Reply::Granted(of, fence) if of == number => fence,
            other => panic!("not granted: {other:?}"),
        }
    }

    pub(crate) fn refused(&mut self, number: u64) -> doorway_protocol::Refusal {
        match self.reply() {
            Reply::Refused(of, refusal) if of == number => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    pub(crate) fn release(&mut self, lock: &str, fence: Fence) -> bool {
        let number = self.number();
        self.send(&Request::Release(number, name(lock), fence));
        match self.reply() {
            Reply::Released(of, held) if of == number => held,
            other => panic!("not released: {other:?}"),
        }
    }
}

pub(crate) fn claim(lock: &str, fence: Fence) -> Claim {
    Claim { lock: name(lock), mode: Mode::Exclusive, permits: None, fence, request: 1 }
}

/// Resume a session with a time to live of ten seconds.
pub(crate) fn resume(welcome: &Welcome, held: Vec<Claim>) -> Opening {
    let (session, secret) = welcome.session.expect("a session");
    Opening::Resume {
        node: None,
        session,
        secret,
        ttl_ms: 10_000,
        life: CONNECTION,
        held,
        waiting: Vec::new(),
        more: false,
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a good name")
}

pub(crate) fn ask(lock: &str, wait: Wait) -> Ask {
    Ask { lock: name(lock), mode: Mode::Exclusive, permits: None, wait }
}

//! A connection that costs little, and does what a test wants.

#![expect(clippy::unwrap_used, reason = "a connection that fails ends the test")]

use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};

use doorway_protocol::{
    ClientInfo, Frames, Greeting, Hello, Life, MAGIC, Opening, Request, VERSIONS, put,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::common::{PATIENCE, skip};

/// How many connections this process may open, up to those that are wanted; the limit is raised as
/// far as it can be.
pub(crate) fn connections(wanted: usize) -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let possible = usize::try_from(allowed).unwrap_or(usize::MAX).saturating_sub(500);
    if possible < wanted {
        skip(&format!("{allowed} open files allow {possible} connections instead of {wanted}"));
    }
    possible.min(wanted)
}

/// A connection to a Unix socket that is not a file.
pub(crate) fn connect(socket: &str) -> UnixStream {
    let address = SocketAddr::from_abstract_name(socket.trim_start_matches('@')).unwrap();
    let stream = UnixStream::connect_addr(&address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A connection with a session.
pub(crate) struct Raw {
    stream: UnixStream,
    /// What could not be written at once.
    rest: Vec<u8>,
}

impl Raw {
    pub(crate) fn session(socket: &str, ttl_ms: u32) -> Self {
        let mut stream = connect(socket);
        let life = Life::Connection { inherited: false };
        let opening = Opening::New { ttl_ms, life };
        let hello = Hello { versions: VERSIONS, who: ClientInfo::default(), token: None, opening };
        let mut bytes = MAGIC.to_vec();
        put(&hello, &mut bytes);
        stream.write_all(&bytes).unwrap();
        let mut frames = Frames::default();
        while frames.take::<Greeting>().unwrap().map(Result::unwrap).is_none() {
            let mut bytes = [0; 512];
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0, "the connection ended");
            frames.feed(&bytes[..count]);
        }
        Self { stream, rest: Vec::new() }
    }

    /// A connection that begins with these bytes.
    pub(crate) fn begin(socket: &str, bytes: &[u8]) -> Self {
        let mut stream = connect(socket);
        stream.write_all(bytes).unwrap();
        Self { stream, rest: Vec::new() }
    }

    /// Ask a thousand questions, as far as they are taken, and read no answer.
    pub(crate) fn ask_much(&mut self) {
        let mut questions = Vec::new();
        for number in 0..1000 {
            put(&Request::Status(number), &mut questions);
        }
        self.send_much(&questions);
    }

    /// Send these bytes, as far as they are taken, and read nothing. What was not taken before is
    /// sent first.
    pub(crate) fn send_much(&mut self, bytes: &[u8]) {
        self.stream.set_nonblocking(true).unwrap();
        if self.rest.is_empty() {
            self.rest.extend(bytes);
        }
        while let Ok(count @ 1..) = self.stream.write(&self.rest) {
            self.rest.drain(..count);
        }
    }
}

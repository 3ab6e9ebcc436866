//! A Redis client of a few lines, which shows exactly what the service sends.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use crate::common::daemon::Daemon;
use crate::server::{self, Server};

/// A connection.
pub(crate) struct Raw<S>(BufReader<S>);

impl Raw<UnixStream> {
    /// A connection to the socket of a service in this process.
    pub(crate) fn of(server: &Server) -> Self {
        Self::new(server::connect(&server.name).expect("somebody listens"))
    }

    /// A connection to the socket of a service in a process of its own.
    pub(crate) fn at(daemon: &Daemon) -> Self {
        let name = daemon.socket.trim_start_matches('@');
        Self::new(server::connect(name).expect("somebody listens"))
    }
}

impl<S: Read + Write> Raw<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self(BufReader::new(stream))
    }

    /// Send words and read the reply.
    pub(crate) fn ask(&mut self, words: &[&str]) -> String {
        self.send(&request(words));
        self.reply()
    }

    /// Send a line of words without spaces in them, and read the reply.
    pub(crate) fn line(&mut self, line: &str) -> String {
        self.ask(&line.split(' ').collect::<Vec<_>>())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("it can be written");
        self.0.get_mut().flush().expect("it can be written");
    }

    /// Read a reply: a line as it is, a bulk string as `"text"`, nothing as `nil`, arrays and maps
    /// in brackets. An empty text if the connection has ended.
    pub(crate) fn reply(&mut self) -> String {
        let mut line = String::new();
        if self.0.read_line(&mut line).unwrap_or_default() == 0 {
            return String::new();
        }
        let line = line.strip_suffix("\r\n").expect("a whole line");
        let count = || line[1..].parse::<usize>();
        match line.as_bytes()[0] {
            b'_' => "nil".to_owned(),
            b'$' if line == "$-1" => "nil".to_owned(),
            b'$' => {
                let mut bytes = vec![0; count().expect("a length") + 2];
                self.0.read_exact(&mut bytes).expect("a whole text");
                let text = bytes.strip_suffix(b"\r\n").expect("an end");
                format!("\"{}\"", text.escape_ascii())
            }
            kind @ (b'*' | b'%') => {
                let items = count().expect("a number") * if kind == b'%' { 2 } else { 1 };
                let items: Vec<String> = (0..items).map(|_| self.reply()).collect();
                format!("[{}]", items.join(" "))
            }
            _ => line.to_owned(),
        }
    }

    /// Send words, and check that the reply is an error with all these parts.
    pub(crate) fn refused(&mut self, line: &str, parts: &[&str]) {
        let reply = self.line(line);
        assert!(reply.starts_with('-'), "{line}: {reply}");
        for part in parts {
            assert!(reply.contains(part), "{line}: {reply}");
        }
    }
}

/// A request as bytes.
pub(crate) fn request(words: &[&str]) -> Vec<u8> {
    let head = format!("*{}\r\n", words.len());
    let rest = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    std::iter::once(head).chain(rest).collect::<String>().into_bytes()
}

/// The script that releases a key of its owner, as redlock-py sends it.
pub(crate) const RELEASE: &str = "if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n\
     return redis.call(\"del\",KEYS[1])\nelse\nreturn 0\nend";

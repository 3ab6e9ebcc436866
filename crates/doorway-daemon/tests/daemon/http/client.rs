//! A client over HTTP that sends exactly what a test wants.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use serde_json::{Value, json};

use crate::common::PATIENCE;
use crate::common::settings::settings;
use crate::server::{Server, connect};

impl Server {
    pub(crate) fn new() -> Self {
        Self::start(&settings())
    }

    pub(crate) fn connect(&self) -> UnixStream {
        connect(&self.name).expect("somebody listens")
    }

    /// Send a request, and wait for the response.
    pub(crate) fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        ask(self.connect(), method, path, &[], body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None)
    }

    /// Post to an operation of a lock.
    pub(crate) fn post(&self, lock: &str, what: &str, body: &Value) -> Answer {
        self.send("POST", &format!("/v1/locks/{lock}/{what}"), Some(body))
    }

    /// Acquire a lock, and return its fence.
    pub(crate) fn acquire(&self, lock: &str, body: &Value) -> String {
        let answer = self.post(lock, "acquire", body).expect(200);
        answer["fence"].as_str().expect("a fence is a text").to_owned()
    }

    pub(crate) fn release(&self, lock: &str, fence: &str) -> bool {
        let answer = self.post(lock, "release", &json!({ "fence": fence })).expect(200);
        answer["released"].as_bool().expect("yes or no")
    }

    pub(crate) fn waiting(&self, number: u64) {
        self.until("this number of requests waits", |service| service.status().waiting == number);
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The head, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// Assert the status, and return the JSON body.
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert!(self.head.contains("content-type: application/json"), "{self:?}");
        serde_json::from_str(&self.body).expect("a body of JSON")
    }

    /// Assert that this is a problem of this kind, for this reason.
    pub(crate) fn problem(&self, status: u16, code: &str, text: &str) {
        let body = self.expect(status);
        assert_eq!(body["code"], code, "{self:?}");
        assert!(body["text"].as_str().is_some_and(|told| told.contains(text)), "{self:?}");
    }
}

/// The bytes of a request, after which the connection ends.
pub(crate) fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
    let given = |name: &str| headers.iter().any(|(given, _)| *given == name);
    if !given("host") {
        text += "host: anything\r\n";
    }
    if let Some(body) = body {
        let _ = write!(text, "content-length: {}\r\n", body.len());
        if !given("content-type") {
            text += "content-type: application/json\r\n";
        }
    }
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = write!(text, "{name}: {value}\r\n");
    }
    format!("{text}\r\n{}", body.unwrap_or_default()).into_bytes()
}

pub(crate) fn ask(
    stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Answer {
    let body = body.map(Value::to_string);
    exchange(stream, &request(method, path, headers, body.as_deref()))
}

/// Send bytes, and read everything that comes back.
pub(crate) fn exchange(mut stream: impl Read + Write, bytes: &[u8]) -> Answer {
    // If the request is refused early, the connection may be closed already.
    let _ = stream.write_all(bytes);
    let _ = stream.flush();
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    let text = String::from_utf8(text).expect("a text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Answer {
        status: status.expect("a status"),
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

/// A client that listens to events.
pub(crate) struct Listener<S>(BufReader<S>);

impl<S: Read + Write> Listener<S> {
    /// Listen. No event after this returns is missed.
    pub(crate) fn new(mut stream: S, path: &str, headers: &[(&str, &str)]) -> Self {
        stream.write_all(&request("GET", path, headers, None)).expect("somebody reads");
        let mut listener = Self(BufReader::new(stream));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(listener.0.read_line(&mut head).expect("a line") > 0, "{head}");
        }
        assert!(head.contains("text/event-stream"), "{head}");
        listener
    }

    /// The next event; `None` if there will be no more. The sizes of chunks stand on lines of their
    /// own.
    pub(crate) fn next(&mut self) -> Option<(String, Value)> {
        let (mut kind, began) = (None, Instant::now());
        loop {
            // Heartbeats come too, so a read that returns does not mean that there is an event.
            assert!(began.elapsed() < PATIENCE, "no event");
            let mut line = String::new();
            if self.0.read_line(&mut line).expect("a line") == 0 {
                return None;
            }
            if let Some(name) = line.strip_prefix("event: ") {
                kind = Some(name.trim().to_owned());
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let data = serde_json::from_str(data.trim()).expect("data in JSON");
                return Some((kind.take().expect("the kind comes first"), data));
            }
        }
    }
}

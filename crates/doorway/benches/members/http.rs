//! A client of a JSON interface over HTTP, on one connection that stays open.

use std::io::{BufRead as _, BufReader, Read, Write};

use serde_json::Value;

pub(crate) struct Http<S> {
    stream: BufReader<S>,
}

impl<S: Read + Write> Http<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream: BufReader::new(stream) }
    }

    /// The answer to `POST`. It must be one without an error.
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("a request");
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("an answer");
            assert!(!line.is_empty(), "the connection has ended");
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(number) = line.strip_prefix("content-length:") {
                length = number.trim().parse().expect("a number");
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).expect("an answer");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert!(answer.get("error").or(answer.get("code")).is_none(), "{path}: {answer}");
        answer
    }
}

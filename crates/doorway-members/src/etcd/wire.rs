//! Requests and responses of etcd's JSON gateway.
//!
//! etcd speaks gRPC, and offers all of it as JSON over HTTP too. Keys and values are base64. Whole
//! numbers are strings, and fields that are zero or empty are left out.
//!
//! A response comes from another program, and perhaps from another program than etcd. So nothing in
//! it is believed before it was parsed, and a response that makes no sense is an error with words.

use data_encoding::BASE64;
use serde::de::{self, DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// How much of an unexpected response a message shows, in characters.
const EXCERPT: usize = 120;

/// What a transaction does if its comparison holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Put(String, Vec<u8>),
    Delete(String),
}

/// The body of a request for the value of a key.
pub(super) fn get(key: &str) -> Value {
    json!({ "key": encode(key.as_bytes()) })
}

/// The body of a request for all keys that begin like this.
pub(super) fn get_all(prefix: &str) -> Value {
    let mut request = get(prefix);
    request["range_end"] = encode(&after(prefix)).into();
    request
}

/// The body of a transaction: if `key` was last changed at this revision (0 if it does not exist),
/// do this; otherwise read the key.
pub(super) fn swap(key: &str, revision: u64, ops: &[Op]) -> Value {
    let op = |op: &Op| match op {
        Op::Put(key, value) => {
            json!({ "request_put": { "key": encode(key.as_bytes()), "value": encode(value) } })
        }
        Op::Delete(key) => json!({ "request_delete_range": get(key) }),
    };
    json!({
        "compare": [{
            "target": "MOD",
            "result": "EQUAL",
            "key": encode(key.as_bytes()),
            "mod_revision": revision.to_string(),
        }],
        "success": ops.iter().map(op).collect::<Vec<_>>(),
        "failure": [{ "request_range": get(key) }],
    })
}

/// The body of a request to watch all keys that begin like this, from a revision on.
pub(super) fn watch(prefix: &str, from: u64) -> Value {
    let mut request = get_all(prefix);
    request["start_revision"] = from.to_string().into();
    json!({ "create_request": request })
}

/// The body of a request for a token.
pub(super) fn login(user: &str, password: &str) -> Value {
    json!({ "name": user, "password": password })
}

fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// The first key after all keys that begin like this.
fn after(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}

/// Which etcd answers, and how many changes it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Header {
    #[serde(default, deserialize_with = "number")]
    pub(super) cluster_id: u64,
    #[serde(default, deserialize_with = "number")]
    pub(super) revision: u64,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct KeyValue {
    #[serde(deserialize_with = "text")]
    pub(super) key: String,
    #[serde(default, deserialize_with = "bytes")]
    pub(super) value: Vec<u8>,
    #[serde(default, deserialize_with = "number")]
    pub(super) mod_revision: u64,
}

/// The answer to [`get`] and [`get_all`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Range {
    pub(super) header: Header,
    #[serde(default)]
    pub(super) kvs: Vec<KeyValue>,
}

/// The answer to [`swap`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct SwapAnswer {
    pub(super) header: Header,
    #[serde(default)]
    pub(super) succeeded: bool,
    #[serde(default)]
    responses: Vec<OpAnswer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct OpAnswer {
    #[serde(default)]
    response_range: Option<OpRange>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct OpRange {
    #[serde(default)]
    kvs: Vec<KeyValue>,
}

impl SwapAnswer {
    /// The key as it is, if the comparison did not hold; none if there is no such key.
    pub(super) fn current(self) -> Option<KeyValue> {
        let ranges = self.responses.into_iter().filter_map(|answer| answer.response_range);
        ranges.flat_map(|range| range.kvs).next()
    }
}

/// The answer to [`login`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Token {
    pub(super) token: String,
}

/// The state of one server of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Status {
    #[serde(default, rename = "dbSize", deserialize_with = "number")]
    pub(super) db_size: u64,
    #[serde(default)]
    pub(super) errors: Vec<String>,
}

/// A part of the endless answer to [`watch`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct WatchPart {
    result: Option<WatchAnswer>,
    error: Option<Failure>,
}

/// What a watch tells.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct WatchAnswer {
    pub(super) header: Header,
    #[serde(default)]
    canceled: bool,
    #[serde(default)]
    cancel_reason: String,
    #[serde(default, deserialize_with = "number")]
    compact_revision: u64,
    #[serde(default)]
    pub(super) events: Vec<Event>,
}

/// A change of a key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Event {
    #[serde(default, rename = "type")]
    kind: EventKind,
    pub(super) kv: KeyValue,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum EventKind {
    #[default]
    #[serde(rename = "PUT")]
    Put,
    #[serde(rename = "DELETE")]
    Delete,
}

impl Event {
    /// The change, as a transaction would make it.
    pub(super) fn into_op(self) -> Op {
        let KeyValue { key, value, .. } = self.kv;
        match self.kind {
            EventKind::Put => Op::Put(key, value),
            EventKind::Delete => Op::Delete(key),
        }
    }
}

/// What etcd says when it cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Failure {
    #[serde(default)]
    message: String,
    #[serde(default)]
    error: Value,
}

impl Failure {
    fn text(&self) -> Option<&str> {
        let text = if self.message.is_empty() { self.error.as_str()? } else { &self.message };
        (!text.is_empty()).then_some(text)
    }
}

/// Parse a response. The error says what was expected.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| {
        format!("not an answer of etcd ({error}): {}; check the address", excerpt(body))
    })
}

/// What a response says that has this HTTP status, and not 200.
pub(super) fn failure(status: u16, body: &[u8]) -> String {
    let said: Option<Failure> = serde_json::from_slice(body).ok();
    match said.as_ref().and_then(Failure::text) {
        Some(text) => excerpt(text.as_bytes()),
        None => format!("HTTP {status}: {}", excerpt(body)),
    }
}

/// Parse a line of the answer to [`watch`]. The error says why the watch has ended.
pub(super) fn parse_watch(line: &[u8]) -> Result<WatchAnswer, String> {
    let WatchPart { result, error } = parse(line)?;
    if let Some(text) = error.as_ref().and_then(Failure::text) {
        return Err(excerpt(text.as_bytes()));
    }
    let watched = result.ok_or_else(|| "the watch tells nothing".to_owned())?;
    if watched.compact_revision > 0 {
        return Err("etcd has compacted what was missed".to_owned());
    }
    if watched.canceled {
        let why = excerpt(watched.cancel_reason.as_bytes());
        return Err(format!("etcd has ended the watch: {why}"));
    }
    Ok(watched)
}

/// The beginning of a text, on one line.
fn excerpt(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(4 * EXCERPT)];
    let text = String::from_utf8_lossy(start);
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let shown: String = plain.take(EXCERPT).collect();
    match shown.trim() {
        "" => "an empty answer".to_owned(),
        shown if text.chars().count() > EXCERPT => format!("{shown}..."),
        shown => shown.to_owned(),
    }
}

/// A whole number, which etcd writes as a string.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Number;
    impl Visitor<'_> for Number {
        type Value = u64;

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a whole number, or a text of one")
        }

        fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
            Ok(value)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
            text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
        }
    }
    deserializer.deserialize_any(Number)
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
    BASE64.decode(text.as_bytes()).map_err(|error| de::Error::custom(format!("base64: {error}")))
}

/// A key. All keys of Doorway are text.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let bytes = bytes(deserializer)?;
    String::from_utf8(bytes).map_err(|_| de::Error::custom("a key is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As etcd 3.4 answers.
    #[test]
    fn a_range_is_parsed() {
        let body = br#"{"header":{"cluster_id":"14841639068965178418","member_id":"1",
            "revision":"7","raft_term":"2"},"kvs":[{"key":"L2Evcg==","create_revision":"3",
            "mod_revision":"7","version":"2","value":"aGk="}],"count":"1"}"#;
        let range: Range = parse(body).unwrap();
        assert_eq!(range.header, Header { cluster_id: 14_841_639_068_965_178_418, revision: 7 });
        let kv = KeyValue { key: "/a/r".to_owned(), value: b"hi".to_vec(), mod_revision: 7 };
        assert_eq!(range.kvs, [kv]);
        let empty: Range = parse(br#"{"header":{"revision":"1"}}"#).unwrap();
        assert!(empty.kvs.is_empty());
    }

    #[test]
    fn a_transaction_is_parsed() {
        let body = br#"{"header":{"revision":"9"},"succeeded":true,"responses":[
            {"response_put":{"header":{"revision":"9"}}},
            {"response_delete_range":{"header":{"revision":"9"},"deleted":"1"}}]}"#;
        let swapped: SwapAnswer = parse(body).unwrap();
        assert_eq!((swapped.succeeded, swapped.header.revision), (true, 9));
        assert_eq!(swapped.current(), None);
        let body = br#"{"header":{"revision":"9"},"responses":[{"response_range":{
            "header":{"revision":"9"},"kvs":[{"key":"YQ==","mod_revision":"8"}],"count":"1"}}]}"#;
        let swapped: SwapAnswer = parse(body).unwrap();
        assert!(!swapped.succeeded);
        let current = swapped.current().unwrap();
        assert_eq!((current.key.as_str(), current.mod_revision, current.value.len()), ("a", 8, 0));
    }

    #[test]
    fn a_watch_is_parsed() {
        let created = br#"{"result":{"header":{"revision":"4"},"created":true}}"#;
        assert!(parse_watch(created).unwrap().events.is_empty());
        let changed = br#"{"result":{"header":{"revision":"6"},"events":[
            {"kv":{"key":"YQ==","mod_revision":"6","value":"Yg=="}},
            {"type":"DELETE","kv":{"key":"Yw==","mod_revision":"6"}}]}}"#;
        let watched = parse_watch(changed).unwrap();
        let ops: Vec<Op> = watched.events.into_iter().map(Event::into_op).collect();
        assert_eq!(ops, [Op::Put("a".to_owned(), b"b".to_vec()), Op::Delete("c".to_owned())]);
        let compacted = br#"{"result":{"header":{"revision":"9"},"canceled":true,
            "compact_revision":"8"}}"#;
        assert!(parse_watch(compacted).unwrap_err().contains("compacted"));
        let refused = br#"{"error":{"grpc_code":14,"http_code":503,
            "message":"etcdserver: no leader","http_status":"Service Unavailable"}}"#;
        assert_eq!(parse_watch(refused).unwrap_err(), "etcdserver: no leader");
    }

    #[test]
    fn what_is_no_answer_of_etcd_is_an_error_with_words() {
        let long = format!("<html>{}", "x".repeat(10_000));
        for body in ["", "{", "[]", "<html>", "null", "\u{7}\u{1b}[2J", long.as_str(), "{\"a\":1}"]
        {
            let why = parse::<Range>(body.as_bytes()).unwrap_err();
            assert!(why.starts_with("not an answer of etcd") && why.len() < 400, "{why}");
            assert!(!why.contains(char::is_control), "{why:?}");
            assert!(parse_watch(body.as_bytes()).is_err(), "{body}");
        }
        for body in [
            r#"{"header":{"revision":"-1"}}"#,
            r#"{"header":{"revision":"99999999999999999999999"}}"#,
            r#"{"header":{"revision":[]}}"#,
            r#"{"header":{"revision":"1"},"kvs":[{"key":"?"}]}"#,
            r#"{"header":{"revision":"1"},"kvs":[{"key":"/w=="}]}"#,
        ] {
            assert!(parse::<Range>(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn what_etcd_refuses_is_told_in_its_words() {
        let body = br#"{"error":"etcdserver: request timed out","code":14,
            "message":"etcdserver: request timed out"}"#;
        assert_eq!(failure(503, body), "etcdserver: request timed out");
        assert_eq!(failure(500, b""), "HTTP 500: an empty answer");
        assert_eq!(failure(404, b"404 page not found\n"), "HTTP 404: 404 page not found");
    }

    #[test]
    fn a_prefix_ends_before_the_next_key() {
        assert_eq!(after("/doorway/shop/"), b"/doorway/shop0");
        assert_eq!(after("\u{7f}"), [0x80]);
    }
}

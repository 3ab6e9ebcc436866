//! RESP, the protocol of Redis clients, as functions over bytes: requests are read, replies are
//! written.
//!
//! A request is an array of bulk strings. All limits are checked before anything is stored, so a
//! client that sends nonsense costs no memory beyond its own buffer.

use std::ops::Range;

use doorway_protocol::text::cut;
use doorway_protocol::{Code, Refusal};

/// How many bytes a request may have.
pub(super) const FRAME: usize = 1 << 16;

/// How many bytes a request may have before the client has proved who it is.
const GREETING: usize = 1 << 12;

/// How many arguments a request may have, with the command.
pub(super) const ARGUMENTS: usize = 1024;

/// How many bytes the length of an array or a bulk string may have.
const DIGITS: usize = 8;

/// How many bytes of an error are sent at most: it may repeat what the client sent.
const TOLD: usize = 1000;

/// The version of RESP that a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Version {
    #[default]
    Two,
    Three,
}

/// A whole request: the command and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) arguments: Vec<Vec<u8>>,
    /// How many bytes of the buffer it took.
    pub(super) bytes: usize,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Simple(&'static str),
    /// An error: a word in upper case that programs may compare, and a sentence.
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(Vec<Self>),
    /// Pairs. In version 2 of RESP this is an array.
    Map(Vec<(&'static str, Self)>),
}

impl Reply {
    pub(super) const OK: Self = Self::Simple("OK");

    pub(super) fn bulk(text: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(text.into())
    }

    /// An error without a word of its own.
    pub(super) fn error(text: impl AsRef<str>) -> Self {
        Self::Error(format!("ERR {}", text.as_ref()))
    }
}

/// The error of a refusal. Its first word tells programs whether to try again.
impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        let word = match refusal.code {
            Code::Forbidden => "NOPERM",
            Code::Busy | Code::Unavailable | Code::Broken | Code::Elsewhere => "TRYAGAIN",
            Code::Invalid | Code::NotFree | Code::NotServed | Code::Gone => "ERR",
        };
        Self::Error(format!("{word} {}", refusal.text))
    }
}

/// How many bytes a request may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MostBytes {
    /// The client has not proved who it is.
    Unknown,
    Known,
}

impl MostBytes {
    fn get(self) -> usize {
        match self {
            Self::Unknown => GREETING,
            Self::Known => FRAME,
        }
    }

    fn exceeded(self) -> String {
        let why = match self {
            Self::Unknown => " before the client has proved who it is",
            Self::Known => "",
        };
        format!("a request may have {} bytes{why}", self.get())
    }
}

/// Reads the request at the beginning of a buffer that grows. What has been read once is not read
/// again when more bytes arrive: a client may send them one at a time. Arguments are copied when
/// the request is whole.
#[derive(Debug, Default)]
pub(super) struct RequestReader {
    /// How many arguments the request has, once that is known.
    count: Option<usize>,
    /// Where the arguments are that have been read.
    arguments: Vec<Range<usize>>,
    /// How many bytes of the buffer have been read.
    at: usize,
    /// With fewer bytes than this there is nothing new to be read.
    needed: usize,
}

impl RequestReader {
    /// Read on in the same buffer. True if the request is whole. An error means that the bytes are
    /// not a request, and nothing after them can be understood.
    pub(super) fn read(&mut self, buffer: &[u8], most: MostBytes) -> Result<bool, String> {
        let whole = buffer.len() >= self.needed && self.read_on(buffer, most)?;
        if !whole && buffer.len() >= most.get() {
            return Err(most.exceeded());
        }
        Ok(whole)
    }

    /// The whole request that was read. The next one is read from a new beginning.
    pub(super) fn take(&mut self, buffer: &[u8]) -> Request {
        let Self { arguments, at, .. } = std::mem::take(self);
        let copy = |argument: Range<usize>| buffer.get(argument).unwrap_or_default().to_vec();
        Request { arguments: arguments.into_iter().map(copy).collect(), bytes: at }
    }

    fn read_on(&mut self, buffer: &[u8], most: MostBytes) -> Result<bool, String> {
        let count = match self.count {
            Some(count) => count,
            None => match self.length(buffer, b'*')? {
                Some((0, _)) => {
                    return Err("a request has at least one argument, the command".to_owned());
                }
                Some((count, _)) if count > ARGUMENTS => {
                    return Err(format!("a request may have {ARGUMENTS} arguments, not {count}"));
                }
                Some((count, begin)) => {
                    self.at = begin;
                    *self.count.insert(count)
                }
                None => return Ok(false),
            },
        };
        while self.arguments.len() < count {
            let Some((length, begin)) = self.length(buffer, b'$')? else { return Ok(false) };
            // Without its two last bytes the request could not be whole.
            if length > most.get() || begin + length + 2 > most.get() {
                return Err(most.exceeded());
            }
            let end = begin + length;
            let Some(ending) = buffer.get(end..end + 2) else {
                self.needed = end + 2;
                return Ok(false);
            };
            if ending != b"\r\n" {
                return Err("a bulk string does not end where its length says".to_owned());
            }
            self.arguments.push(begin..end);
            self.at = end + 2;
        }
        Ok(true)
    }

    /// The length in the next line, which begins with this byte, and where the line ends.
    fn length(&mut self, buffer: &[u8], kind: u8) -> Result<Option<(usize, usize)>, String> {
        let more = buffer.len() + 1;
        let line = &buffer[self.at..];
        let Some(first) = line.first() else {
            self.needed = more;
            return Ok(None);
        };
        if *first != kind {
            let (kind, first) = (char::from(kind), first.escape_ascii());
            return Err(format!(
                "expected `{kind}`, got `{first}`; a request is an array of bulk strings"
            ));
        }
        let digits = line[1..].iter().take(DIGITS + 1).take_while(|it| it.is_ascii_digit()).count();
        if digits > DIGITS {
            return Err(format!("a length may have {DIGITS} digits"));
        }
        let wrong = || Err("a length has to be a number, followed by CR and LF".to_owned());
        match &line[1 + digits..] {
            [] | [b'\r'] => {
                self.needed = more;
                return Ok(None);
            }
            [b'\r', b'\n', ..] if digits > 0 => {}
            _ => return wrong(),
        }
        let text = std::str::from_utf8(&line[1..=digits]).ok();
        let Some(length) = text.and_then(|text| text.parse().ok()) else { return wrong() };
        Ok(Some((length, self.at + 1 + digits + 2)))
    }
}

/// Write a reply.
pub(super) fn write(reply: &Reply, version: Version, out: &mut Vec<u8>) {
    match reply {
        Reply::Simple(text) => line(b'+', text, out),
        Reply::Error(text) => {
            let told = cut(text, TOLD);
            // A line end inside would be the end of the error.
            let clean: String =
                told.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            line(b'-', &clean, out);
        }
        Reply::Integer(number) => line(b':', &number.to_string(), out),
        Reply::Bulk(bytes) => {
            line(b'$', &bytes.len().to_string(), out);
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"\r\n");
        }
        Reply::Null if version == Version::Three => out.extend_from_slice(b"_\r\n"),
        Reply::Null => out.extend_from_slice(b"$-1\r\n"),
        Reply::Array(items) => {
            line(b'*', &items.len().to_string(), out);
            for item in items {
                write(item, version, out);
            }
        }
        Reply::Map(pairs) => {
            match version {
                Version::Two => line(b'*', &(2 * pairs.len()).to_string(), out),
                Version::Three => line(b'%', &pairs.len().to_string(), out),
            }
            for (key, value) in pairs {
                write(&Reply::bulk(*key), version, out);
                write(value, version, out);
            }
        }
    }
}

fn line(kind: u8, text: &str, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Read the request at the beginning of a buffer; `None` if it is not whole yet.
    fn request(buffer: &[u8]) -> Result<Option<Request>, String> {
        let mut reader = RequestReader::default();
        let whole = reader.read(buffer, MostBytes::Known)?;
        Ok(whole.then(|| reader.take(buffer)))
    }

    fn encoded(arguments: &[Vec<u8>]) -> Vec<u8> {
        let mut out = format!("*{}\r\n", arguments.len()).into_bytes();
        for argument in arguments {
            write(&Reply::Bulk(argument.clone()), Version::Two, &mut out);
        }
        out
    }

    fn written(reply: &Reply, version: Version) -> String {
        let mut out = Vec::new();
        write(reply, version, &mut out);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn a_request_is_read_as_it_was_written_and_no_byte_earlier(
            arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8),
            more in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let whole = encoded(&arguments);
            for end in 0..whole.len() {
                prop_assert_eq!(request(&whole[..end]), Ok(None));
            }
            let bytes = whole.len();
            let read = request(&[whole, more].concat());
            prop_assert_eq!(read, Ok(Some(Request { arguments, bytes })));
        }

        #[test]
        fn a_request_that_arrives_in_parts_is_read_as_one_that_arrives_at_once(
            arguments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8),
            more in prop::collection::vec(any::<u8>(), 0..20),
            changed in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
            parts in prop::collection::vec(1_usize..20, 1..10),
        ) {
            let mut bytes = [encoded(&arguments), more].concat();
            if let Some((at, byte)) = changed {
                *at.get_mut(&mut bytes) = byte;
            }
            let (mut reader, mut end) = (RequestReader::default(), 0);
            for part in parts.into_iter().cycle() {
                end = bytes.len().min(end + part);
                let read = reader.read(&bytes[..end], MostBytes::Known);
                prop_assert_eq!(&read, &reader.read(&bytes[..end], MostBytes::Known), "again");
                let read = read.map(|whole| whole.then(|| reader.take(&bytes[..end])));
                prop_assert_eq!(&read, &request(&bytes[..end]));
                if end == bytes.len() || !matches!(read, Ok(None)) {
                    break;
                }
            }
        }

        #[test]
        fn garbage_is_no_trouble(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = request(&bytes);
        }

        #[test]
        fn what_looks_like_a_request_is_no_trouble(text in "[*$0-9\r\na-]{0,60}") {
            if let Ok(Some(read)) = request(text.as_bytes()) {
                prop_assert!(read.bytes <= text.len() && !read.arguments.is_empty());
            }
        }
    }

    /// Every line of a length is looked at again as long as it is not whole, and nothing else is.
    #[test]
    fn a_request_that_arrives_byte_by_byte_is_read_once() {
        let bytes = encoded(&vec![b"x".repeat(50); 1000]);
        let mut reader = RequestReader::default();
        let mut looks = 0;
        for end in 1..=bytes.len() {
            let (before, looked) = (reader.at, end >= reader.needed);
            let whole = reader.read(&bytes[..end], MostBytes::Known).unwrap();
            assert_eq!(whole, end == bytes.len());
            assert!(reader.at >= before && end - before <= 60, "from {before} to {end}");
            looks += usize::from(looked);
        }
        assert!(looks < 8 * 1000, "{looks} looks at {} bytes", bytes.len());
        assert_eq!(reader.take(&bytes).arguments.len(), 1000);
    }

    #[test]
    fn requests_beyond_the_limits_are_errors_before_they_have_arrived() {
        for (bytes, part) in [
            ("*1025\r\n", "1024 arguments"),
            ("*0\r\n", "at least one"),
            ("*-1\r\n", "a number"),
            ("*1\r\n$65536\r\n", "65536 bytes"),
            ("*2\r\n$40000\r\n", ""),
            ("*1\r\n$999999999\r\n", "digits"),
            ("*1\r\n$-1\r\n", "a number"),
            ("*1\r\n:1\r\n", "expected `$`, got `:`"),
            ("GET / HTTP/1.1\r\n", "expected `*`, got `G`"),
            ("*1\r\n$1\r\nabc", "does not end"),
            ("*\r\n", "a number"),
        ] {
            match request(bytes.as_bytes()) {
                Err(why) => assert!(!part.is_empty() && why.contains(part), "{bytes:?}: {why}"),
                Ok(read) => assert!(part.is_empty() && read.is_none(), "{bytes:?}: {read:?}"),
            }
        }
        let mut many = b"*1024\r\n".to_vec();
        while many.len() < FRAME {
            assert_eq!(request(&many), Ok(None));
            many.extend_from_slice(b"$90\r\n");
            many.extend_from_slice(&[b'x'; 90]);
            many.extend_from_slice(b"\r\n");
        }
        assert!(request(&many).is_err(), "the buffer of a connection is limited");
    }

    #[test]
    fn replies_differ_between_the_versions_only_where_they_have_to() {
        for (reply, two, three) in [
            (Reply::OK, "+OK\r\n", "+OK\r\n"),
            (Reply::Null, "$-1\r\n", "_\r\n"),
            (Reply::Integer(-2), ":-2\r\n", ":-2\r\n"),
            (Reply::bulk("a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"),
            (Reply::Array(vec![Reply::Null]), "*1\r\n$-1\r\n", "*1\r\n_\r\n"),
            (
                Reply::Map(vec![("a", Reply::Integer(1))]),
                "*2\r\n$1\r\na\r\n:1\r\n",
                "%1\r\n$1\r\na\r\n:1\r\n",
            ),
        ] {
            assert_eq!(written(&reply, Version::Two), two);
            assert_eq!(written(&reply, Version::Three), three);
        }
    }

    #[test]
    fn an_error_stays_one_line() {
        let error = Reply::error("what\r\n+OK\r\n the client sent");
        assert_eq!(written(&error, Version::Two), "-ERR what??+OK?? the client sent\r\n");
        let long = written(&Reply::error("ä".repeat(4000)), Version::Two);
        assert!(long.len() <= TOLD + 3);
    }
}

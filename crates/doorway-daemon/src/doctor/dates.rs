//! Compares the date of another member with ours.
//!
//! Only certificates depend on dates, and only by the day. Responses of HTTP have a date, so the
//! member is asked over HTTP, on the port on which this node serves HTTP.

use std::io::{self, Read, Write};
use std::sync::Arc;

use doorway_node::{MemberConfig, TlsConfig};
use parking_lot::Mutex;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use tokio_rustls::rustls::StreamOwned;

use super::Finding;
use super::peers::{connect, start_tls};
use crate::certificate::node_name;

/// Dates that differ by more than this many seconds are worth a warning.
const APART: i64 = 30;

/// How many bytes of a response are read at most.
const HEAD: usize = 8192;

/// Compare dates with a member; `None` if it does not serve HTTP on the same port as we do.
pub(super) fn compare(
    member: &MemberConfig,
    door: &str,
    group: &str,
    tls: &TlsConfig,
) -> Option<Finding> {
    let (host, _) = member.address.rsplit_once(':')?;
    let (_, port) = door.rsplit_once(':')?;
    let theirs = ask(&format!("{host}:{port}"), &node_name(&member.name, group), tls).ok()??;
    Some(judge(&member.name, (theirs - OffsetDateTime::now_utc()).whole_seconds()))
}

fn judge(name: &str, apart: i64) -> Finding {
    let way = if apart < 0 { "behind" } else { "ahead of" };
    let what = format!("the date of {name} is {} s {way} ours", apart.abs());
    if apart.abs() > APART {
        let remedy = "keep both right with NTP: certificates depend on dates, locks do not";
        Finding::warning("clocks", what, remedy)
    } else {
        Finding::ok("clocks", what)
    }
}

fn ask(address: &str, name: &str, tls: &TlsConfig) -> io::Result<Option<OffsetDateTime>> {
    let connection = start_tls(name, tls, &Arc::new(Mutex::new(None)))?;
    let mut stream = StreamOwned::new(connection, connect(address)?);
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    write!(stream, "HEAD / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    date(&mut stream)
}

/// The date in the head of a response.
fn date(stream: &mut impl Read) -> io::Result<Option<OffsetDateTime>> {
    let mut head = Vec::new();
    let mut bytes = [0; 1024];
    while head.len() < HEAD && !head.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut bytes)? {
            0 => break,
            read => head.extend_from_slice(&bytes[..read]),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut dates = head.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case("date").then_some(value.trim())
    });
    Ok(dates.next().and_then(|date| OffsetDateTime::parse(date, &Rfc2822).ok()))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn the_date_of_a_response_is_read() {
        let answer =
            "HTTP/1.1 404 Not Found\r\nServer: x\r\ndate: Sun, 15 Nov 2026 16:00:00 GMT\r\n\r\n";
        let read = date(&mut answer.as_bytes()).unwrap().unwrap();
        assert_eq!(read.unix_timestamp(), 1_794_758_400);
        for odd in ["", "HTTP/1.1 200 OK\r\n\r\n", "date: soon\r\n\r\n", "\u{0}\u{ff}"] {
            assert_eq!(date(&mut odd.as_bytes()).unwrap(), None, "{odd}");
        }
    }

    #[test]
    fn dates_that_are_far_apart_are_a_warning() {
        assert_eq!(judge("b", 2).verdict, Verdict::Ok);
        let far = judge("b", -90);
        assert_eq!(far.verdict, Verdict::Warning);
        assert_eq!(far.what, "the date of b is 90 s behind ours");
    }
}

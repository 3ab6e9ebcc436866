//! Garbage of all kinds.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use doorway_protocol::MAGIC;

use crate::common::daemon::Daemon;
use crate::raw::connect;

/// The beginning of a connection of HTTP/2: the preface, and a frame with settings.
pub(crate) const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), content].concat()
}

/// A call of gRPC whose body has these bytes, as two frames of HTTP/2.
pub(crate) fn grpc(stream: u32, path: &str, body: &[u8]) -> Vec<u8> {
    // POST, http, the path, the authority, and the type of the content.
    let mut head = vec![0x83, 0x86, 4, path.len() as u8];
    head.extend(path.as_bytes());
    head.extend(b"\x01\x01d\x0f\x10\x10application/grpc");
    [frame(1, 4, stream, &head), frame(0, 1, stream, body)].concat()
}

/// A request to the JSON gateway of etcd that says how long its body is.
pub(crate) fn gateway(path: &str, length: usize, body: &str) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
    (head + body).into_bytes()
}

/// One piece of garbage.
fn garbage(random: &mut u64, round: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..300)
        .map(|_| {
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            *random as u8
        })
        .collect();
    match round % 16 {
        0 => bytes[..8].copy_from_slice(&MAGIC),
        1 => {
            bytes[..8].copy_from_slice(&MAGIC);
            bytes[8..12].copy_from_slice(&100_u32.to_le_bytes());
        }
        2 => {
            // The length of a frame that is allowed, but never sent.
            bytes[..8].copy_from_slice(&MAGIC);
            bytes[8..12].copy_from_slice(&(1_u32 << 17).to_le_bytes());
        }
        3 => {
            bytes.splice(..0, *b"GET /v1/locks HTTP/1.1\r\nHost: ");
        }
        4 => {
            let head =
                b"POST /v1/locks/a HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n{";
            bytes.splice(..0, *head);
        }
        5 => {
            // The beginning of a handshake with a length, followed by something else.
            bytes[..5].copy_from_slice(&[0x16, 3, 1, 1, 0]);
        }
        6 => bytes = vec![b'A'; 100_000],
        // The beginning of a request of a Redis client.
        7 => {
            bytes.splice(..0, *b"*3\r\n$3\r\nSET\r\n$60000\r\n");
        }
        8 => {
            bytes.splice(..0, *b"*1024\r\n$3\r\n");
        }
        9 => bytes = b"*1\r\n$4\r\nPING\r\n".repeat(5000),
        // An argument of a Redis client that is too long, and sent all the same.
        10 => bytes = format!("*2\r\n$4\r\nECHO\r\n$90000\r\n{}", "A".repeat(90_000)).into_bytes(),
        11 => {
            bytes.splice(..0, HTTP2.iter().copied());
        }
        12 => {
            // A message of an etcd client that cannot be read, and one that claims to be huge.
            let call = |stream, body: &[u8]| grpc(stream, "/etcdserverpb.KV/Txn", body);
            let huge = [&[0, 255, 255, 255, 255], &bytes[..200]].concat();
            bytes = [HTTP2, &call(1, &bytes), &call(3, &huge)].concat();
        }
        // Requests to the JSON gateway that are too long, cut off, or no JSON.
        13 => bytes = gateway("/v3/kv/txn", 100_000, &"x".repeat(100_000)),
        14 => bytes = gateway("/v3/lock/lock", 1000, "{\"name\":"),
        _ => {}
    }
    bytes
}

/// Open this many connections that send garbage.
pub(crate) fn unix(socket: &str, times: usize) {
    let mut random = 0x9e37_79b9_7f4a_7c15;
    for round in 0..times {
        let mut stream = connect(socket);
        let _ = stream.write_all(&garbage(&mut random, round)); // It may have been closed already.
        if round % 50 == 0 {
            let _ = stream.set_read_timeout(Some(Duration::from_millis(5)));
            let _ = stream.read(&mut [0; 100]);
        }
    }
}

/// Open this many connections over TCP that send garbage.
pub(crate) fn tcp(address: &str, times: usize) {
    let mut random = 0x2545_f491_4f6c_dd1d;
    for round in 0..times {
        let Ok(mut stream) = TcpStream::connect(address) else { continue };
        let _ = stream.set_write_timeout(Some(Duration::from_secs(1)));
        let _ = stream.write_all(&garbage(&mut random, round));
    }
}

/// Connections that send nothing, or only the beginning of a frame.
pub(crate) fn stay(daemon: &Daemon, addresses: &[String], each: usize) -> Vec<Box<dyn Send>> {
    let mut stays: Vec<Box<dyn Send>> = Vec::new();
    for round in 0..each {
        let mut local = connect(&daemon.socket);
        let begin = [&MAGIC, HTTP2, b"*2\r\n$4\r\nECHO\r\n$9\r\n"][round % 3];
        let _ = local.write_all(&begin[..round % begin.len()]);
        stays.push(Box::new(local));
        for address in addresses {
            if let Ok(mut stream) = TcpStream::connect(address) {
                let _ = stream.write_all(&[0x16, 3, 1][..round % 4]);
                stays.push(Box::new(stream));
            }
        }
    }
    stays
}

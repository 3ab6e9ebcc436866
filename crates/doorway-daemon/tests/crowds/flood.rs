//! Garbage of all kinds.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use doorway_protocol::MAGIC;

use crate::common::daemon::Daemon;
use crate::raw::connect;

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
    match round % 11 {
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
pub(crate) fn stay(daemon: &Daemon, each: usize) -> Vec<Box<dyn Send>> {
    let mut stays: Vec<Box<dyn Send>> = Vec::new();
    let (sessions, http) = daemon.tcp.clone().expect("it has both");
    for round in 0..each {
        let mut local = connect(&daemon.socket);
        let _ = local.write_all(&MAGIC[..round % 8]);
        stays.push(Box::new(local));
        for address in [&sessions, &http] {
            if let Ok(mut stream) = TcpStream::connect(address) {
                let _ = stream.write_all(&[0x16, 3, 1][..round % 4]);
                stays.push(Box::new(stream));
            }
        }
    }
    stays
}

//! Two round trips through a Unix socket and nothing else. An acquire and a release that are both
//! acknowledged cannot cost less.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::shared::pin::Placement;
use crate::shared::samples::Samples;

/// The length of a request with a short name, in bytes.
const SIZE: usize = 20;

/// Measure a blocking client against a server with the same runtime as the service.
pub(crate) fn round_trips(turn: Duration, placement: Placement) -> Samples {
    let (mut client, server) = UnixStream::pair().unwrap();
    server.set_nonblocking(true).unwrap();
    let server = placement.spawn(1, move |runtime| {
        runtime.block_on(async {
            let mut server = tokio::net::UnixStream::from_std(server).unwrap();
            let mut bytes = [0; 2 * SIZE];
            while let Ok(count @ 1..) = server.read(&mut bytes).await {
                server.write_all(&bytes[..count]).await.unwrap();
            }
        });
    });
    let client = placement.spawn(0, move |_| {
        let (mut samples, mut bytes) = (Samples::default(), [0; SIZE]);
        let begun = Instant::now();
        while begun.elapsed() < turn {
            let asked = Instant::now();
            for _ in 0..2 {
                client.write_all(&bytes).unwrap();
                client.read_exact(&mut bytes).unwrap();
            }
            samples.push(asked.elapsed());
        }
        samples
    });
    let samples = client.join().unwrap();
    server.join().unwrap();
    samples
}

//! A resource that is written over HTTP and refuses writers with an old fence:
//! `cargo run -p doorway-client --example fenced -- 127.0.0.1:7100`.
//!
//! `PUT` with the header `Doorway-Fence` writes, and `GET` reads what was written last.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use doorway_client::{Fence, Gate};

/// The protected text, and the gate in front of it.
#[derive(Default)]
struct Resource {
    gate: Gate,
    text: Mutex<String>,
}

impl Resource {
    fn text(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serve forever, each connection on a thread of its own.
pub(crate) fn serve(listener: &TcpListener) {
    let resource = Arc::new(Resource::default());
    for stream in listener.incoming().flatten() {
        let resource = Arc::clone(&resource);
        std::thread::spawn(move || answer(&resource, &stream));
    }
}

fn answer(resource: &Resource, mut stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream).take(1 << 16);
    let (mut first, mut fence, mut length) = (String::new(), None, 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim().to_ascii_lowercase().split_once(':') {
            Some(("doorway-fence", value)) => fence = value.trim().parse::<Fence>().ok(),
            Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
            Some(_) => {}
            None => break,
        }
    }
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body)?;
    if (body.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into()); // Do not write half of the body.
    }
    let (status, told) = match (first.starts_with("PUT "), fence) {
        // The check and the write are one step: nobody else passes before the text is written.
        (true, Some(fence)) => match resource.gate.pass_and(fence, || *resource.text() = body) {
            Ok(()) => ("200 OK", format!("written with fence {fence}")),
            Err(stale) => ("412 Precondition Failed", stale.to_string()),
        },
        (true, None) => ("428 Precondition Required", "send Doorway-Fence: FENCE".to_owned()),
        (false, _) => ("200 OK", resource.text().clone()),
    };
    let length = told.len() + 1;
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")?;
    writeln!(stream, "{told}")
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7100".to_owned());
    serve(&TcpListener::bind(address)?);
    Ok(())
}

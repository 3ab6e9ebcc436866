//! A connection to a server, over a Unix socket or over TCP.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::{TcpStream, UnixStream};

/// Something that bytes can be written to and read from.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection.
pub(super) type Wire = BufReader<Box<dyn Stream>>;

/// Connect to an address. One that begins with `/` is the path of a Unix socket.
pub(super) async fn connect(address: &str) -> io::Result<Wire> {
    if address.starts_with('/') {
        return Ok(BufReader::new(Box::new(UnixStream::connect(address).await?)));
    }
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(Box::new(stream)))
}

//! The ways to a server, and a connection over any of them.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// How the bytes travel.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// A Unix socket, which is a file.
    Unix(PathBuf),
    /// TCP on the loopback network, without TLS.
    Tcp(SocketAddr),
    /// TCP with TLS 1.3, and the certificate of the authority.
    Tls(SocketAddr, PathBuf),
}

impl Way {
    /// The name in the table.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Unix(_) => "Unix socket",
            Self::Tcp(_) => "TCP",
            Self::Tls(..) => "TLS",
        }
    }
}

/// Something that bytes can be written to and read from.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection.
pub(crate) type Wire = BufReader<Box<dyn Stream>>;

/// Connect. `before` is sent before TLS begins, if there is TLS, and answered by one byte.
pub(crate) async fn connect(way: &Way, before: &[u8]) -> io::Result<Wire> {
    connect_by(way, before, &[]).await
}

/// Connect for HTTP/2, which a client has to announce if there is TLS.
pub(crate) async fn connect_http2(way: &Way) -> io::Result<Wire> {
    connect_by(way, b"", &[b"h2"]).await
}

async fn connect_by(way: &Way, before: &[u8], protocols: &[&[u8]]) -> io::Result<Wire> {
    let stream: Box<dyn Stream> = match way {
        Way::Unix(path) => Box::new(UnixStream::connect(path).await?),
        Way::Tcp(address) => Box::new(tcp(*address).await?),
        Way::Tls(address, ca) => {
            let mut stream = tcp(*address).await?;
            if !before.is_empty() {
                stream.write_all(before).await?;
                stream.read_u8().await?;
            }
            let connector = TlsConnector::from(Arc::new(trusting(ca, protocols)?));
            let name = ServerName::from(address.ip());
            Box::new(connector.connect(name, stream).await?)
        }
    };
    Ok(BufReader::new(stream))
}

async fn tcp(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// TLS that trusts this authority, shows no certificate, and announces these protocols.
fn trusting(ca: &Path, protocols: &[&[u8]]) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).map_err(io::Error::other)? {
        let certificate = certificate.map_err(io::Error::other)?;
        roots.add(certificate).map_err(io::Error::other)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

//! A bare connection, made in the same way as those between nodes.

use std::sync::Arc;
use std::time::Instant;

use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::Extent;
use crate::shared::pin::Placement;
use crate::shared::samples::Samples;

const SIZE: usize = 64;

/// Send 64 bytes there and back again, for one turn.
pub(crate) fn round_trips(extent: Extent, placement: Placement) -> Samples {
    let (acceptor, connector) = both_ends();
    let (tell, hear) = std::sync::mpsc::channel();
    let server = placement.spawn(1, move |runtime| {
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            echo(acceptor.accept(stream).await.unwrap()).await;
        });
    });
    let address = hear.recv().unwrap();
    let client = placement.spawn(0, move |runtime| {
        runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let name = ServerName::try_from("localhost").unwrap();
            call(extent, connector.connect(name, stream).await.unwrap()).await
        })
    });
    let samples = client.join().unwrap();
    server.join().unwrap();
    samples
}

fn both_ends() -> (TlsAcceptor, TlsConnector) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".into()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let server = ServerConfig::builder().with_no_client_auth();
    let server = server.with_single_cert(vec![certificate], key).unwrap();
    (TlsAcceptor::from(Arc::new(server)), TlsConnector::from(Arc::new(client)))
}

/// Send back what arrives, until the connection ends.
async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut bytes = [0; SIZE];
    while stream.read_exact(&mut bytes).await.is_ok() {
        stream.write_all(&bytes).await.unwrap();
        stream.flush().await.unwrap();
    }
}

async fn call(extent: Extent, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Samples {
    let mut samples = Samples::default();
    let mut bytes = [7; SIZE];
    let begun = Instant::now();
    while begun.elapsed() < extent.turn {
        let sent = Instant::now();
        stream.write_all(&bytes).await.unwrap();
        stream.flush().await.unwrap();
        stream.read_exact(&mut bytes).await.unwrap();
        samples.push(sent.elapsed());
    }
    samples
}

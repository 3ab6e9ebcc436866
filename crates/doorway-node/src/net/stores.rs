//! Connections between the stores of two nodes, over the port and the certificates of the links.

use std::io;
use std::time::Duration;

use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::tls;
use super::{Identity, Network};
use crate::members::{BoxedFuture, BoxedStream, Caller, Connect};

/// How long a connection may take to be made, with the handshake of TLS.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Connects to the stores of other nodes.
pub struct StoreDialer<N> {
    network: N,
    identity: Identity,
    group: String,
}

impl<N: Network> StoreDialer<N> {
    /// Connect to nodes of this group, and prove this identity to them.
    pub fn new(network: N, identity: Identity, group: String) -> Self {
        Self { network, identity, group }
    }

    async fn dial(&self, address: &str) -> io::Result<(BoxedStream, Caller)> {
        let stream = self.network.connect(address).await?;
        // The name is not known yet: it is read from the certificate, once that is verified.
        let any = ServerName::try_from("any.doorway").expect("a valid name");
        let connector = TlsConnector::from(self.identity.store());
        let stream = connector.connect(any, stream).await?;
        let tls = stream.get_ref().1;
        let other = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        if tls.alpn_protocol() != Some(tls::STORES) {
            let why = "the node there still runs with a fixed list of members, [[member]] in its \
                       settings, or is of an older version";
            return Err(other(why.to_owned()));
        }
        let name = tls::node_of(tls.peer_certificates(), &self.group).ok_or_else(|| {
            other(format!("the node there does not belong to the group `{}`", self.group))
        })?;
        Ok((Box::new(stream), Caller { name }))
    }
}

impl<N: Network> Connect for StoreDialer<N> {
    fn connect<'a>(
        &'a self,
        address: &'a str,
    ) -> BoxedFuture<'a, io::Result<(BoxedStream, Caller)>> {
        Box::pin(async move {
            let late = || io::Error::new(io::ErrorKind::TimedOut, "the node does not answer");
            timeout(TIMEOUT, self.dial(address)).await.unwrap_or_else(|_| Err(late()))
        })
    }
}

//! A group of services on this machine, with certificates and a network that can be cut.

#![expect(clippy::unwrap_used, reason = "where nothing can be prepared, nothing can be tested")]

use std::fmt::Write as _;
use std::fs;
use std::net::TcpStream;
use std::sync::Arc;

use doorway_daemon::ca::{self, Authority, Leaf};
use doorway_daemon::certificate;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::daemon::Daemon;
use super::network::Network;
use super::{PATIENCE, Place, addresses, fresh};

/// Certificates for the nodes `n1`, `n2` and so on of the group `test`, and for its client `ci`.
pub(crate) fn certificates(place: &Place, nodes: usize) {
    ca::init(place.path(), "test", 30).unwrap();
    let authority = Authority::open(place.path()).unwrap();
    let nodes: Vec<String> = (1..=nodes).map(|node| format!("n{node}")).collect();
    // The part of the loopback network that this process uses.
    let host: Vec<String> = addresses(1)[0].split(':').take(1).map(str::to_owned).collect();
    let leaf = |name| Leaf { name, addresses: &host, days: 30, to: place.path(), renew: false };
    for node in &nodes {
        authority.node(&leaf(node)).unwrap();
    }
    authority.client(&leaf("ci")).unwrap();
    fs::write(place.file("ci.token"), "the-token-of-the-client-called-ci").unwrap();
}

/// The settings of listeners, for every node with certificates.
fn doors(node: &str, sessions: &str, http: &str) -> String {
    format!(
        "[sessions]\nlisten = \"{sessions}\"\n[http]\nlisten = \"{http}\"\n\
         [tls]\nca = \"ca.crt\"\ncertificate = \"{node}.crt\"\nkey = \"{node}.key\"\n\
         [[client]]\nname = \"ci\"\ntoken_file = \"ci.token\"\n\
         rights = [{{ names = \"*\", may = [\"acquire\", \"inspect\", \"break\"] }}]\n"
    )
}

/// A node without members that also serves TCP, with these additional settings.
pub(crate) fn remote(more: &str) -> Daemon {
    remote_at(&format!("@{}", fresh()), &Arc::new(Place::new()), more)
}

/// A node without members at this socket that also serves TCP, with these additional settings.
pub(crate) fn remote_at(socket: &str, place: &Arc<Place>, more: &str) -> Daemon {
    certificates(place, 1);
    let [sessions, http] = addresses(2).try_into().unwrap();
    let text = format!(
        "group = \"test\"\nnode = \"n1\"\ndata = \"data\"\ndrain = \"100ms\"\n\
         [[member]]\nname = \"n1\"\n{}{more}",
        doors("n1", &sessions, &http)
    );
    let mut daemon = Daemon::at(socket, place, "n1", &text);
    daemon.tcp = Some((sessions, http));
    daemon.spawn();
    daemon.ready();
    daemon
}

/// Services of one group.
pub(crate) struct Group {
    pub(crate) nodes: Vec<Daemon>,
    /// The proxies between every two of them.
    pub(crate) links: Vec<Network>,
    pub(crate) place: Arc<Place>,
}

impl Group {
    /// Three running services, with these additional settings.
    pub(crate) fn start(more: &str) -> Self {
        Self::start_each(|_| more.to_owned())
    }

    /// Three running services, each with additional settings of its own.
    pub(crate) fn start_each(more: impl Fn(usize) -> String) -> Self {
        let place = Arc::new(Place::new());
        certificates(&place, 3);
        let free = addresses(9);
        let (links, doors_at) = free.split_at(3);
        let mut between = Vec::new();
        let mut nodes = Vec::new();
        for (index, at) in doors_at.chunks(2).enumerate() {
            let node = format!("n{}", index + 1);
            let mut text = format!(
                "group = \"test\"\nnode = \"{node}\"\ndata = \"{node}\"\ndrain = \"100ms\"\n"
            );
            for (other, address) in links.iter().enumerate() {
                // Each node dials the nodes after it, through a proxy that can be cut.
                let mut address = address.clone();
                if other > index {
                    between.push(Network::new(&address));
                    address.clone_from(&between.last().unwrap().address);
                }
                write!(text, "[[member]]\nname = \"n{}\"\naddress = \"{address}\"\n", other + 1)
                    .unwrap();
            }
            text += "[links]\nheartbeat = \"100ms\"\nsilence = \"1s\"\n";
            text += &doors(&node, &at[0], &at[1]);
            text += &more(index);
            let mut daemon = Daemon::new(&place, &node, &text);
            daemon.tcp = Some((at[0].clone(), at[1].clone()));
            nodes.push(daemon);
        }
        nodes.iter_mut().for_each(Daemon::spawn);
        nodes.iter().for_each(Daemon::ready);
        Self { nodes, links: between, place }
    }
    /// A connection of the client `ci` to a listener for TLS.
    pub(crate) fn connect(&self, address: &str) -> StreamOwned<ClientConnection, TcpStream> {
        let read = |name: &str| fs::read(self.place.file(name)).unwrap();
        let mut roots = RootCertStore::empty();
        for root in certificate::certificates(&read("ca.crt")).unwrap() {
            roots.add(root).unwrap();
        }
        let chain = certificate::certificates(&read("ci.crt")).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&read("ci.key")).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .unwrap();
        let host = address.split(':').next().unwrap().to_owned();
        let name = ServerName::try_from(host).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        StreamOwned::new(connection, stream)
    }
}

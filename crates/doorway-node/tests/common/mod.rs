//! Support for several tests: certificates, directories and ports.

#![allow(dead_code, reason = "each test uses some of it")]
#![expect(clippy::unwrap_used, reason = "where nothing can be prepared, nothing can be tested")]

pub(crate) mod book;
pub(crate) mod scratch;
pub(crate) mod visit;

use std::net::TcpListener;

use doorway_node::{Config, MemberConfig, Node, RuleConfig, TlsConfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

pub(crate) use scratch::Scratch;

/// An authority that issues certificates to the nodes of a group.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its own certificate, which all nodes trust.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate and its key for a node of a group.
    pub(crate) fn issue(&self, node: &str, group: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![format!("{node}.{group}.doorway")]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// Addresses that are free: this process uses a part of the loopback network of its own.
pub(crate) fn addresses(count: usize) -> Vec<String> {
    let [.., high, middle, low] = std::process::id().to_be_bytes();
    let host = format!("127.{}.{middle}.{low}", 1 + high % 250);
    let bind = |_| TcpListener::bind(format!("{host}:0")).unwrap();
    let listeners: Vec<_> = (0..count).map(bind).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

/// The configurations of a group on this machine, and the directory that holds their data.
pub(crate) fn group(size: usize, rules: &[RuleConfig]) -> (Scratch, Vec<Config>) {
    let (scratch, authority) = (Scratch::new(), Authority::new());
    let names = (1..=size).map(|node| format!("n{node}"));
    let member = |(name, address)| MemberConfig { name, address };
    let members: Vec<_> = names.zip(addresses(size)).map(member).collect();
    let config = |member: &MemberConfig| {
        let (certificate, key) = authority.issue(&member.name, "test");
        let (ca, certificate) = (authority.pem().into_bytes(), certificate.into_bytes());
        Config {
            group: "test".to_owned(),
            me: member.name.clone(),
            members: members.clone(),
            rules: rules.to_vec(),
            data: Some(scratch.path().join(&member.name)),
            tls: Some(TlsConfig { ca, certificate, key: key.into_bytes() }),
            ..Config::default()
        }
    };
    let configs = members.iter().map(config).collect();
    (scratch, configs)
}

/// A rule for names that begin with the algorithm's own.
pub(crate) fn rule(algorithm: &str, permits: u32) -> RuleConfig {
    RuleConfig::new(format!("{algorithm}/*"), algorithm, permits)
}

/// Start the nodes of a group, and wait until all of them serve.
pub(crate) async fn start(configs: &[Config]) -> Vec<Node> {
    let mut nodes = Vec::new();
    for config in configs {
        nodes.push(Node::start(config.clone()).await.unwrap());
    }
    nodes
}

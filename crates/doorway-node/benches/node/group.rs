//! Groups of three nodes, each on a thread of its own, with a runtime of its own.

use std::sync::Arc;

use doorway_node::{Config, MemberConfig, Node, TlsConfig};
use tokio::sync::Barrier;

use crate::common::{Authority, Scratch, addresses};
use crate::shared::pin::Placement;

pub(crate) const SIZE: usize = 3;

/// The configurations of a group, and the directory that its nodes need.
pub(crate) fn configurations(algorithm: &str) -> (Scratch, Vec<Config>) {
    let (scratch, authority) = (Scratch::new(), Authority::new());
    let member = |(node, address)| MemberConfig { name: format!("n{node}"), address };
    let members: Vec<_> = addresses(SIZE).into_iter().enumerate().map(member).collect();
    let config = |member: &MemberConfig| {
        let (certificate, key) = authority.issue(&member.name, "bench");
        Config {
            group: "bench".into(),
            me: member.name.clone(),
            members: members.clone(),
            algorithm: algorithm.into(),
            data: Some(scratch.path().join(&member.name)),
            tls: Some(TlsConfig {
                ca: authority.pem().into(),
                certificate: certificate.into(),
                key: key.into(),
            }),
            ..Config::default()
        }
    };
    let configs = members.iter().map(config).collect();
    (scratch, configs)
}

/// Let each node of a group do its part, and serve the others until all have finished.
pub(crate) fn run<T, F>(
    placement: Placement,
    algorithm: &str,
    part: impl Fn(usize, Node) -> F + Clone + Send + 'static,
) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let (scratch, configs) = configurations(algorithm);
    let barrier = Arc::new(Barrier::new(SIZE));
    let start = |(index, config): (usize, Config)| {
        let (barrier, part) = (Arc::clone(&barrier), part.clone());
        placement.spawn(index, move |runtime| {
            runtime.block_on(async {
                let node = Node::start(config).await.unwrap();
                // A node that can enter has met all others.
                drop(node.lock("meeting").await.unwrap());
                barrier.wait().await;
                let result = part(index, node.clone()).await;
                barrier.wait().await;
                node.stop().await;
                result
            })
        })
    };
    let threads: Vec<_> = configs.into_iter().enumerate().map(start).collect();
    let results = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    drop(scratch);
    results
}
